/** The one judge: from the facts about an operation to what may be said of it. Nothing else makes a verdict. */

import { type Fact, type LookFact, type ProcessIdentity, type Sighting, isLook } from './facts.js';
import type { KilledBy, Outcome, ServerState, Verdict } from './words.js';

/** Server errors that say that the call itself was interrupted: Interrupted, CursorKilled, CursorNotFound. */
const interruptedCodes: ReadonlySet<number> = new Set([11601, 237, 43]);
/** The server's maxTimeMS expired. */
const timeLimitCodes: ReadonlySet<number> = new Set([50, 262]);

/** Empty looks in a row that prove absence: $currentOp lists operations first and idle cursors after, and can miss one that changes in between (about 1 in 1,000). */
export const emptyLooksNeeded = { callOver: 2, callInFlight: 3, otherProcess: 5 } as const;

type Seen = Extract<Fact, { kind: 'seen' }>;

export interface JudgedOperation {
  /** Whether it can write: then absence after a kill says nothing of how it ended. */
  writes: boolean;
  /** Whether another process runs it: then nothing can be latched here, and its reply is never seen. */
  foreign: boolean;
}

export interface Judgement {
  verdict: Verdict;
  server: ServerState;
  outcome: Outcome | null;
  by: KilledBy | null;
  /** One sentence: why the facts allow just this. */
  reason: string;
  /** Its absence is proven, and only the reply of its call, which can still come and says how it ended, is missing. */
  awaitsReply?: true;
}

/**
 * Judges what is known now. `pending` is for a kill that is still being checked: whoever's time is over asks
 * {@link atDeadline} for what to call it then.
 */
export function judge(facts: readonly Fact[], operation: JudgedOperation): Judgement {
  const reply = facts.find((fact) => fact.kind === 'replied');
  if (reply !== undefined) return fromReply(reply, facts);
  if (facts.some((fact) => fact.kind === 'not_sent')) {
    return { verdict: 'never_sent', server: 'not_sent', outcome: 'never_sent', by: null, reason: 'Nothing was sent to the database, and nothing will be.' };
  }
  const wasSent = operation.foreign || facts.some((fact) => fact.kind === 'sent');
  if (!wasSent) {
    return open('pending', 'not_sent', 'Nothing has been sent to the database yet.');
  }
  return fromLooks(facts, operation);
}

/**
 * The name for a judgement that is not final when the time to check it is over. That it still runs is said only when a
 * look that began after a kill was sent, or that shows one pending, still sees it.
 */
export function atDeadline(judgement: Judgement, facts: readonly Fact[]): Verdict {
  if (judgement.verdict !== 'pending') return judgement.verdict;
  if (!seenStates.has(judgement.server)) return 'unknown';
  const lastSeen = facts.findLast((fact) => fact.kind === 'seen');
  if (lastSeen?.kind !== 'seen') return 'unknown';
  const killedBefore = facts.some((fact) => fact.kind === 'kill_sent' && fact.node === lastSeen.node && fact.t <= lastSeen.startedAt);
  return killedBefore || lastSeen.sighting.killPending ? 'still_running' : 'unknown';
}

const seenStates: ReadonlySet<ServerState> = new Set(['running', 'waiting_for_lock', 'kill_pending', 'idle_cursor']);

function fromReply(reply: Extract<Fact, { kind: 'replied' }>, facts: readonly Fact[]): Judgement {
  const { code } = reply;
  if (code === undefined) {
    return { verdict: 'ended_first', server: 'ended', outcome: 'succeeded', by: null, reason: 'The reply of the database came: the operation had succeeded.' };
  }
  if (interruptedCodes.has(code)) {
    const by = facts.some((fact) => fact.kind === 'kill_sent' && fact.t <= reply.t) ? 'us' : 'others';
    const who = by === 'us' ? 'after our kill' : 'and no kill of ours had been sent: another killed it, or a limit of the server did';
    return { verdict: 'stopped', server: 'ended', outcome: 'killed', by, reason: `The database answered the call itself with error ${code} (interrupted), ${who}.` };
  }
  const outcome = timeLimitCodes.has(code) ? 'timed_out' : 'failed';
  return { verdict: 'ended_first', server: 'ended', outcome, by: null, reason: `The reply of the database came: error ${code}.` };
}

