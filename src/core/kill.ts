/** The one kill path: whatever the cause, an operation is stopped here, and proven to be, or said not to be. */

import { messageOf } from '../domain/errors.js';
import { type Fact, addFact, isLook } from '../domain/facts.js';
import type { Evidence, KillReport, KillSent } from '../domain/operation.js';
import { type Cause, isFinal } from '../domain/words.js';
import { atDeadline } from '../domain/verdict.js';
import { pause } from './clock.js';
import type { Conclude } from './conclude.js';
import { lookEvidence, shown } from './evidence.js';
import { type LiveOperation, addLook, isOf, judgeLive, nodesOf } from './live.js';
import type { Clock, Deployment, Hit, Log } from './ports.js';
import type { Watch } from './watch.js';

export interface KillTask {
  readonly cause: Cause;
  /** Settles when the verdict is final, or nothing more will be tried. */
  readonly done: Promise<void>;
  running(): boolean;
  /** The report as it stands now: `pending` while it is being checked. */
  report(): KillReport;
}

/** Waits between two looks, in milliseconds: quick at first, then gentle for what takes long to die. */
const lookPausesMs = [...Array<number>(20).fill(15), ...Array<number>(10).fill(50), ...Array<number>(20).fill(250), ...Array<number>(20).fill(1_000)];
const slowestPauseMs = 2_000;
/** What was never seen and is past its deadline by this long is given up: nothing more can be learned by looking. */
const giveUpAfterDeadlineMs = 60_000;
/** Kills that a report names at most. */
const keptKills = 10;
/** Looks that confirm the end after the call's own reply has proven it. */
const confirmingLooks = 3;
/** Refusals in a row after which the kill is left, to be asked for again: a single one mostly means that the operation has just ended. */
const refusalsEnough = 3;
/** How long the call's own reply is waited for after its absence was proven, before its connection is given up. */
const lateReplyMs = 2_000;

export interface Killer {
  /** Starts the kill, or joins the one that runs: one in flight per operation, the first cause is kept. */
  kill(operation: LiveOperation, cause: Cause): KillTask;
}

