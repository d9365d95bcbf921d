/** The commands for a terminal as real processes, with what they wrote and how they ended. */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { programPath } from './server.js';

export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
  /** The lines of stdout, read as JSON. */
  json(): any[];
  /** From the start of the process to its end, in milliseconds. */
  tookMs: number;
}

export interface Cli {
  /** Runs `mongo-leash` with these words, with no terminal on any of its streams. */
  run(args: string[], options?: { uri?: string; env?: Record<string, string>; input?: string; node?: string[] }): Promise<CliResult>;
  /** Shared by all its runs; removed at the end. */
  stateFolder: string;
  env(uri?: string): Record<string, string>;
  end(): void;
}

/** @param uri for every run that names no other */
export function createCli(uri?: string): Cli {
  const stateFolder = mkdtempSync(join(tmpdir(), 'mongo-leash-cli-'));
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name, value]) => value !== undefined && !/^(MONGO_LEASH_|MDB_MCP_|NO_COLOR$|FORCE_COLOR$)/.test(name))) as Record<string, string>;
  const env: Cli['env'] = (own = uri) => ({ ...inherited, MONGO_LEASH_STATE_FOLDER: stateFolder, ...(own === undefined ? {} : { MONGO_LEASH_URI: own }) });
  return {
    stateFolder,
    env,
    run: (args, options = {}) =>
      new Promise((resolve, reject) => {
        const began = Date.now();
        const child = spawn(process.execPath, [...(options.node ?? []), programPath, ...args], { env: { ...env(options.uri), ...options.env } });
        let stdout = '';
        let stderr = '';
        child.stdout.setEncoding('utf8').on('data', (text: string) => { stdout += text; });
        child.stderr.setEncoding('utf8').on('data', (text: string) => { stderr += text; });
        child.on('error', reject);
        child.on('close', (code) => {
          const json = () => stdout.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as unknown);
          resolve({ code, stdout, stderr, json, tookMs: Date.now() - began });
        });
        child.stdin.end(options.input ?? '');
      }),
    end: () => { rmSync(stateFolder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }); },
  };
}
