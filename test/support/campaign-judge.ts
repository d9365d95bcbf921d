/** Holds what the engine said about a life against what the observer saw, what crossed the wire, and what the server wrote down. */

import { isFinal } from '../../src/domain/words.js';
import type { Lived, Report } from './campaign-life.js';
import type { Sightings } from './campaign-observer.js';
import { type LifeKind, deadlineGraceMs } from './campaign-plan.js';
import type { Profiled } from './bench.js';
import type { Call } from './engine.js';

export interface Testimony {
  lived: Lived;
  sightings: Sightings | undefined;
  call: Call | undefined;
  firstKillAt: number | undefined;
  profiled: readonly Profiled[];
  /** Documents in its target, where it writes. */
  written: number | null;
  /** Whether the control connections of its wave had faults. */
  controlFaults: boolean;
  /** Whether a connection that carried it was cut, for its own sake or for that of one that used it before. */
  wireWasCut: boolean;
}

const interrupts: ReadonlySet<number | null> = new Set([11601, 237, 43]);
const timeLimits: ReadonlySet<number | null> = new Set([50, 262]);
const scripted: ReadonlySet<LifeKind> = new Set(['sleep', 'busy', 'batches', 'merge', 'out', 'overdue']);
/** What cannot be interrupted stays until it is done, and is only not to be called ended before. */
const isStubborn = ({ life }: Lived) => life.kind === 'stubborn';
/** Within this time after it was asked to stop, an operation that can be interrupted is gone. */
const killTakesMs = 2_000;

/** Every way in which the words and the facts do not fit together; none is what a life should give. */
export function judgeLife(testimony: Testimony): string[] {
  const rules = [seenAfterTheEnd, neverSentAndYetThere, notTheReply, killedByWhom, changedItsMind, againstTheProfiler, againstTheTarget, pastItsDeadline, notGoneInTime, notProvenOnGoodWires];
  const { lived } = testimony;
  const problems = [...lived.errors.filter((error) => !isExplained(error, testimony)), ...rules.flatMap((rule) => rule(testimony))];
  return problems.map((problem) => `life ${lived.life.index} (${lived.life.kind}, ${lived.id}): ${problem}; ${storyOf(testimony)}`);
}

/** What happened to it, with times in milliseconds from its start. */
function storyOf({ lived, sightings, call, firstKillAt, profiled }: Testimony): string {
  const at = (t: number | null | undefined) => (t === null || t === undefined ? null : Math.round(t - lived.startedAt));
  const { fault, acts, maxTimeMS } = lived.life;
  return JSON.stringify({
    fault,
    acts,
    maxTimeMS,
    sent: at(call?.sentAt),
    end: call?.end?.kind,
    ended: at(call?.endedAt),
    firstKill: at(firstKillAt),
    seen: [at(sightings?.firstLookAt), at(sightings?.lastLookAt)],
    reports: lived.reports.map((report) => [report.from, at(report.at), report.verdict, report.outcome, report.by, report.server]),
    profiled,
  });
}

/** The engine's word on how it ended: the foreign one's has no reply to go by. */
const own = (reports: readonly Report[]) => reports.filter(({ from }) => from !== 'foreign_kill');
const lastOf = ({ lived }: Testimony) => own(lived.reports).at(-1);
const isEnd = ({ verdict, outcome }: Report) => outcome !== null || (verdict !== null && isFinal(verdict));

function seenAfterTheEnd({ lived, sightings }: Testimony): string[] {
  if (sightings === undefined) return [];
  const told = lived.reports.find((report) => isEnd(report) && sightings.lastLookAt > report.at);
  if (told === undefined) return [];
  return [`${told.from} said ${told.verdict ?? told.outcome}, and a look that began ${Math.round(sightings.lastLookAt - told.at)} ms later saw it: ${JSON.stringify(sightings.last)}`];
}

function neverSentAndYetThere({ lived, sightings, call, profiled }: Testimony): string[] {
  const told = lived.reports.find(({ verdict, outcome }) => verdict === 'never_sent' || outcome === 'never_sent');
  if (told === undefined) return [];
  const traces = [sightings !== undefined && 'the observer saw it', (call?.sentAt ?? null) !== null && 'a command was handed to the wire', profiled.length > 0 && 'the server wrote it down'].filter((trace) => trace !== false);
  return traces.map((trace) => `it was called never_sent, and ${trace}`);
}

/** Where the reply came, the outcome is what it says, and the verdict as well. */
function notTheReply(testimony: Testimony): string[] {
  const { call, lived } = testimony;
  const last = lastOf(testimony);
  const end = call?.end;
  if (last === undefined || end === undefined || end === null) return [];
  const expected = (() => {
    switch (end.kind) {
      case 'complete': return { outcome: 'succeeded', verdict: 'ended_first' };
      case 'not_sent': return { outcome: 'never_sent', verdict: 'never_sent' };
      case 'server_error':
        if (interrupts.has(end.code)) return { outcome: last.cause === 'deadline' && last.by === 'us' ? 'timed_out' : 'killed', verdict: 'stopped' };
        return { outcome: timeLimits.has(end.code) ? 'timed_out' : 'failed', verdict: 'ended_first' };
      default: return null;
    }
  })();
  if (expected === null) return [];
  const problems = own(lived.reports).filter(({ outcome }) => outcome !== null && outcome !== 'lost' && outcome !== expected.outcome).map(({ from, outcome }) => `the call ended with ${JSON.stringify(end)}, and ${from} said ${outcome}`);
  if (last.outcome !== expected.outcome) problems.push(`the call ended with ${JSON.stringify(end)}, and at last it was called ${last.outcome}: ${last.reason}`);
  if (last.verdict !== null && last.verdict !== expected.verdict) problems.push(`the call ended with ${JSON.stringify(end)}, and the verdict was ${last.verdict}: ${last.reason}`);
  if (end.kind === 'complete' && last.outcome === 'succeeded' && last.documentsRead !== lived.load.documents) problems.push(`it succeeded with ${last.documentsRead} documents instead of ${lived.load.documents}`);
  return problems;
}