function fromLooks(facts: readonly Fact[], operation: JudgedOperation): Judgement {
  const nodes = relevantNodes(facts);
  const latest = nodes.map((node) => latestLook(facts, node));
  const seenNow = latest.find((look) => look?.kind === 'seen');
  if (seenNow?.kind === 'seen') return fromSighting(seenNow, facts);
  const silent = latest.find((look) => look?.kind === 'no_answer');
  if (silent?.kind === 'no_answer') {
    return open('pending', 'unreachable', `${silent.node} did not answer the last look (${silent.reason}), so what runs there is unknown.`);
  }
  const sightings = facts.filter((fact) => fact.kind === 'seen');
  if (sightings.length === 0) {
    const looked = latest.some((look) => look !== undefined);
    return open('pending', looked ? 'not_seen' : 'sent', 'It was sent, and no look has seen it yet: an empty look before it was ever seen proves nothing.');
  }
  return fromAbsence(facts, operation, sightings);
}

function fromSighting(look: Seen, facts: readonly Fact[]): Judgement {
  const { sighting, node } = look;
  const refusal = facts.findLast((fact) => fact.kind === 'kill_refused' && fact.node === node && fact.t < look.startedAt);
  // A kill that another user sent may have been taken: a refusal stands only while none of ours is pending.
  if (refusal?.kind === 'kill_refused' && !sighting.killPending) {
    return open('refused', stateOf(look), `${node} refused the kill for want of ${refusal.missing === undefined ? 'a privilege' : `the privilege ${refusal.missing}`}, and a later look still sees the operation.`);
  }
  const doing = sighting.killPending ? 'has been told to stop and has not stopped yet' : 'is there';
  return open('pending', stateOf(look), `The last look at ${node} sees that it ${doing}.`);
}

/** The database's side of an operation, as one sighting shows it. */
export function stateOf({ sighting }: { sighting: Sighting }): ServerState {
  if (sighting.killPending) return 'kill_pending';
  if (sighting.kind === 'idle_cursor') return 'idle_cursor';
  return sighting.waitingForLock ? 'waiting_for_lock' : 'running';
}

function fromAbsence(facts: readonly Fact[], operation: JudgedOperation, sightings: readonly Seen[]): Judgement {
  const callOver = facts.some((fact) => fact.kind === 'call_over');
  // A call that is over sends nothing more, so it is as good as latched.
  const latchedAt = facts.find((fact) => fact.kind === 'latched' || fact.kind === 'call_over')?.t;
  if (!operation.foreign && latchedAt === undefined) {
    return open('pending', 'not_seen', 'The last look does not see it, but a further command of it could still be sent.');
  }
  const needed = operation.foreign ? emptyLooksNeeded.otherProcess : callOver ? emptyLooksNeeded.callOver : emptyLooksNeeded.callInFlight;
  for (const node of new Set(sightings.map((fact) => fact.node))) {
    const last = sightings.filter((fact) => fact.node === node).at(-1);
    if (last === undefined) continue;
    const proof = absenceProof(facts, last, latchedAt ?? 0, needed);
    if (proof.kind === 'restarted') {
      return { verdict: 'gone', server: 'not_seen', outcome: 'lost', by: null, reason: `The server process at ${node} that ran it has been replaced by another one since: it runs no more, and how it ended is unknown.` };
    }
    if (proof.kind === 'other_process') {
      return open('pending', 'not_seen', `${node} is another server process now than the one it was seen on, so not seeing it there proves nothing.`);
    }
    if (proof.kind === 'more_looks') {
      return open('pending', 'not_seen', `The last look at ${node} does not see it; ${proof.empty} of ${needed} empty looks in a row.`);
    }
  }
  // Whatever absence alone is called, the reply could contradict it: bytes on their way are not the past.
  if (!operation.foreign && !callOver) {
    return { ...open('pending', 'not_seen', `It was seen, and then ${needed} looks in a row on the same server process did not find it; its reply, which says how it ended, has not come yet.`), awaitsReply: true };
  }
  const killed = sightings.every((seen, at) => !isLastOnNode(sightings, at) || wasKilled(facts, seen));
  if (killed && !operation.writes) {
    return { verdict: 'stopped', server: 'not_seen', outcome: 'killed', by: 'us', reason: `It was seen, a kill was sent to it, and then ${needed} looks in a row on the same server process did not find it.` };
  }
  const why = killed ? 'it can write, so how it ended is unknown: partial or full effects are possible' : 'its reply did not come, so how it ended is unknown';
  return { verdict: 'gone', server: 'not_seen', outcome: 'lost', by: null, reason: `It was seen, and then ${needed} looks in a row on the same server process did not find it; ${why}.` };
}

