/** The record of an operation as it stands before anything is sent. */

import type { OperationRecord } from '../domain/operation.js';
import { encodeRequestId, formatTag, principalHash } from '../domain/tag.js';
import type { Caller, RunRequest } from './run.js';

export interface RecordStart {
  operationId: string;
  instance: string;
  /** ISO 8601 UTC, like the deadline. */
  createdAt: string;
  deadlineAt: string;
  /** How long it is kept after its end when the request does not say, in milliseconds. */
  keepMs: number;
}

export function newRecord(request: RunRequest, caller: Caller, start: RecordStart): OperationRecord {
  const { operationId, instance, createdAt, deadlineAt } = start;
  // Each field by its name: with a spread the engine makes a slow object of it, at forty times the cost.
  return {
    operationId,
    instance,
    createdAt,
    deadlineAt,
    principal: caller.principal,
    session: caller.session,
    requestId: caller.requestId,
    connectionId: request.connectionId,
    tool: request.tool,
    database: request.on.db,
    collection: request.on.coll,
    digest: request.digest,
    tag: formatTag({
      instance,
      operationId,
      principal: principalHash(caller.principal),
      session: caller.session,
      kind: request.writes === null ? 'r' : 'w',
      request: encodeRequestId(caller.requestId),
      own: request.ownComment,
    }),
    sentAt: null,
    endedAt: null,
    elapsedMs: 0,
    maxTimeMS: request.execute.maxTimeMS,
    node: null,
    whereabouts: null,
    wait: 'waiting',
    server: 'not_sent',
    outcome: null,
    cause: null,
    by: null,
    reason: 'Nothing has been sent to the database yet.',
    documentsRead: 0,
    more: null,
    error: null,
    writes: request.writes,
    export: request.sink?.report() ?? null,
    kill: null,
    evidence: [],
    notes: request.notes,
    answerAs: request.answerAs,
    keepMs: request.keepMs ?? start.keepMs,
    task: false,
  };
}
