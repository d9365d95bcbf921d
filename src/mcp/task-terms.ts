/** What a client's wish for a native task means for the request: shared by the tools that may become one. */

import type { RunRequest } from '../core/request.js';
import type { ToolCaller, ToolLimits } from './tool.js';

export type TaskTerms = Pick<RunRequest, 'asTask' | 'keepMs'> & { waitMs?: number };

/** A client that demands a task waits for nothing, and may say for how long it is kept. */
export function taskTerms({ task }: ToolCaller, limits: ToolLimits, notes: string[]): TaskTerms {
  if (task === null) return { asTask: 'never' };
  if (!task.demanded) return { asTask: 'when_detached' };
  const { ttlMs } = task;
  return { asTask: 'always', waitMs: 0, keepMs: ttlMs === undefined ? undefined : atMost('ttl', ttlMs, limits.maxRetentionMs, notes) };
}

/** What was asked for, or the most that this server allows, with a note. */
export function atMost(name: string, asked: number, ceiling: number, notes: string[]): number {
  if (asked <= ceiling) return asked;
  notes.push(`${name} was ${asked}; this server allows at most ${ceiling}, which was used.`);
  return ceiling;
}
