/** Finds the program of Claude Code in the cache, or installs it there. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { promisify } from 'node:util';
import { installOutside } from '../outside.mjs';

export const version = '2.1.332';
const versionTimeoutMs = 30_000;

/** @returns {Promise<{ program: string } | { unavailable: string }>} */
export async function installClaudeCode() {
  const { folder, unavailable } = await installOutside([`@anthropic-ai/claude-code@${version}`]);
  if (unavailable !== undefined) return { unavailable };
  const scope = join(folder, 'node_modules', '@anthropic-ai');
  const name = process.platform === 'win32' ? 'claude.exe' : 'claude';
  // The package of this platform holds the program; npm has chosen it.
  const programs = readdirSync(scope).map((each) => join(scope, each, name)).filter((path) => existsSync(path));
  const reasons = [];
  for (const program of programs) {
    const said = await promisify(execFile)(program, ['--version'], { timeout: versionTimeoutMs, env: { PATH: process.env.PATH } }).then(({ stdout }) => stdout, (error) => error.message);
    if (said.startsWith(version)) return { program };
    reasons.push(said.split('\n')[0]);
  }
  return { unavailable: `Claude Code ${version} has no program that runs here: ${reasons.join('; ') || 'none was installed'}` };
}
