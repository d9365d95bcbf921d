/** An operation that has not ended: its facts as they come in, and the record that is made of them. */

import { type Fact, addFact } from '../domain/facts.js';
import type { Evidence, KillSent, OperationRecord } from '../domain/operation.js';
import { type Tag, principalHash } from '../domain/tag.js';
import { type Judgement, judge } from '../domain/verdict.js';
import { type Wait, nextWait } from '../domain/words.js';
import { type Deferred, deferred } from './deferred.js';
import type { KillTask } from './kill.js';
import type { Sink } from './exports.js';
import type { Clock, Execution, Hit, Look } from './ports.js';
import { evidenceOf } from './evidence.js';

export interface LiveOperation {
  readonly record: OperationRecord;
  /** Whether another process runs it: found by its tag, with no call of ours. */
  readonly foreign: boolean;
  readonly writes: boolean;
  readonly startedAt: number;
  readonly deadlineAt: number;
  /** Its tag's head: a tag that only repeats the operation id is another operation, forged or not. */
  readonly identity: Identity;
  readonly facts: Fact[];
  /** Looks that are among the facts: one that several asked for counts once. */
  readonly looks: WeakSet<Look>;
  readonly killsSent: KillSent[];
  execution: Execution | null;
  /** Aborted to end it while nothing was sent: in the queue, while connecting, in the driver's pool. */
  readonly unsent: AbortController;
  /** Settles when the call is over, whatever the reason. */
  readonly callEnded: Deferred<void>;
  /** Settles when the operation has an outcome. */
  readonly concluded: Deferred<void>;
  killTask: KillTask | null;
  /** What it waits for before it is sent, in words. */
  waitingFor: string;
  /** Why nothing was sent, where an error was the reason. */
  unsentError: Error | null;
  cancelDeadline: () => void;
  documents: Uint8Array[];
  /** Takes the documents in place of keeping them. */
  sink: Sink | null;
}

export type Identity = Pick<Tag, 'instance' | 'operationId' | 'principal'>;

/** @param options.identity the tag's head, for one that was found by it; else it stands in the record */
export function createLive(clock: Clock, record: OperationRecord, options: { foreign: boolean; writes: boolean; deadlineInMs: number; runsForMs?: number; identity?: Identity }): LiveOperation {
  const now = clock.now();
  const { operationId, instance } = record;
  return {
    record,
    foreign: options.foreign,
    writes: options.writes,
    startedAt: now - (options.runsForMs ?? 0),
    deadlineAt: now + options.deadlineInMs,
    identity: options.identity ?? { operationId, instance, principal: principalHash(record.principal) },
    facts: [],
    looks: new WeakSet(),
    killsSent: [],
    execution: null,
    unsent: new AbortController(),
    callEnded: deferred(),
    concluded: deferred(),
    killTask: null,
    waitingFor: 'the connection to the database',
    unsentError: null,
    cancelDeadline: () => undefined,
    documents: [],
    sink: null,
  };
}

/** What may be said of it now. */
export function judgeLive(operation: LiveOperation): Judgement {
  return judge(operation.facts, operation);
}

/** Whether what a look found is this operation. */
export function isOf({ identity }: Pick<LiveOperation, 'identity'>, { tag }: Pick<Hit, 'tag'>): boolean {
  return tag.operationId === identity.operationId && tag.instance === identity.instance && tag.principal === identity.principal;
}

/** Takes what a look says of this operation into its facts, once. */
export function addLook(operation: LiveOperation, look: Look): void {
  if (operation.looks.has(look)) return;
  operation.looks.add(look);
  const { node, startedAt, endedAt } = look;
  if (!look.ok) {
    addFact(operation.facts, { kind: 'no_answer', node, startedAt, endedAt, reason: look.reason });
    return;
  }
  const mine = look.hits.filter((hit) => isOf(operation, hit));
  if (mine.length === 0) addFact(operation.facts, { kind: 'absent', node, startedAt, endedAt, process: look.process });
  // Where another process sent it is known from there on.
  if (mine.length > 0 && operation.foreign) operation.record.node ??= node;
  for (const { sighting } of mine) addFact(operation.facts, { kind: 'seen', node, startedAt, endedAt, process: look.process, sighting });
}

/** The nodes where it can be: where it was sent; every node while that is not known. */
export function nodesOf(operation: LiveOperation, all: readonly string[]): readonly string[] {
  const nodes = new Set<string>();
  for (const fact of operation.facts) if (fact.kind === 'sent' || fact.kind === 'seen') nodes.add(fact.node);
  return nodes.size === 0 ? all : [...nodes];
}

export function moveWait(operation: LiveOperation, to: Wait): void {
  operation.record.wait = nextWait(operation.record.wait, to);
}

/** Brings the parts of the record that follow from the facts up to date. */
export function refreshRecord(clock: Clock, operation: LiveOperation): Judgement {
  const judgement = judgeLive(operation);
  const { record } = operation;
  // On its way to the store as it is: a look that was under way when the reply came has nothing to add.
  if (operation.killTask === null && isAnswered(record)) return judgement;
  record.server = judgement.server;
  record.reason = judgement.reason;
  record.evidence = evidence(clock, operation);
  if (operation.execution !== null) record.documentsRead = operation.execution.read();
  if (operation.sink !== null) record.export = operation.sink.report();
  if (record.endedAt === null) record.elapsedMs = Math.round(clock.now() - operation.startedAt);
  if (operation.killTask !== null) record.kill = operation.killTask.report();
  return judgement;
}

function isAnswered({ outcome }: OperationRecord): boolean {
  return outcome === 'succeeded' || outcome === 'failed' || outcome === 'timed_out';
}

function evidence(clock: Clock, operation: LiveOperation): Evidence[] {
  return evidenceOf(operation.facts, (t) => clock.iso(t));
}
