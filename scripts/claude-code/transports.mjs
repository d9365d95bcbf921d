/** The server under test over stdio and over HTTP, each with a recorder between Claude Code and it. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { until } from './clock.mjs';
import { startForwarder } from './http-forwarder.mjs';

const program = fileURLToPath(new URL('../../dist/main.js', import.meta.url));
const tee = fileURLToPath(new URL('stdio-tee.mjs', import.meta.url));
/** The store is the one that users have, in a folder of its own. */
const argsFor = (folder) => ['serve', '--state-folder', join(folder, 'state'), '--log-level', 'info'];
const startMs = 20_000;
/** Its shutdown takes four seconds at most, and its close half of one. */
const endMs = 8_000;

/**
 * @typedef {{ entry: object, entries(): object[], ended(): Promise<string> }} Line
 *   `entry` is the server's entry in an `.mcp.json`; `ended` waits for the end of the server process and says how it was
 */

/** Claude Code starts the server itself, with the tee before it. */
async function stdio({ folder, uri, atEnd }) {
  const record = join(folder, 'wire.jsonl');
  const entries = () => (existsSync(record) ? readFileSync(record, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)) : []);
  // One that comes back starts a server again: the last one is meant.
  const last = () => entries().findLast(({ event }) => /^server (started|ended)/.test(event ?? ''));
  const endOf = () => (last()?.event.startsWith('server ended') ? last().event : undefined);
  const ended = () => until('the server process ends', endOf, endMs);
  atEnd(async () => {
    // Its client is dead by now, so it ends by itself, and removes nothing that somebody else removes at the same time.
    if (last()?.event === 'server started') await ended().catch(() => { kill(last().pid); });
  });
  return {
    entry: { type: 'stdio', command: process.execPath, args: [tee, record, process.execPath, program, ...argsFor(folder)], env: { MONGO_LEASH_URI: uri } },
    entries,
    ended,
  };
}

/** A server that was there before Claude Code, and a forwarder in between. */
async function http({ folder, uri, atEnd }) {
  const server = spawn(process.execPath, [program, ...argsFor(folder), '--http', '--port', '0'], { env: { PATH: process.env.PATH, HOME: folder, MONGO_LEASH_URI: uri }, stdio: ['ignore', 'ignore', 'pipe'] });
  let log = '';
  let end;
  server.stderr.on('data', (chunk) => { log += chunk.toString('utf8'); });
  server.on('exit', (code, signal) => { end = `server ended with ${signal ?? `exit code ${code}`}`; });
  atEnd(async () => { if (end === undefined) kill(server.pid); });
  const port = Number(await until('the server listens', () => {
    if (end !== undefined) throw new Error(`${end}: ${log}`);
    return /http:\/\/127\.0\.0\.1:(\d+)/.exec(log)?.[1];
  }, startMs));
  const forwarder = await startForwarder(port);
  atEnd(() => forwarder.close());
  return {
    entry: { type: 'http', url: `http://127.0.0.1:${forwarder.port}/mcp` },
    entries: () => forwarder.entries,
    async ended() {
      server.kill('SIGTERM');
      return until('the server process ends', () => end, endMs);
    },
  };
}

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

/** @type {Record<string, (options: { folder: string, uri: string, atEnd(clean: () => Promise<void>): void }) => Promise<Line>>} */
export const transports = { stdio, HTTP: http };
