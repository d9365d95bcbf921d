/** Tasks as the two protocol versions that have them write them: 2025-11-25 (part of the protocol) and 2026-07-28 (an extension). */

import type { CallToolResult, Result } from '@modelcontextprotocol/server';
import { toResult } from '../render.js';
import type { TaskView } from './source.js';

export const tasksExtension = 'io.modelcontextprotocol/tasks';
const relatedTaskKey = 'io.modelcontextprotocol/related-task';

export type Status = 'working' | 'input_required' | 'completed' | 'failed' | 'cancelled';

/** 2025-11-25: an answer that is an error is a task that failed. */
export function status2025({ state, answer, error }: TaskView): Status {
  if (state !== 'ended') return state;
  return error !== undefined || answer?.isError === true ? 'failed' : 'completed';
}

/** SEP-2663: `failed` is for errors of the protocol; a tool that reports an error has completed. */
export function status2026({ state, error }: TaskView): Status {
  if (state !== 'ended') return state;
  return error === undefined ? 'completed' : 'failed';
}

/** 2025-11-25, `Task`. */
export function task2025(view: TaskView): Record<string, unknown> {
  const { taskId, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = view;
  return { taskId, status: status2025(view), statusMessage, createdAt, lastUpdatedAt, ttl: ttlMs, pollInterval: pollIntervalMs };
}

/** 2025-11-25, the answer of a call that was asked for as a task. */
export function created2025(view: TaskView): Result {
  return { task: task2025(view) };
}

/** 2025-11-25, the answer of `tasks/result`: what the call would have been answered. */
export function result2025({ taskId, answer }: TaskView): CallToolResult {
  return { ...toResult(answer ?? { body: {}, isError: true }), _meta: { [relatedTaskKey]: { taskId } } };
}

function task2026(view: TaskView): Record<string, unknown> {
  const { taskId, statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs } = view;
  return { taskId, status: status2026(view), statusMessage, createdAt, lastUpdatedAt, ttlMs, pollIntervalMs };
}

/** 2026-07-28, the answer of a call that goes on as a task: flat, and without a result. */
export function created2026(view: TaskView): Result {
  return { ...task2026(view), resultType: 'task' };
}

/** 2026-07-28, `DetailedTask`: the result, the error or what is asked stands in it. */
export function detailed2026(view: TaskView): Result {
  const { state, answer, error, inputRequests } = view;
  return {
    ...task2026(view),
    resultType: 'complete',
    ...(state === 'input_required' ? { inputRequests } : {}),
    ...(state === 'ended' && error !== undefined ? { error } : {}),
    ...(state === 'ended' && answer !== undefined ? { result: { ...toResult(answer), resultType: 'complete' } } : {}),
  };
}

/** Whether the answer of a call is a task, of either version. */
export function isCreated(result: Result): boolean {
  return result['resultType'] === 'task' || result['task'] !== undefined;
}