function isLastOnNode(sightings: readonly Seen[], at: number): boolean {
  return !sightings.slice(at + 1).some((later) => later.node === sightings[at]?.node);
}

/**
 * Whether a kill of ours went to what this last look found, or an earlier one was still pending in it. One that was
 * refused has killed nothing, and one that nobody knows to have come through only where the look shows it as pending.
 */
function wasKilled(facts: readonly Fact[], last: Seen): boolean {
  const refused = new Set(facts.map((fact) => (fact.kind === 'kill_refused' ? fact.sentAt : null)));
  const failed = new Set(facts.map((fact) => (fact.kind === 'kill_failed' ? fact.sentAt : null)));
  return facts.some((fact) => {
    if (fact.kind !== 'kill_sent' || fact.node !== last.node || !sameProcess(fact.process, last.process) || refused.has(fact.t)) return false;
    return last.sighting.killPending || (fact.t >= last.startedAt && !failed.has(fact.t));
  });
}

type AbsenceProof = { kind: 'proven' } | { kind: 'restarted' } | { kind: 'other_process' } | { kind: 'more_looks'; empty: number };

/** Empty looks count only if they began after the last kill and the latch, on the process where it was last seen. */
function absenceProof(facts: readonly Fact[], last: Seen, latchedAt: number, needed: number): AbsenceProof {
  const lastKillAt = Math.max(0, ...facts.map((fact) => (fact.kind === 'kill_sent' && fact.node === last.node ? fact.t : 0)));
  const after = Math.max(latchedAt, lastKillAt, last.endedAt);
  let empty = 0;
  for (const fact of facts) {
    if (!isLook(fact) || fact.node !== last.node) continue;
    if (fact.kind !== 'absent') empty = 0;
    else if (fact.startedAt >= after && sameProcess(fact.process, last.process)) empty += 1;
  }
  if (empty >= needed) return { kind: 'proven' };
  const latest = latestLook(facts, last.node);
  if (latest?.kind !== 'absent' || sameProcess(latest.process, last.process)) return { kind: 'more_looks', empty };
  return isReplacement(latest.process, last.process) ? { kind: 'restarted' } : { kind: 'other_process' };
}

/** A process that does not name itself is never proven to be the same one. */
function sameProcess(a: ProcessIdentity, b: ProcessIdentity): boolean {
  return a.id !== null && a.id === b.id;
}

/**
 * Whether `now` took the place of `before`: the same member of the replica set, started later. A member's name is held
 * by one process at a time. (`processId` is an ObjectId: its first four bytes are the second the process started.)
 */
function isReplacement(now: ProcessIdentity, before: ProcessIdentity): boolean {
  if (now.id === null || before.id === null || now.me === null || now.me !== before.me) return false;
  return now.id !== before.id && now.id.slice(0, 8) >= before.id.slice(0, 8);
}

/** Where it can be: where a command of it went, and where it was seen; with neither, everywhere that was looked. */
function relevantNodes(facts: readonly Fact[]): string[] {
  const nodes = new Set<string>();
  for (const fact of facts) if (fact.kind === 'sent' || fact.kind === 'seen') nodes.add(fact.node);
  if (nodes.size === 0) for (const fact of facts) if (isLook(fact)) nodes.add(fact.node);
  return [...nodes];
}

function latestLook(facts: readonly Fact[], node: string): LookFact | undefined {
  return facts.findLast((fact): fact is LookFact => isLook(fact) && fact.node === node);
}

function open(verdict: Verdict, server: ServerState, reason: string): Judgement {
  return { verdict, server, outcome: null, by: null, reason };
}
