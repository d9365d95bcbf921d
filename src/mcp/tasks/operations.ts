/** Operations as native tasks: the task id is the operation id, and what a task is said to do is what the database says. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Exports } from '../../core/exports.js';
import type { Inspection, Leash } from '../../core/leash.js';
import type { Caller } from '../../core/run.js';
import { LeashError } from '../../domain/errors.js';
import { idLengths, isOperationId } from '../../domain/ids.js';
import type { OperationRecord } from '../../domain/operation.js';
import { isRequestors } from '../../domain/words.js';
import { endedAnswer } from '../operation-answer.js';
import { nextForOpen } from '../next.js';
import { operationBody } from '../answer.js';
import type { ToolAnswer, ToolLimits } from '../tool.js';
import type { TaskSource, TaskView } from './source.js';

/** When a client is told to ask again, in milliseconds. */
export const pollIntervalMs = 1_000;
/** One call of `status` waits that long at most; `wait` calls it again. In milliseconds. */
const waitMs = 60_000;
/** What was sent, and is not seen and not answered that long after its deadline, has an end that nobody will know: in milliseconds. */
const givenUpAfterDeadlineMs = 60_000;
/** Of an id that cannot be one, as much is shown as one has characters. */
const maxShownChars = idLengths.operation;
/** JSON-RPC's code for a failure of the server itself. */
const internalErrorCode = -32_603;

export function createOperationTasks(leash: Leash, limits: ToolLimits, { placeOf }: Pick<Exports, 'placeOf'>, now: () => number = Date.now): TaskSource {
  const view = ({ record, documents }: Pick<Inspection, 'record' | 'documents'>) => taskView(record, documents, limits, now(), placeOf);
  const ask = async (taskId: string, caller: Caller, forMs: number) => view(await leash.status({ operationId: operationId(taskId) }, caller, forMs));

  return {
    get: (taskId, caller) => ask(taskId, caller, 0),
    async wait(taskId, caller) {
      for (;;) {
        const found = await ask(taskId, caller, waitMs);
        if (found.state !== 'working' || caller.signal.aborted) return found;
        // Of what another process has, and no look sees, the answer comes at once.
        await delay(pollIntervalMs, undefined, { signal: caller.signal }).catch(() => undefined);
      }
    },
    async cancel(taskId, caller, forMs) {
      const { hadEnded, ...inspection } = await leash.kill({ operationId: operationId(taskId) }, caller, forMs, 'tasks_cancel');
      return { ...view(inspection), hadEnded };
    },
    // An operation asks nothing, so there is nothing to take an answer for.
    update: (taskId, _inputResponses, caller) => ask(taskId, caller, 0),
    async list(caller) {
      const { running, unseen, ended } = await leash.operations({ ...caller, admin: false });
      const tasks = [...running, ...unseen, ...ended].filter((record) => record.task);
      return tasks.sort((a, b) => b.createdAt.localeCompare(a.createdAt)).map((record) => taskView(record, null, limits, now(), placeOf));
    },
  };
}

function operationId(taskId: string): string {
  if (!isOperationId(taskId)) throw new LeashError('not_found', `There is no record of operation ${taskId.slice(0, maxShownChars)}.`);
  return taskId;
}

/** @param now milliseconds since 1970 */
export function taskView(record: OperationRecord, documents: readonly Uint8Array[] | null, limits: ToolLimits, now: number, placeOf?: Exports['placeOf']): TaskView {
  const base = {
    taskId: record.operationId,
    createdAt: record.createdAt,
    lastUpdatedAt: record.endedAt ?? record.sentAt ?? record.createdAt,
    ttlMs: record.keepMs,
    pollIntervalMs,
    statusMessage: statusMessage(record),
  };
  if (record.outcome === null) return isGivenUp(record, now) ? { ...base, state: 'ended', answer: givenUpAnswer(record) } : { ...base, state: 'working' };
  // A bug of this server, and nothing was sent: that is no answer of the tool.
  if (record.outcome === 'never_sent' && record.error?.kind === 'internal') return { ...base, state: 'ended', error: { code: internalErrorCode, message: record.error.message } };
  const answer = endedAnswer(record, documents, record.answerAs ?? { canonical: false, responseBytes: limits.responseBytes }, limits, placeOf);
  return { ...base, state: isCancelled(record) ? 'cancelled' : 'ended', answer };
}

/** Proven to be stopped, or never sent, because whoever asked for it took it back. */
function isCancelled({ outcome, by, cause, error }: OperationRecord): boolean {
  if (!isRequestors(cause)) return false;
  return (outcome === 'killed' && by !== 'others') || (outcome === 'never_sent' && error === null);
}

/** Nothing can be learned of it any more: a client that asks again and again would ask for ever. */
function isGivenUp({ server, deadlineAt }: OperationRecord, now: number): boolean {
  const unseen = server === 'not_seen' || server === 'unreachable' || server === 'sent' || server === 'not_sent';
  return unseen && deadlineAt !== null && now > Date.parse(deadlineAt) + givenUpAfterDeadlineMs;
}

function givenUpAnswer(record: OperationRecord): ToolAnswer {
  return { isError: true, body: { ...operationBody(record, record.kill?.verdict ?? 'unknown'), next: nextForOpen(record) } };
}

function statusMessage({ outcome, server, reason, cause, kill }: OperationRecord): string {
  const stopping = outcome === null && kill !== null && cause !== null ? ` A kill was asked for (${cause}) and is not proven yet.` : '';
  return `${outcome ?? server}: ${reason}${stopping}`;
}
