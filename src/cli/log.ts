/** Logs go to stderr, line by line: stdout of a stdio server is JSON-RPC only. */

import { type Logger, pino } from 'pino';

/** What may wait for a reader of stderr that does not read, in bytes; lines beyond it are dropped. */
const maxUnreadBytes = 1_048_576;

export function createLogger(level: string, bindings: Record<string, unknown> = {}): Logger {
  // A log that nobody reads must not end the process before the kills are proven.
  process.stderr.on('error', () => undefined);
  process.on('exit', writeLines);
  return pino({ level, base: { name: 'mongo-leash', pid: process.pid, ...bindings } }, { write: writeLine });
}

let lines = '';
/** How pino begins the lines that can wait: what went wrong is told before whoever asks is answered. */
const patient = /^\{"level":[123]0,/;

/** How long a line waits for others, in milliseconds: a write costs as much as the query of a small call. */
const gatherMs = 20;

function writeLine(line: string): void {
  if (lines === '') setTimeout(writeLines, gatherMs).unref();
  lines += line;
  if (!patient.test(line)) writeLines();
}

/**
 * Writes what waits to be written.
 * Never a synchronous write: a client that leaves its end of the pipe unread would hold up every kill with it.
 */
export function writeLines(): void {
  if (lines !== '' && process.stderr.writableLength < maxUnreadBytes) process.stderr.write(lines);
  lines = '';
}