export function createKiller(deps: { deployment: Deployment; watch: Watch; clock: Clock; log: Log; conclude: Conclude }): Killer {
  const { deployment, watch, clock, log, conclude } = deps;

  function kill(operation: LiveOperation, cause: Cause): KillTask {
    if (operation.killTask?.running() === true) return operation.killTask;
    const { record } = operation;
    record.cause ??= cause;
    const requestedAt = clock.now();
    const firstFact = operation.facts.length;
    let before: Evidence[] = [];
    let endedAt: number | null = null;
    let refusals = 0;
    log.info({ operationId: record.operationId, requestId: record.requestId, cause }, 'kill requested');
    latch(operation);

    const task: KillTask = {
      cause,
      done: pursue().catch((error: unknown) => {
        log.error({ operationId: record.operationId, error: messageOf(error) }, 'the kill path failed');
      }).finally(() => {
        endedAt = clock.now();
        const judgement = conclude(operation);
        log.info({ operationId: record.operationId, requestId: record.requestId, cause, verdict: judgement.verdict, elapsedMs: Math.round(endedAt - requestedAt) }, 'kill ended');
        releaseCall(operation);
      }),
      running: () => endedAt === null,
      report() {
        const judgement = judgeLive(operation);
        return {
          verdict: endedAt === null ? judgement.verdict : atDeadline(judgement, operation.facts),
          reason: judgement.reason,
          cause: record.cause ?? cause,
          requestedAt: clock.iso(requestedAt),
          before,
          sent: [...operation.killsSent],
          after: lookEvidence(looksSinceKill(operation.facts, requestedAt), (t) => clock.iso(t)),
          elapsedMs: Math.round((endedAt ?? clock.now()) - requestedAt),
        };
      },
    };
    operation.killTask = task;
    return task;

    async function pursue(): Promise<void> {
      if (operation.execution === null && !operation.foreign) {
        await operation.callEnded.promise;
        return;
      }
      let absentSince: number | null = null;
      for (let round = 0; ; round += 1) {
        if (isFinal(conclude(operation).verdict)) return await confirm();
        const looks = await watch.look(nodesOf(operation, deployment.nodes()));
        for (const look of looks) addLook(operation, look);
        if (round === 0) before = lookEvidence(operation.facts.slice(firstFact), (t) => clock.iso(t));
        const judgement = conclude(operation);
        if (isFinal(judgement.verdict)) return await confirm();
        if (givenUp() || (refusals >= refusalsEnough && judgement.verdict === 'refused')) return;
        absentSince = judgement.awaitsReply === true ? (absentSince ?? clock.now()) : null;
        if (absentSince !== null && clock.now() - absentSince > lateReplyMs) operation.execution?.drop();
        await Promise.all(looks.flatMap((look) => (look.ok ? look.hits.map((hit) => killHit(look.node, look, hit)) : [])));
        await pause(clock, lookPausesMs[round] ?? slowestPauseMs, callInFlight(operation) ? operation.callEnded.promise : undefined);
      }
    }

    /** A report shows what the database says afterwards, also when the call's own reply has already proven the end. */
    async function confirm(): Promise<void> {
      if (operation.killsSent.length === 0 || lookedSinceKill(operation.facts)) return;
      for (let round = 0; round < confirmingLooks; round += 1) {
        const looks = await watch.look(nodesOf(operation, deployment.nodes()));
        for (const look of looks) addLook(operation, look);
        if (looks.every((look) => look.ok && !look.hits.some((hit) => isOf(operation, hit)))) break;
      }
      conclude(operation);
    }

    function givenUp(): boolean {
      const neverSeen = !operation.facts.some((fact) => fact.kind === 'seen');
      return neverSeen && clock.now() > operation.deadlineAt + giveUpAfterDeadlineMs;
    }

    async function killHit(node: string, look: Pick<Extract<Fact, { kind: 'seen' }>, 'process'>, { tag, sighting, origin }: Hit): Promise<void> {
      // A second kill of what is dying already only adds load.
      if (!isOf(operation, { tag }) || sighting.killPending) return;
      const sentAt = clock.now();
      addFact(operation.facts, { kind: 'kill_sent', t: sentAt, node, process: look.process });
      const sent: KillSent = { at: clock.iso(), node, method: sighting.kind === 'idle_cursor' ? 'killCursors' : 'killOp', target: shown(sighting.kind === 'idle_cursor' ? sighting.cursorId : sighting.opid) };
      addKillSent(operation.killsSent, sent);
      const reply = await deployment.kill(node, sighting, origin);
      if (reply.method !== undefined) sent.method = reply.method;
      if (reply.error !== undefined) sent.error = reply.error;
      refusals = reply.refused ? refusals + 1 : 0;
      if (reply.refused) addFact(operation.facts, { kind: 'kill_refused', t: clock.now(), node, sentAt, missing: reply.missing });
      else if (reply.error !== undefined) addFact(operation.facts, { kind: 'kill_failed', t: clock.now(), node, sentAt });
    }
  }

  function latch(operation: LiveOperation): void {
    if (!operation.facts.some((fact) => fact.kind === 'latched')) addFact(operation.facts, { kind: 'latched', t: clock.now() });
    operation.unsent.abort(new Error('the operation was asked to stop before it was sent'));
    operation.execution?.latch();
    operation.execution?.abortUnsent();
  }

  /** A reply that has not come although the operation is gone is waited for a little, since it says how it ended. */
  function releaseCall(operation: LiveOperation): void {
    const { execution } = operation;
    if (execution === null) return;
    void pause(clock, lateReplyMs, operation.callEnded.promise).then(() => {
      execution.drop();
    });
  }

  return { kill };
}

/** The first and the latest kills of one that does not die say what a hundred would. */
function addKillSent(list: KillSent[], sent: KillSent): void {
  list.push(sent);
  if (list.length > keptKills) list.splice(keptKills / 2, 1);
}

function callInFlight(operation: LiveOperation): boolean {
  return operation.execution !== null && !operation.facts.some((fact) => fact.kind === 'call_over');
}

/** The last looks that began after the last kill was sent, and the reply of the call. */
function looksSinceKill(facts: readonly Fact[], requestedAt: number): Fact[] {
  const killedAt = Math.max(requestedAt, ...facts.map((fact) => (fact.kind === 'kill_sent' ? fact.t : 0)));
  return facts.filter((fact) => fact.kind === 'replied' || (isLook(fact) && fact.startedAt >= killedAt)).slice(-4);
}

function lookedSinceKill(facts: readonly Fact[]): boolean {
  return looksSinceKill(facts, 0).some((fact) => fact.kind === 'absent');
}
