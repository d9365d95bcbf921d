/** Logs go to stderr, line by line and at once: stdout of a stdio server is JSON-RPC only. */

import { type Logger, destination, pino } from 'pino';

export function createLogger(level: string, bindings: Record<string, unknown> = {}): Logger {
  return pino({ level, base: { name: 'mongo-leash', pid: process.pid, ...bindings } }, destination({ dest: 2, sync: true }));
}
