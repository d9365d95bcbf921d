/** Finds an operation by its id: in this process, in the store, or, with no record of it, by its tag in the database. */

import { LeashError } from '../domain/errors.js';
import type { OperationRecord } from '../domain/operation.js';
import { type RequestId, decodeRequestId, principalHash } from '../domain/tag.js';
import type { Caller } from './run.js';
import type { Foreign } from './foreign.js';
import { type LiveOperation, addLook, createLive } from './live.js';
import { hashedPrincipal, owns } from './owner.js';
import type { Clock, Deployment, Expired, Hit, Liveness, Look, Store } from './ports.js';
import type { Registry } from './registry.js';
import type { Settle } from './settle.js';
import { unseenRecord } from './unseen.js';
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
  foreign: Foreign;
  settle: Settle;
  livenessOf(instance: string): Promise<Liveness>;
}

export interface Find {
  /** Others' operations are not found, in the same way as ones that do not exist. @throws LeashError unreachable, expired */
  find(operationId: string, caller: Pick<Caller, 'principal' | 'admin'>): Promise<Found>;
  /** Follows an operation of this principal that another process runs, from the look that found it and the record that its process left. */
  adopt(hit: Hit, principal: string, kept?: OperationRecord | null): LiveOperation;
}

export function createFind({ deployment, store, clock, registry, watch, foreign, settle, livenessOf }: FindDeps): Find {
  async function find(operationId: string, { principal, admin = false }: Pick<Caller, 'principal' | 'admin'>): Promise<Found> {
    const mayHave = (record: Pick<OperationRecord, 'principal'> | null) => record !== null && (admin || owns(principal, record));
    const live = registry.get(operationId);
    if (live !== null && mayHave(live.record) && !(live.foreign && live.killTask === null)) return { kind: 'live', operation: live };
    const kept = await store.get(operationId);
    if (live !== null && mayHave(live.record)) {
      if (kept === null || kept.outcome === null) return { kind: 'live', operation: live };
      // The process that runs it has recorded its end meanwhile.
      registry.forget(live);
      return { kind: 'recorded', record: kept };
    }
    // Another principal's record goes on like none at all, through the same look, so that nobody can tell the two apart.
    const record = mayHave(kept) ? kept : null;
    // An administrator is told what the database says before what a record says.
    // What only absence has proven is asked again: the database is the witness.
    if (record !== null && record.outcome !== null && record.server !== 'not_seen' && !admin) return { kind: 'recorded', record };
    await deployment.ready();
    const looks = await watch.look(deployment.nodes());
    const hit = looks.flatMap((look) => (look.ok ? look.hits : [])).find(({ tag }) => tag.operationId === operationId && (admin || tag.principal === principalHash(principal)));
    if (hit === undefined) {
      if (record !== null) return { kind: 'recorded', record: record.outcome === null ? await endOf(record, looks) : record };
      const gone = await store.expired(operationId);
      if (gone !== null && mayHave(gone)) throw expiredError(gone, looks);
      return nowhere(looks);
    }
    const adopted = adopt(hit, record?.principal ?? (admin ? hashedPrincipal(hit.tag.principal) : principal), record);
    for (const look of looks) addLook(adopted, look);
    return { kind: 'live', operation: adopted };
  }

  /** A record without an outcome and no trace in the database: its process says how it ended, or is dead, or nobody knows. */
  async function endOf(record: OperationRecord, looks: readonly Look[]): Promise<OperationRecord> {
    const settled = await settle([record]);
    return settled.get(record.operationId) ?? (await foreign.recordedEnd(record)) ?? unseenRecord(record, looks, await livenessOf(record.instance));
  }

  function adopt(hit: Hit, principal: string, kept: OperationRecord | null = null): LiveOperation {
    const { tag } = hit;
    const known = registry.get(tag.operationId);
    if (known !== null) return known;
    const record = kept !== null && (kept.outcome === null || kept.outcome === 'lost') ? continued(kept) : recordOfForeign(clock, hit, principal);
    const runsForMs = Math.max(0, Date.parse(clock.iso()) - Date.parse(record.createdAt));
    const operation = createLive(clock, record, { foreign: true, writes: tag.kind === 'w', deadlineInMs: Number.POSITIVE_INFINITY, runsForMs, identity: tag });
    registry.add(operation);
    return operation;
  }

  return { find, adopt };
}

function nowhere(looks: readonly Look[]): Extract<Found, { kind: 'not_found' }> {
  return {
    kind: 'not_found',
    looked: looks.filter((look) => look.ok).map((look) => look.node),
    silent: looks.flatMap((look) => (look.ok ? [] : [{ node: look.node, reason: look.reason }])),
  };
}

/** What is left to say when the record is gone: how it ended, and where a look did not find it now. */
function expiredError({ operationId, outcome, cause, endedAt, expiredAt }: Expired, looks: readonly Look[]): LeashError {
  const { looked, silent } = nowhere(looks);
  const keptMs = Date.parse(expiredAt) - Date.parse(endedAt);
  const unseen = looked.length === 0 ? '' : ` No operation or cursor with its tag that this user may see is on ${looked.join(', ')}.`;
  const unasked = silent.map(({ node, reason }) => ` ${node} did not answer (${reason}).`).join('');
  return new LeashError('expired', `Operation ${operationId} ended (${outcome}) at ${endedAt}; its record was kept for ${keptMs} ms and is gone.`, {
    database: `Its end was on record${cause === null ? '' : ` (cause ${cause})`}.${unseen}${unasked}`,
    next: outcome === 'lost' ? 'How it ended is unknown: if it could write, look at its target before you run it again.' : undefined,
  });
}

/** The record that its process left, for one that the database shows: it has not ended, and its call is not here. */
function continued(kept: OperationRecord): OperationRecord {
  return { ...kept, wait: kept.wait === 'answered' ? 'answered' : 'gone', outcome: null, endedAt: null, by: null };
}

/** Somebody may have written a tag by hand. */
function requestIdOf(request: string): RequestId {
  try {
    return decodeRequestId(request);
  } catch {
    return request;
  }
}

/** The server shows an operation on the database as `database.$cmd.aggregate`. */
function splitNamespace(namespace: string): { database: string; collection: string | null } {
  const dot = namespace.indexOf('.');
  if (dot === -1) return { database: namespace, collection: null };
  const collection = namespace.slice(dot + 1);
  return { database: namespace.slice(0, dot), collection: collection.startsWith('$cmd') ? null : collection };
}

/** What a tag and a sighting tell of an operation that another process runs. */
export function recordOfForeign(clock: Clock, { tag, sighting }: Pick<Hit, 'tag' | 'sighting'>, principal: string): OperationRecord {
  return {
    operationId: tag.operationId,
    instance: tag.instance,
    principal,
    session: tag.session,
    requestId: requestIdOf(tag.request),
    tool: 'run',
    ...splitNamespace(sighting.namespace),
    digest: '',
    tag: '',
    createdAt: clock.iso(clock.now() - (sighting.secondsRunning ?? 0) * 1_000),
    sentAt: null,
    endedAt: null,
    elapsedMs: 0,
    maxTimeMS: null,
    deadlineAt: null,
    node: null,
    whereabouts: null,
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
    export: null,
    kill: null,
    evidence: [],
    notes: [],
    answerAs: null,
    keepMs: null,
    task: false,
  };
}
