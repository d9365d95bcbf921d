/** Finds an operation by its id: in this process, in the store, or, with no record of it, by its tag in the database. */

import type { OperationRecord } from '../domain/operation.js';
import { principalHash } from '../domain/tag.js';
import type { Caller } from './run.js';
import { type LiveOperation, addLook, createLive } from './live.js';
import type { Clock, Deployment, Hit, Look, Store } from './ports.js';
import type { Registry } from './registry.js';
import type { Watch } from './watch.js';

export type Found =
  | { kind: 'live'; operation: LiveOperation }
  /** Its record is all there is: it has ended, or what became of it was given up. */
  | { kind: 'recorded'; record: OperationRecord }
  /** `silent`: nodes that did not answer, so that it may still run there. */
  | { kind: 'not_found'; looked: string[]; silent: { node: string; reason: string }[] };

export interface FindDeps {
  deployment: Deployment;
  store: Store;
  clock: Clock;
  registry: Registry;
  watch: Watch;
}

export interface Find {
  /** Others' operations are not found, in the same way as ones that do not exist. @throws LeashError unreachable */
  find(operationId: string, caller: Pick<Caller, 'principal'>): Promise<Found>;
  /** Follows an operation of this principal that another process runs, from the look that found it. */
  adopt(hit: Hit, principal: string): LiveOperation;
}

export function createFind({ deployment, store, clock, registry, watch }: FindDeps): Find {
  async function find(operationId: string, { principal }: Pick<Caller, 'principal'>): Promise<Found> {
    const live = registry.get(operationId);
    if (live !== null) return live.record.principal === principal ? { kind: 'live', operation: live } : nowhere([]);
    const record = await store.get(operationId);
    if (record !== null && record.principal !== principal) return nowhere([]);
    if (record !== null && record.outcome !== null) return { kind: 'recorded', record };
    await deployment.ready();
    const looks = await watch.look(deployment.nodes());
    const hit = looks.flatMap((look) => (look.ok ? look.hits : [])).find(({ tag }) => tag.operationId === operationId && tag.principal === principalHash(principal));
    // A record without an outcome and no trace in the database: what became of it stays unknown.
    if (hit === undefined) return record === null ? nowhere(looks) : { kind: 'recorded', record };
    const adopted = adopt(hit, principal);
    for (const look of looks) addLook(adopted, look);
    return { kind: 'live', operation: adopted };
  }

  function adopt({ tag, sighting }: Hit, principal: string): LiveOperation {
    const known = registry.get(tag.operationId);
    if (known !== null) return known;
    const operation = createLive(clock, recordOfForeign(clock, { tag, sighting }, principal), { foreign: true, writes: tag.kind === 'w', deadlineInMs: Number.POSITIVE_INFINITY });
    registry.add(operation);
    return operation;
  }

  return { find, adopt };
}

function nowhere(looks: Look[]): Found {
  return {
    kind: 'not_found',
    looked: looks.filter((look) => look.ok).map((look) => look.node),
    silent: looks.flatMap((look) => (look.ok ? [] : [{ node: look.node, reason: look.reason }])),
  };
}

/** The server shows an operation on the database as `database.$cmd.aggregate`. */
function splitNamespace(namespace: string): { database: string; collection: string | null } {
  const dot = namespace.indexOf('.');
  if (dot === -1) return { database: namespace, collection: null };
  const collection = namespace.slice(dot + 1);
  return { database: namespace.slice(0, dot), collection: collection.startsWith('$cmd') ? null : collection };
}

/** What a tag and a sighting tell of an operation that another process runs. */
export function recordOfForeign(clock: Clock, { tag, sighting }: Hit, principal: string): OperationRecord {
  return {
    operationId: tag.operationId,
    instance: tag.instance,
    principal,
    session: tag.session,
    requestId: tag.request,
    tool: 'run',
    ...splitNamespace(sighting.namespace),
    digest: '',
    tag: '',
    createdAt: clock.iso(),
    sentAt: null,
    endedAt: null,
    elapsedMs: 0,
    maxTimeMS: null,
    deadlineAt: null,
    node: null,
    wait: 'gone',
    server: 'running',
    outcome: null,
    cause: null,
    by: null,
    reason: 'Found by its tag in the database; another process started it.',
    documentsRead: 0,
    more: null,
    error: null,
    writes: tag.kind === 'w' ? { stage: 'unknown', target: sighting.namespace, effects: 'It can write: partial or full effects are possible.' } : null,
    kill: null,
    evidence: [],
    notes: [],
  };
}
