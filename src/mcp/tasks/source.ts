/** What a native task is, whatever the protocol version: one who knows it tells what it does, and stops it. */

import type { Caller } from '../../core/run.js';
import type { ToolAnswer } from '../tool.js';

export interface TaskView {
  /** For an operation, its id. */
  taskId: string;
  /** `ended`: it has an answer, or the error that came in place of one. */
  state: 'working' | 'input_required' | 'cancelled' | 'ended';
  /** What the database reports, in words. */
  statusMessage: string;
  /** ISO 8601 UTC. */
  createdAt: string;
  lastUpdatedAt: string;
  /** How long it is kept at least from its creation on. */
  ttlMs: number | null;
  pollIntervalMs: number;
  /** What the client is to answer, by key, while `input_required`. */
  inputRequests?: Record<string, unknown>;
  /** What the call would have been answered; also of a cancelled one. */
  answer?: ToolAnswer;
  /** A failure of the protocol's kind, not of the tool's. */
  error?: { code: number; message: string };
}

/** What a cancel has come to; `hadEnded`: there was nothing to cancel any more when it was asked for. */
export type CancelledView = TaskView & { hadEnded: boolean };

/** Each is asked in turn: null means that the task is none of its own. An id that it knows and must not tell of throws. */
export interface TaskSource {
  /** @throws LeashError not_found, expired, unreachable */
  get(taskId: string, caller: Caller): Promise<TaskView | null>;
  /** Until it has ended, waits for input, or the caller's signal aborts. @throws LeashError as `get` */
  wait(taskId: string, caller: Caller): Promise<TaskView | null>;
  /** Stops it, and verifies for up to `waitMs`; goes on in the background after that. @throws LeashError as `get` */
  cancel(taskId: string, caller: Caller, waitMs: number): Promise<CancelledView | null>;
  /** Takes answers of the client to what it asked. @throws LeashError as `get` */
  update(taskId: string, inputResponses: Record<string, unknown>, caller: Caller): Promise<TaskView | null>;
  /** Newest first. */
  list(caller: Caller): Promise<TaskView[]>;
}
