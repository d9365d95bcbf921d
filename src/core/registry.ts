/** The operations of this process that have not ended, by id and by the request that started them. */

import type { RequestId } from '../domain/tag.js';
import type { LiveOperation } from './live.js';

export interface Registry {
  add(operation: LiveOperation): void;
  forget(operation: LiveOperation): void;
  get(operationId: string): LiveOperation | null;
  /** The operation id that a request of this session led to last, also after the operation's end. */
  idOfRequest(session: string, requestId: RequestId): string | null;
  /** One that asks the database for the same, for the same principal, and was handed over and left to run. */
  findDetached(principal: string, digest: string): LiveOperation | null;
  /** One that asks for the same, for the same principal, and whose caller still waits. */
  findWaiting(principal: string, digest: string): LiveOperation | null;
  /** Those of this request whose caller has no answer yet, or has just been handed one. */
  ofRequest(session: string, requestId: RequestId): LiveOperation[];
  all(): LiveOperation[];
}

/** Requests remembered per process: enough for every id that a client can still mean. */
const keptRequests = 10_000;

export function createRegistry(): Registry {
  const byId = new Map<string, LiveOperation>();
  /** Those that ask for the same, each set of them by whom and for what. */
  const alike = new Map<string, Set<LiveOperation>>();
  const requests = new Map<string, string>();
  const kindOf = (principal: string, digest: string) => `${digest} ${principal}`;
  const keyOf = (session: string, requestId: RequestId) => `${session} ${typeof requestId} ${requestId}`;

  function find(principal: string, digest: string, wait: string): LiveOperation | null {
    for (const operation of alike.get(kindOf(principal, digest)) ?? []) {
      const { record, killTask } = operation;
      if (killTask === null && record.outcome === null && record.wait === wait) return operation;
    }
    return null;
  }

  return {
    add(operation) {
      const { record } = operation;
      byId.set(record.operationId, operation);
      if (operation.foreign) return;
      const kind = kindOf(record.principal, record.digest);
      alike.set(kind, (alike.get(kind) ?? new Set()).add(operation));
      requests.set(keyOf(record.session, record.requestId), record.operationId);
      for (const oldest of requests.keys()) {
        if (requests.size <= keptRequests) break;
        requests.delete(oldest);
      }
    },
    forget(operation) {
      const { operationId, principal, digest } = operation.record;
      byId.delete(operationId);
      const kind = kindOf(principal, digest);
      const others = alike.get(kind);
      others?.delete(operation);
      if (others?.size === 0) alike.delete(kind);
    },
    get: (operationId) => byId.get(operationId) ?? null,
    idOfRequest: (session, requestId) => requests.get(keyOf(session, requestId)) ?? null,
    findDetached: (principal, digest) => find(principal, digest, 'detached'),
    findWaiting: (principal, digest) => find(principal, digest, 'waiting'),
    ofRequest: (session, requestId) => [...byId.values()].filter(({ record, foreign }) => !foreign && record.session === session && record.requestId === requestId),
    all: () => [...byId.values()],
  };
}
