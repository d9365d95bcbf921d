/**
 * Stands between Claude Code and a server over stdio, passes everything on, and writes down what passed and when.
 * Usage: node stdio-tee.mjs <record file> <program> [argument...]
 */
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { constants } from 'node:os';
import process from 'node:process';
import { now } from './clock.mjs';

const [file, program, ...args] = process.argv.slice(2);
// Synchronous: this process may be killed at any moment, and what it saw must be on the disk by then.
const write = (entry) => { appendFileSync(file, `${JSON.stringify({ at: now(), ...entry })}\n`); };

const server = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
write({ event: 'server started', pid: server.pid });

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    server.kill(signal);
    write({ event: `client sent ${signal}` });
  });
}
const lines = (way) => {
  let rest = '';
  return (chunk) => {
    const parts = (rest + chunk.toString('utf8')).split('\n');
    rest = parts.pop();
    for (const line of parts) if (line !== '') write({ way, message: JSON.parse(line) });
  };
};
const toServer = lines('to server');
const toClient = lines('to client');
process.stdin.on('data', (chunk) => {
  server.stdin.write(chunk);
  toServer(chunk);
});
process.stdin.on('end', () => {
  server.stdin.end();
  write({ event: 'client closed stdin' });
});
server.stdin.on('error', () => undefined);
process.stdout.on('error', () => undefined);
server.stdout.on('data', (chunk) => {
  process.stdout.write(chunk);
  toClient(chunk);
});
server.on('exit', (code, signal) => {
  write({ event: `server ended with ${signal ?? `exit code ${code}`}` });
  process.exit(code ?? 128 + constants.signals[signal]);
});
