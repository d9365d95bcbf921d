/** Logs go to stderr, line by line: stdout of a stdio server is JSON-RPC only. */

import { type Logger, pino } from 'pino';

/** What may wait for a reader of stderr that does not read, in bytes; lines beyond it are dropped. */
const maxUnreadBytes = 1_048_576;

export function createLogger(level: string, bindings: Record<string, unknown> = {}): Logger {
  // A log that nobody reads must not end the process before the kills are proven.
  process.stderr.on('error', () => undefined);
  return pino({ level, base: { name: 'mongo-leash', pid: process.pid, ...bindings } }, { write: writeLine });
}

/** Never a synchronous write: a client that leaves its end of the pipe unread would hold up every kill with it. */
function writeLine(line: string): void {
  if (process.stderr.writableLength < maxUnreadBytes) process.stderr.write(line);
}