function killedByWhom(testimony: Testimony): string[] {
  const { lived, firstKillAt } = testimony;
  const problems: string[] = [];
  for (const { from, by, outcome, at } of own(lived.reports)) {
    if (by === 'us' && (firstKillAt === undefined || firstKillAt > at)) problems.push(`${from} said killed by us, and no kill of ours had been sent`);
    if (by === 'others' && !lived.strangerKilled && !lived.foreignKilled && !limitedInScript(testimony)) problems.push(`${from} said killed by others, and nobody else had killed it`);
    if (outcome === 'timed_out' && by === 'us' && lastOf(testimony)?.cause !== 'deadline') problems.push(`${from} said timed_out by us, and it was not the deadline`);
  }
  return problems;
}

/** JavaScript that begins after the time limit has passed ends with 11601, the code of a kill, instead of 50. */
function limitedInScript({ lived, call }: Testimony): boolean {
  const ranMs = (call?.endedAt ?? 0) - (call?.sentAt ?? Number.POSITIVE_INFINITY);
  return scripted.has(lived.life.kind) && ranMs >= lived.life.maxTimeMS;
}

function changedItsMind({ lived }: Testimony): string[] {
  const problems: string[] = [];
  for (const reports of [own(lived.reports), lived.reports.filter(({ from }) => from === 'foreign_kill')]) {
    let settled: Report | null = null;
    for (const report of reports) {
      if (settled !== null && report.outcome !== settled.outcome) problems.push(`${settled.from} said ${settled.outcome}, and later ${report.from} said ${report.outcome}`);
      if (report.outcome !== null && report.outcome !== 'lost') settled = report;
    }
  }
  return problems;
}

function againstTheProfiler(testimony: Testimony): string[] {
  const last = lastOf(testimony);
  const failed = testimony.profiled.find(({ errCode }) => errCode !== null);
  if (last?.outcome === 'succeeded' && failed !== undefined) return [`it was called succeeded, and the server wrote down error ${failed.errCode}`];
  return [];
}

function againstTheTarget(testimony: Testimony): string[] {
  const { target } = testimony.lived.load;
  const last = lastOf(testimony);
  if (target === null || testimony.written === null) return [];
  if (last?.outcome === 'succeeded' && testimony.written !== target.documents) return [`it was called succeeded, and ${testimony.written} of ${target.documents} documents are in its target`];
  if (last?.outcome === 'never_sent' && testimony.written !== 0) return [`it was called never_sent, and ${testimony.written} documents are in its target`];
  return [];
}

/** What is there after its deadline must be called so. */
function pastItsDeadline({ lived, sightings, controlFaults }: Testimony): string[] {
  const deadline = lived.startedAt + lived.life.maxTimeMS + deadlineGraceMs + killTakesMs;
  // With its looks and kills held on their way, nothing can be stopped in time.
  if (controlFaults || isStubborn(lived) || sightings === undefined || sightings.lastLookAt < deadline) return [];
  const told = lived.reports.some(({ verdict, at }) => at > deadline - killTakesMs && (verdict === 'still_running' || verdict === 'unknown'));
  return told ? [] : [`it was there ${Math.round(sightings.lastLookAt - deadline + killTakesMs)} ms after its deadline, and no answer said so`];
}

/** Data that cannot pass do not delay a kill: it goes by the control connections. */
function notGoneInTime({ lived, sightings, call, controlFaults }: Testimony): string[] {
  if (controlFaults || isStubborn(lived) || sightings === undefined || lived.askedToStopAt === null) return [];
  // Nothing can be stopped before its bytes have come; a request that is held comes late.
  const from = Math.max(lived.askedToStopAt, sightings.firstLookAt, call?.sentAt ?? 0);
  const took = Math.round(sightings.lastLookAt - from);
  return took > killTakesMs ? [`it was asked to stop, and was there for ${took} ms more`] : [];
}

/** With nothing wrong on any wire, every end is known. */
function notProvenOnGoodWires(testimony: Testimony): string[] {
  const { lived, controlFaults, wireWasCut } = testimony;
  if (controlFaults || wireWasCut || lived.life.fault.kind !== 'none') return [];
  const last = lastOf(testimony);
  if (isStubborn(lived) && last?.verdict === 'still_running') return [];
  return last?.outcome === null || last?.outcome === 'lost' ? [`its wires were good, and at last it was called ${last.verdict ?? last.outcome}: ${last.reason}`] : [];
}

/** A run that could not be sent is told so by an error. */
function isExplained(error: string, { call }: Testimony): boolean {
  return error.startsWith('run: LeashError') && (call === undefined || call.end?.kind === 'not_sent');
}
