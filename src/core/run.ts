/** Runs an operation on the leash: recorded before it is sent, bounded in time, and followed to its end. */

import { LeashError, messageOf } from '../domain/errors.js';
import { addFact } from '../domain/facts.js';
import type { OperationRecord } from '../domain/operation.js';
import type { Admission } from './admission.js';
import { pause } from './clock.js';
import type { Conclude } from './conclude.js';
import { keepRecord, noteProblem } from './keep.js';
import { type Killer } from './kill.js';
import { type LiveOperation, addLook, createLive, moveWait, nodesOf, refreshRecord } from './live.js';
import { newRecord } from './new-record.js';
import type { Clock, Deployment, ExecutionEnd, InstanceRecord, Log, Store } from './ports.js';
import { reportProgress } from './progress.js';
import type { Registry } from './registry.js';
import type { Caller, RunAnswer, RunRequest } from './request.js';
import { settleSink } from './settle-sink.js';
import type { Watch } from './watch.js';
import { type PreparedWrite, describeEffects, prepareWrite } from './write-effects.js';

export type { Caller, RunAnswer, RunRequest };

export interface RunDeps {
  deployment: Deployment;
  store: Store;
  clock: Clock;
  log: Log;
  registry: Registry;
  admission: Admission;
  watch: Watch;
  killer: Killer;
  conclude: Conclude;
  instance: string;
  self: InstanceRecord;
  newOperationId(): string;
  /** How much longer than maxTimeMS the wall clock may go, in milliseconds. */
  deadlineGraceMs: number;
  /** How long a record is kept after its operation's end when the request does not say, in milliseconds. */
  keepMs: number;
  /** Refuses what the policy does not allow, views resolved. */
  checkPolicy(request: RunRequest): Promise<void>;
  isClosing(): boolean;
}

/** How long a call that is over waits for proof of the operation's end before it answers what is known, in milliseconds. */
const settleMs = 2_000;
/** When an operation that has not ended is looked at for the first time, in milliseconds after it was sent. */
const firstLookMs = 250;
/** How long after a look without an answer the next one begins, in milliseconds. */
const lookAgainMs = 500;
/** How long a handover waits for its look, in milliseconds. */
const handoverLookMs = 1_000;

