/** The engine: run, status, kill, operations and result on one deployment, for whoever asks: MCP, HTTP or a terminal. */

import { LeashError } from '../domain/errors.js';
import type { OperationRecord } from '../domain/operation.js';
import type { RequestId } from '../domain/tag.js';
import { atDeadline } from '../domain/verdict.js';
import { type Cause, type Verdict, isFinal } from '../domain/words.js';
import type { Admission } from './admission.js';
import { pause } from './clock.js';
import { createConclude } from './conclude.js';
import { createFind } from './find.js';
import { createForeign } from './foreign.js';
import { keepRecord, noteProblem } from './keep.js';
import { createKiller } from './kill.js';
import { type Listing, type OperationsList, createListing, maySee, settlingLooks, settlingPauseMs, storedFor } from './listing.js';
import { type LiveOperation, addLook, judgeLive, moveWait, nodesOf, refreshRecord } from './live.js';
import { owns } from './owner.js';
import type { Clock, Deployment, InstanceRecord, Liveness, Log, Store } from './ports.js';
import { createRegistry } from './registry.js';
import { type Caller, type RunAnswer, type RunRequest, createRun } from './run.js';
import { createSettle } from './settle.js';
import { type ShutdownReport, createShutdown } from './shutdown.js';
import { type Sweep, type SweepMode, createSweep } from './sweep.js';
import { createWatch } from './watch.js';

/** What `status` and `kill` take: an operation id, or the id of a request of the caller's own session. */
export type Reference = { operationId: string } | { requestId: RequestId };

export type { OperationsList };

export interface Inspection {
  record: OperationRecord;
  verdict: Verdict | null;
  documents: Uint8Array[] | null;
}

export interface Leash {
  run(request: RunRequest, caller: Caller): Promise<RunAnswer>;
  /** Looks now; waits up to `waitMs` for its end. @throws LeashError not_found, expired, unreachable */
  status(reference: Reference, caller: Caller, waitMs: number): Promise<Inspection>;
  /**
   * Kills and verifies for up to `waitMs`; goes on in the background after that.
   * `hadEnded`: it had before the kill was asked for.
   * @param cause when it is not the tool `kill`, by the principal itself or an administrator
   * @throws LeashError not_found, expired, unreachable
   */
  kill(reference: Reference, caller: Caller, waitMs: number, cause?: Cause): Promise<Inspection & { hadEnded: boolean }>;
  /** Those of the caller's principal; of every principal for an administrator. */
  operations(caller: Caller): Promise<OperationsList>;
  /** Kills what calls of this session started and has not ended. */
  endSession(session: string): void;
  /** Whether a call of this session started something that has not ended. */
  isBusy(session: string): boolean;
  /** What an ended operation has read. @throws LeashError not_found, not_ended, expired */
  result(reference: Reference, caller: Caller): Promise<{ record: OperationRecord; documents: Uint8Array[] }>;
  load(): { running: number; queued: number };
  /** What dead processes left; started by whoever serves. */
  sweep: Sweep;
  shutdown(budgetMs: number): Promise<ShutdownReport>;
}

/** The engine of one deployment, as one of several. */
export interface Engine extends Leash {
  /** Whether it is an operation of the caller's that it has sent or is about to (or a request of this session that led to one), or one that it follows for another process. */
  holds(reference: Reference, caller: Pick<Caller, 'principal' | 'admin' | 'session'>): 'own' | 'followed' | null;
  /** The records of what it has begun and has not ended, as far as the caller may see them: without a look at the database. */
  live(caller: Pick<Caller, 'principal' | 'admin'>): OperationRecord[];
  /** What `operations` shows, in two steps. */
  listing: Listing;
  /** Kills what it has begun, and verifies for up to so long; no new work from now on, but when not all is proven to have ended. */
  disconnect(budgetMs: number): Promise<ShutdownReport>;
}

export interface LeashDeps {
  deployment: Deployment;
  store: Store;
  clock: Clock;
  log: Log;
  instance: string;
  /** This process, as others can tell whether it lives. */
  self: InstanceRecord;
  livenessOf(instance: string): Promise<Liveness>;
  sweepMode: SweepMode;
  newOperationId(): string;
  /** Of the whole process, where it has several engines. */
  admission: Admission;
  limits: { deadlineGraceMs: number; keepMs: number };
  checkPolicy(request: RunRequest): Promise<void>;
}

