/** The engine: run, status, kill, operations and result on one deployment, for whoever asks: MCP, HTTP or a terminal. */

import { LeashError } from '../domain/errors.js';
import type { OperationRecord } from '../domain/operation.js';
import { type RequestId, principalHash } from '../domain/tag.js';
import { atDeadline } from '../domain/verdict.js';
import { type Cause, type Verdict, isFinal } from '../domain/words.js';
import { type AdmissionLimits, createAdmission } from './admission.js';
import { pause } from './clock.js';
import { createConclude } from './conclude.js';
import { createFind, recordOfForeign } from './find.js';
import { createForeign } from './foreign.js';
import { keepRecord, noteProblem } from './keep.js';
import { createKiller } from './kill.js';
import { type LiveOperation, addLook, judgeLive, moveWait, nodesOf, refreshRecord } from './live.js';
import { hashedPrincipal, owns } from './owner.js';
import type { Clock, Deployment, InstanceRecord, Liveness, Log, Look, Store } from './ports.js';
import { createRegistry } from './registry.js';
import { type Caller, type RunAnswer, type RunRequest, createRun } from './run.js';
import { createSettle } from './settle.js';
import { type ShutdownReport, createShutdown } from './shutdown.js';
import { type Sweep, type SweepMode, createSweep } from './sweep.js';
import { unseenRecord } from './unseen.js';
import { createWatch } from './watch.js';

/** What `status` and `kill` take: an operation id, or the id of a request of the caller's own session. */
export type Reference = { operationId: string } | { requestId: RequestId };

export interface Inspection {
  record: OperationRecord;
  verdict: Verdict | null;
  documents: Uint8Array[] | null;
}

export interface OperationsList {
  running: OperationRecord[];
  ended: OperationRecord[];
  /** Without an end on record, and not seen now: what became of them cannot be told from here. */
  unseen: OperationRecord[];
  /** Nodes that did not answer: what runs there is unknown. */
  silent: { node: string; reason: string }[];
  looked: string[];
  /** Why earlier operations may be missing; null when they are not. */
  storeProblem: string | null;
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
  limits: AdmissionLimits & { deadlineGraceMs: number; keepMs: number };
  checkPolicy(request: RunRequest): Promise<void>;
}

/** Looks in a row that settle whether an operation that was just missed is gone. */
const settlingLooks = 6;
const settlingPauseMs = 15;
/** How long the answer of a kill waits for the store to have its record, in milliseconds. */
const keptWithinMs = 500;

export function createLeash(deps: LeashDeps): Leash {
  const { deployment, store, clock, log, limits, self, livenessOf } = deps;
  const registry = createRegistry();
  const admission = createAdmission(limits);
  const watch = createWatch(deployment);
  const conclude = createConclude({ clock, store, log, forget: (operation) => { registry.forget(operation); } });
  const killer = createKiller({ deployment, watch, clock, log, conclude });
  const foreign = createForeign({ deployment, store, clock, registry, watch, livenessOf });
  const settle = createSettle({ deployment, store, clock, log, registry, watch, livenessOf });
  const { find, adopt } = createFind({ deployment, store, clock, registry, watch, foreign, settle, livenessOf });
  const sweep = createSweep({ deployment, store, clock, log, registry, watch, adopt, killer, conclude, settle, self, livenessOf, mode: deps.sweepMode });
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

  /** Takes looks into what this caller has open: whether further ones may settle that one of these is gone. */
  async function justMissed(looks: readonly Look[], caller: Caller): Promise<boolean> {
    let missed = false;
    for (const operation of registry.all()) {
      if (!maySee(caller, operation.record)) continue;
      if (operation.execution !== null || operation.foreign) for (const look of looks) if (nodesOf(operation, [look.node]).includes(look.node)) addLook(operation, look);
      if ((await foreign.takeEnd(operation)) !== null) continue;
      const judgement = conclude(operation);
      missed ||= judgement.server === 'not_seen' && !isFinal(judgement.verdict);
    }
    return missed && looks.every((look) => look.ok);
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

    async operations(caller) {
      await deployment.ready();
      const hash = principalHash(caller.principal);
      const admin = caller.admin === true;
      let looks = await watch.look(deployment.nodes());
      for (let round = 1; (await justMissed(looks, caller)) && round < settlingLooks; round += 1) {
        await pause(clock, settlingPauseMs);
        looks = await watch.look(deployment.nodes());
      }
      const running = new Map<string, OperationRecord>();
      for (const { record } of registry.all()) if (maySee(caller, record) && record.outcome === null) running.set(record.operationId, record);
      for (const look of looks) {
        if (!look.ok) continue;
        for (const hit of look.hits) {
          const id = hit.tag.operationId;
          if ((!admin && hit.tag.principal !== hash) || running.has(id) || registry.get(id) !== null) continue;
          const record = await store.get(id);
          const principal = record?.principal ?? (hit.tag.principal === hash ? caller.principal : hashedPrincipal(hit.tag.principal));
          if (record !== null && record.outcome !== null) {
            // Its end is recorded, and yet this look saw it: the database is the witness.
            running.set(id, { ...recordOfForeign(clock, hit, principal), reason: 'The last look found its tag although its end is recorded; look again.' });
            continue;
          }
          const operation = adopt(hit, principal, record);
          addLook(operation, look);
          refreshRecord(clock, operation);
          running.set(id, operation.record);
        }
      }
      // What has ended in this very call is on its way to the store.
      const justEnded = registry.all().map(({ record }) => record).filter((record) => maySee(caller, record) && record.outcome !== null);
      const principals = admin ? [undefined] : [caller.principal, hashedPrincipal(hash)];
      const stored = (await Promise.all(principals.map((principal) => store.list(principal)))).flat().sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
      const records = stored.filter(({ operationId }) => !running.has(operationId) && !justEnded.some((record) => record.operationId === operationId));
      const settled = await settle(records);
      const known = records.map((record) => settled.get(record.operationId) ?? record);
      const ended = [...justEnded, ...known.filter((record) => record.outcome !== null)];
      return {
        unseen: await Promise.all(known.filter(({ outcome }) => outcome === null).map(async (record) => unseenRecord(record, looks, await livenessOf(record.instance)))),
        storeProblem: store.problem(),
        running: [...running.values()],
        ended,
        looked: looks.filter((look) => look.ok).map((look) => look.node),
        silent: looks.flatMap((look) => (look.ok ? [] : [{ node: look.node, reason: look.reason }])),
      };
    },

    endSession(session) {
      for (const operation of ofSession(session)) {
        moveWait(operation, 'gone');
        killer.kill(operation, 'session_ended');
      }
    },

    isBusy: (session) => ofSession(session).length > 0,

    async result(reference, caller) {
      const found = await locate(reference, caller);
      const record = found.kind === 'live' ? found.operation.record : found.record;
      if (found.kind === 'live' && record.outcome === null) throw new LeashError('not_ended', `Operation ${record.operationId} has not ended, so it has no result yet.`);
      const documents = await documentsOf(record.operationId);
      if (documents === null && record.documentsRead > 0) {
        throw new LeashError('expired', `The documents of operation ${record.operationId} are not kept any more.`);
      }
      return { record, documents: documents ?? [] };
    },
  };
}

function maySee({ principal, admin }: Caller, record: OperationRecord): boolean {
  return admin === true || owns(principal, record);
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