export function createRun(deps: RunDeps): (request: RunRequest, caller: Caller) => Promise<RunAnswer> {
  const { deployment, store, clock, log, registry, admission, watch, killer, conclude } = deps;
  /** Whether the store has taken a record: it opens with the first, and what comes before that could be lost with this process. */
  let storeIsOpen = false;

  return async function run(request, caller) {
    if (deps.isClosing()) throw new LeashError('shutting_down', 'This server is shutting down.');
    const running = request.startAnother ? null : registry.findDetached(caller.principal, request.digest);
    if (running !== null) {
      running.record.task ||= request.asTask === 'always';
      await lookNow(running);
      refreshRecord(clock, running);
      if (running.record.task) await keepRecord(store, running.record);
      return { kind: 'already_running', record: running.record, documents: [] };
    }
    const twin = registry.findWaiting(caller.principal, request.digest);
    if (twin !== null) request.notes.push(`The same operation is already running as ${twin.record.operationId}; this is another one.`);
    const operation = begin(request, caller);
    const onCancel = () => { cancelRequest(caller); };
    if (caller.signal.aborted) onCancel();
    else caller.signal.addEventListener('abort', onCancel, { once: true });
    const stopProgress = reportProgress(operation, caller, deps);
    try {
      void follow(operation, request);
      const brokenCall = operation.callEnded.promise.then(() => pause(clock, settleMs));
      await pause(clock, request.waitMs, Promise.race([operation.concluded.promise, brokenCall]));
      stopProgress();
      // A cancel counts until the answer is there: before that the caller has nothing to kill by.
      return await answer(operation, request);
    } finally {
      stopProgress();
      caller.signal.removeEventListener('abort', onCancel);
    }
  };

  /** Cancels what this request started; a client that uses an id twice at once means both. */
  function cancelRequest({ session, requestId, causeOfAbort }: Caller): void {
    const cause = causeOfAbort?.() ?? 'client_cancelled';
    for (const operation of registry.ofRequest(session, requestId)) {
      if (operation.record.outcome !== null) continue;
      moveWait(operation, cause === 'session_ended' ? 'gone' : 'cancelled');
      killer.kill(operation, cause);
    }
  }

  function begin(request: RunRequest, caller: Caller): LiveOperation {
    const deadlineInMs = request.execute.maxTimeMS + deps.deadlineGraceMs;
    const record = newRecord(request, caller, { operationId: deps.newOperationId(), instance: deps.instance, createdAt: clock.iso(), deadlineAt: clock.iso(clock.now() + deadlineInMs), keepMs: deps.keepMs });
    record.task = request.asTask === 'always';
    const operation = createLive(clock, record, { foreign: false, writes: request.writes !== null, deadlineInMs });
    operation.sink = request.sink ?? null;
    registry.add(operation);
    operation.cancelDeadline = clock.after(deadlineInMs, () => {
      killer.kill(operation, 'deadline');
    });
    log.info({ operationId: record.operationId, requestId: record.requestId, database: record.database, collection: record.collection, maxTimeMS: record.maxTimeMS }, 'operation accepted');
    return operation;
  }

  /** Never rejects: however it ends, the operation gets an outcome or stays open with a reason. */
  async function follow(operation: LiveOperation, request: RunRequest): Promise<void> {
    let leave: () => void = () => undefined;
    try {
      const { signal } = operation.unsent;
      await raceAbort(deployment.ready(), signal);
      operation.record.whereabouts = { set: deployment.setName(), nodes: deployment.nodes() };
      // On its way before anything is sent, and on the disk before a write is: whoever finds it after a crash knows whose it is and where it can be.
      if (operation.writes || !storeIsOpen) await raceAbort(keepFirst(operation.record), signal);
      else keepRead(operation);
      operation.waitingFor = 'the check of what it reads';
      await raceAbort(deps.checkPolicy(request), signal);
      operation.waitingFor = 'a place among the operations that run at once';
      leave = await admission.enter(operation.record.principal, signal);
      operation.waitingFor = 'a connection';
      const write = operation.record.writes === null ? null : await raceAbort(prepareWrite(deployment, operation.record.writes), signal);
      if (operation.sink !== null) {
        operation.waitingFor = 'the file of the export';
        await raceAbort(operation.sink.open(operation.record.operationId), signal);
      }
      signal.throwIfAborted();
      await execute(operation, request, write);
    } catch (error) {
      // Nothing of it has been sent: whatever was thrown came before.
      void operation.sink?.discard();
      takeUnsent(operation, error);
    } finally {
      leave();
    }
    operation.callEnded.resolve();
    conclude(operation);
  }

  /** With the process that it belongs to: what is left of an unknown one is swept by nobody. */
  async function keepFirst(record: OperationRecord): Promise<void> {
    await Promise.all([storeIsOpen ? undefined : store.putInstance(deps.self), keepRecord(store, record)]);
    storeIsOpen = true;
  }

  function keepRead({ record }: LiveOperation): void {
    keepRecord(store, record).catch((error: unknown) => { log.error({ operationId: record.operationId, error: messageOf(error) }, 'the record of an operation could not be kept'); });
  }

  async function execute(operation: LiveOperation, request: RunRequest, write: PreparedWrite | null): Promise<void> {
    const { record, facts, sink } = operation;
    let cancelFirstLook: () => void = () => undefined;
    const execution = deployment.execute({ ...request.execute, comment: record.tag }, {
      sent(node) {
        addFact(facts, { kind: 'sent', t: clock.now(), node });
        if (record.sentAt === null) cancelFirstLook = clock.after(firstLookMs, () => void lookAt(operation));
        record.sentAt ??= clock.iso();
        record.node = node;
        log.debug({ operationId: record.operationId, requestId: record.requestId, node }, 'operation sent');
      },
      ...(sink === null ? {} : { documents: (batch) => sink.take(batch) }),
    });
    operation.execution = execution;
    operation.documents = execution.documents;
    const called = await execution.ended;
    const ended = sink === null ? called : await settleSink(sink, called, clock);
    cancelFirstLook();
    if (write !== null) await describeEffects(deployment, write, ended);
    takeEnd(operation, ended);
  }

  /** Seen once, its absence can be proof later; what no look has ever seen stays unknown when its reply does not come. */
  async function lookAt(operation: LiveOperation): Promise<void> {
    while (operation.record.outcome === null && clock.now() < operation.deadlineAt) {
      const looks = await watch.look(nodesOf(operation, deployment.nodes()));
      for (const look of looks) addLook(operation, look);
      if (looks.every(({ ok }) => ok)) return;
      await pause(clock, lookAgainMs, operation.concluded.promise);
    }
  }

  function takeUnsent(operation: LiveOperation, error: unknown): void {
    addFact(operation.facts, { kind: 'not_sent', t: clock.now() });
    const { record } = operation;
    if (record.cause === 'deadline') record.error = { message: `Its deadline passed while it waited for ${operation.waitingFor}, so it was not sent.`, kind: 'timed_out' };
    // Of one that was asked to stop, that is the reason, whatever error it ended with.
    if (record.cause !== null) return;
    record.error = error instanceof LeashError ? { message: error.message, kind: error.code, next: error.next } : { message: messageOf(error), kind: 'internal' };
    operation.unsentError = error instanceof Error ? error : new Error(messageOf(error));
  }

  function takeEnd(operation: LiveOperation, ended: ExecutionEnd): void {
    const { record, facts } = operation;
    const node = record.node ?? 'unknown';
    const t = clock.now();
    switch (ended.kind) {
      case 'complete':
        record.more = ended.more;
        record.notes.push(...(operation.sink?.notes() ?? []));
        addFact(facts, { kind: 'replied', t, node });
        return;
      case 'server_error':
        record.error = { message: ended.message, code: ended.code, codeName: ended.codeName };
        addFact(facts, { kind: 'replied', t, node, code: ended.code });
        return;
      case 'cut':
        record.more = true;
        record.notes.push(...(operation.sink?.notes() ?? []));
        addFact(facts, { kind: 'call_over', t });
        killer.kill(operation, 'answer_complete');
        return;
      case 'latched':
      case 'given_up':
        addFact(facts, { kind: 'call_over', t });
        return;
      case 'not_sent':
        takeUnsent(operation, ended.error);
        return;
      case 'no_reply':
        record.error = { message: brokenMessage(node, ended.error) };
        addFact(facts, { kind: 'call_over', t });
        // Its answer cannot come any more: a read is of no use to anyone, a write is left to finish or to its deadline.
        if (!operation.writes) killer.kill(operation, 'connection_lost');
        else void lookAt(operation);
        return;
      case 'not_taken':
        record.error = { message: messageOf(ended.error), kind: 'export_failed', ...(ended.error instanceof LeashError ? { next: ended.error.next } : {}) };
        addFact(facts, ended.open ? { kind: 'call_over', t } : { kind: 'replied', t, node });
        if (ended.open) killer.kill(operation, 'export_failed');
    }
  }

  /** A handle says what the operation does now, not what was known when it was sent. */
  async function lookNow(operation: LiveOperation): Promise<void> {
    if (operation.record.outcome !== null || operation.execution === null) return;
    const nodes = nodesOf(operation, deployment.nodes());
    const startedAt = clock.now();
    let looked = false;
    const looks = watch.look(nodes).then((found) => {
      looked = true;
      for (const look of found) addLook(operation, look);
    });
    await pause(clock, handoverLookMs, looks);
    for (const node of looked ? [] : nodes) addFact(operation.facts, { kind: 'no_answer', node, startedAt, endedAt: clock.now(), reason: `no answer within ${handoverLookMs} ms` });
  }

  async function answer(operation: LiveOperation, request: RunRequest): Promise<RunAnswer> {
    const { record } = operation;
    await lookNow(operation);
    refreshRecord(clock, operation);
    const ended = record.outcome !== null;
    record.task ||= !ended && request.asTask === 'when_detached';
    // The end itself has answered whoever waited for it.
    if (record.wait === 'waiting') moveWait(operation, 'detached');
    // Whoever is handed an id may ask another process for it; one that has ended has its answer, and its record follows.
    if (ended) noteProblem(store, record);
    else await keepRecord(store, record);
    if (ended && operation.unsentError !== null) throw operation.unsentError;
    return ended ? { kind: 'ended', record, documents: operation.documents } : { kind: 'detached', record, documents: [] };
  }
}

/** A server that cannot put a result document into a reply closes the connection instead of answering (measured: $group with $push). */
function brokenMessage(node: string, error: unknown): string {
  return `The connection to ${node} broke before the reply came: ${messageOf(error)}. If this happens again, the suspicion is a result document over the 16 MB limit, for which some servers close the connection: project fewer fields, or $unwind instead of collecting into one document.`;
}

/** Waits for the promise, or rejects as soon as the signal aborts; the promise itself goes on. */
async function raceAbort<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  return await new Promise<T>((resolve, reject) => {
    const onAbort = () => {
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => {
      signal.removeEventListener('abort', onAbort);
    });
  });
}