/** How long the answer of a kill waits for the store to have its record, in milliseconds. */
const keptWithinMs = 500;

export function createLeash(deps: LeashDeps): Engine {
  const { deployment, store, clock, log, limits, self, livenessOf, admission } = deps;
  const registry = createRegistry();
  const watch = createWatch(deployment);
  const conclude = createConclude({ clock, store, log, forget: (operation) => { registry.forget(operation); } });
  const killer = createKiller({ deployment, watch, clock, log, conclude });
  const foreign = createForeign({ deployment, store, clock, registry, watch, livenessOf });
  const settle = createSettle({ deployment, store, clock, log, registry, watch, livenessOf });
  const { find, adopt } = createFind({ deployment, store, clock, registry, watch, foreign, settle, livenessOf });
  const sweep = createSweep({ deployment, store, clock, log, registry, watch, adopt, killer, conclude, settle, self, livenessOf, mode: deps.sweepMode });
  const listing = createListing({ deployment, store, clock, registry, watch, foreign, settle, conclude, adopt, livenessOf });
  const shutdown = createShutdown({ deployment, registry, killer, conclude, clock, log });
  const run = createRun({ ...deps, deadlineGraceMs: limits.deadlineGraceMs, keepMs: limits.keepMs, registry, admission, watch, killer, conclude, isClosing: shutdown.isClosing });

  async function locate(reference: Reference, caller: Caller) {
    const operationId = 'operationId' in reference ? reference.operationId : registry.idOfRequest(caller.session, reference.requestId);
    if (operationId === null) {
      throw new LeashError('not_found', 'No request with this id started an operation in this session.');
    }
    const found = await find(operationId, caller);
    if (found.kind !== 'not_found') return found;
    const { looked, silent } = found;
    if (silent.length > 0) {
      const names = silent.map(({ node, reason }) => `${node} (${reason})`).join(', ');
      throw new LeashError('unreachable', `There is no record of operation ${operationId}, and ${names} did not answer: it may still run there.`);
    }
    const problem = store.problem();
    throw new LeashError('not_found', `There is no record of operation ${operationId}${problem === null ? '' : `, as far as it can be read: ${problem}`}.`, {
      database: looked.length > 0 ? `No operation or cursor with its tag that this user may see is on ${looked.join(', ')}.` : undefined,
    });
  }

  /** Asks the database now, and again while the answer is only that one look missed it. */
  async function lookNow(operation: LiveOperation): Promise<void> {
    for (let round = 0; round < settlingLooks; round += 1) {
      if (round > 0) await pause(clock, settlingPauseMs);
      if (operation.record.outcome !== null || (operation.execution === null && !operation.foreign)) break;
      for (const look of await watch.look(nodesOf(operation, deployment.nodes()))) addLook(operation, look);
      const judgement = judgeLive(operation);
      if (judgement.server !== 'not_seen' || isFinal(judgement.verdict)) break;
    }
  }

  function ofSession(session: string): LiveOperation[] {
    return registry.all().filter(({ foreign: isForeign, record }) => !isForeign && record.session === session && record.outcome === null);
  }

  /** What one has read that has just ended is on its way to the store. */
  async function documentsOf(operationId: string): Promise<Uint8Array[] | null> {
    const live = registry.get(operationId);
    return live !== null && !live.foreign ? live.documents : await store.getDocuments(operationId);
  }

  async function inspect(record: OperationRecord, verdict: Verdict | null): Promise<Inspection> {
    const documents = record.outcome === 'succeeded' ? await documentsOf(record.operationId) : null;
    noteProblem(store, record);
    return { record, verdict, documents };
  }

  return {
    run,
    load: () => admission.load(),
    sweep,
    shutdown(budgetMs) {
      sweep.stop();
      return shutdown.shutdown(budgetMs);
    },

    async status(reference, caller, waitMs) {
      const found = await locate(reference, caller);
      if (found.kind === 'recorded') return inspect(found.record, found.record.kill?.verdict ?? null);
      const { operation } = found;
      const settled = Promise.race([operation.concluded.promise, aborted(caller.signal)]);
      if (waitMs > 0) await (operation.foreign ? foreign.untilUnseen(operation, waitMs, settled) : pause(clock, waitMs, settled));
      await lookNow(operation);
      const recorded = await foreign.takeEnd(operation);
      if (recorded !== null) return inspect(recorded, recorded.kill?.verdict ?? null);
      conclude(operation);
      return inspect(operation.record, operation.record.kill?.verdict ?? null);
    },

    async kill(reference, caller, waitMs, cause) {
      const found = await locate(reference, caller);
      // An ended operation is not killed: the verdict says what had become of it, or what an earlier kill did.
      if (found.kind === 'recorded') return { ...(await inspect(found.record, found.record.kill?.verdict ?? verdictOfEnded(found.record))), hadEnded: found.record.outcome !== null };
      const { operation } = found;
      const hadEnded = operation.record.outcome !== null;
      // Ended, and on its way to the store: the same, unless an earlier kill has still to report.
      if (hadEnded && operation.killTask === null) return { ...(await inspect(operation.record, verdictOfEnded(operation.record))), hadEnded };
      if ((cause === 'tasks_cancel' || cause === 'stream_closed') && operation.record.wait === 'detached') moveWait(operation, 'cancelled');
      const task = killer.kill(operation, cause ?? (owns(caller.principal, operation.record) ? 'kill_tool' : 'administrator'));
      await pause(clock, waitMs, Promise.race([task.done, aborted(caller.signal)]));
      const judgement = refreshRecord(clock, operation);
      const verdict = atDeadline(judgement, operation.facts);
      // Whoever is told the verdict may ask another process for it next.
      if (isFinal(verdict)) await pause(clock, keptWithinMs, keepRecord(store, operation.record));
      // Whoever gives no time to look is not told that too little was seen.
      return { ...(await inspect(operation.record, waitMs === 0 && verdict === 'unknown' ? judgement.verdict : verdict)), hadEnded };
    },

    operations: async (caller) => {
      const list = await listing(caller);
      return await list(await storedFor(store, caller));
    },
    listing,

    endSession(session) {
      for (const operation of ofSession(session)) {
        moveWait(operation, 'gone');
        killer.kill(operation, 'session_ended');
      }
    },

    holds(reference, caller) {
      const operation = 'operationId' in reference ? registry.get(reference.operationId) : null;
      if (operation !== null && maySee(caller, operation.record)) return operation.foreign ? 'followed' : 'own';
      return 'requestId' in reference && registry.idOfRequest(caller.session, reference.requestId) !== null ? 'own' : null;
    },

    live: (caller) => registry.all().filter(({ foreign: isForeign, record }) => !isForeign && record.outcome === null && maySee(caller, record)).map(({ record }) => record),

    async disconnect(budgetMs) {
      const report = await shutdown.disconnect(budgetMs);
      if (report.allProven) sweep.stop();
      return report;
    },

    isBusy: (session) => ofSession(session).length > 0,

    async result(reference, caller) {
      const found = await locate(reference, caller);
      const record = found.kind === 'live' ? found.operation.record : found.record;
      if (found.kind === 'live' && record.outcome === null) throw new LeashError('not_ended', `Operation ${record.operationId} has not ended, so it has no result yet.`);
      const documents = await documentsOf(record.operationId);
      if (record.export !== null) throw new LeashError('bad_argument', `Operation ${record.operationId} is an export: its documents are in a file.`, { database: 'It has ended.', next: `Read the resource mongo-leash://operations/${record.operationId}/result.` });
      if (documents === null && record.documentsRead > 0) {
        throw new LeashError('expired', `The documents of operation ${record.operationId} are not kept any more.`);
      }
      return { record, documents: documents ?? [] };
    },
  };
}

function verdictOfEnded(record: OperationRecord): Verdict {
  switch (record.outcome) {
    case null:
      return 'unknown';
    case 'never_sent':
      return 'never_sent';
    case 'lost':
      return 'gone';
    case 'killed':
      return 'stopped';
    default:
      return 'ended_first';
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => { resolve(); }, { once: true });
  });
}
