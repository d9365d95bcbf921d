/** The real program as a real process, driven over stdio by a client of the 2025 era, with everything it writes kept. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import type { JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js';

export const programPath = fileURLToPath(new URL('../../dist/main.js', import.meta.url));

export interface TestServer {
  client: Client;
  process: ChildProcess;
  /** Lines of stdout as they came. */
  stdout: string[];
  /** Lines of stderr as they came. */
  stderr: string[];
  /** The JSON-RPC id of the last request that the client sent. */
  lastRequestId(): string | number;
  /** Calls a tool and returns its structured answer. */
  call(name: string, args?: Record<string, unknown>, signal?: AbortSignal): Promise<any>;
  /** Calls a tool and returns the whole result. */
  callRaw(name: string, args?: Record<string, unknown>, signal?: AbortSignal): Promise<any>;
  /** Settles with the exit code and signal. */
  exited: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  /** Ends stdin and waits for the end of the process. */
  close(): Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
}

export interface TestServerOptions {
  uri?: string | undefined;
  args?: string[];
  env?: Record<string, string>;
  /** Where its records are; a fresh folder of its own, removed after it, when none is named. */
  stateFolder?: string;
  /** Starts the program by this command line instead of node itself. */
  command?: [string, ...string[]];
  /** The folder in which it starts. */
  cwd?: string;
  /** Do not speak MCP yet. */
  raw?: boolean;
}

/** Starts `mongo-leash serve`. The environment holds nothing of ours but what is given. */
export async function startServer({ uri, args = [], env = {}, command, cwd, raw = false, stateFolder }: TestServerOptions = {}): Promise<TestServer> {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('MONGO_LEASH_') && !name.startsWith('MDB_MCP_')));
  const folder = stateFolder ?? mkdtempSync(join(tmpdir(), 'mongo-leash-state-'));
  const [file, ...first] = command ?? [process.execPath, programPath];
  const child = spawn(file, [...first, ...args], { env: { ...inherited, MONGO_LEASH_STATE_FOLDER: folder, ...(uri === undefined ? {} : { MONGO_LEASH_URI: uri }), ...env }, cwd, stdio: ['pipe', 'pipe', 'pipe'] });
  const stdout: string[] = [];
  const stderr: string[] = [];
  let lastId: string | number = -1;
  const exited = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.on('close', (code, signal) => { resolve({ code, signal }); });
    child.on('error', () => { resolve({ code: -1, signal: null }); });
  });
  if (stateFolder === undefined) void exited.then(() => { rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }); });
  child.stdin.on('error', () => undefined);
  createInterface({ input: child.stderr }).on('line', (line) => stderr.push(line));
  const transport: Transport = {
    start: async () => {
      createInterface({ input: child.stdout }).on('line', (line) => {
        stdout.push(line);
        transport.onmessage?.(JSON.parse(line) as JSONRPCMessage);
      });
      void exited.then(() => { transport.onclose?.(); });
    },
    send: async (message) => {
      if ('id' in message && 'method' in message) lastId = message.id;
      child.stdin.write(`${JSON.stringify(message)}\n`);
    },
    close: async () => {
      child.stdin.end();
      await exited;
    },
  };
  const client = new Client({ name: 'test', version: '1.0.0' });
  if (!raw) await client.connect(transport);
  const callRaw = async (name: string, callArgs: Record<string, unknown> = {}, signal?: AbortSignal) => await client.callTool({ name, arguments: callArgs }, undefined, { timeout: 120_000, ...(signal === undefined ? {} : { signal }) });
  return {
    client,
    process: child,
    stdout,
    stderr,
    lastRequestId: () => lastId,
    callRaw,
    call: async (name, callArgs, signal) => (await callRaw(name, callArgs, signal)).structuredContent,
    exited,
    async close() {
      child.stdin.end();
      return await exited;
    },
  };
}
