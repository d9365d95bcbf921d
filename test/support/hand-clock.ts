/** A clock that stands until a test moves it, and a log that is kept. */

import type { Clock, Log } from '../../src/core/ports.js';

export function createHandClock(): Clock & { pass(ms: number): void } {
  let nowMs = 0;
  return {
    now: () => nowMs,
    iso: (at = nowMs) => new Date(at).toISOString(),
    after: () => () => undefined,
    pass: (ms) => void (nowMs += ms),
  };
}

export interface KeptLog extends Log {
  lines: { level: string; message: string; fields: Record<string, unknown> }[];
}

export function createKeptLog(): KeptLog {
  const lines: KeptLog['lines'] = [];
  const keep = (level: string) => (fields: object, message: string) => void lines.push({ level, message, fields: { ...fields } });
  return { lines, debug: keep('debug'), info: keep('info'), warn: keep('warn'), error: keep('error') };
}
