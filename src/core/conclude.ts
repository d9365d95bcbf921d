/** Turns a judgement that is final into the operation's outcome, once, and keeps it in the store. */

import { messageOf } from '../domain/errors.js';
import type { OperationRecord } from '../domain/operation.js';
import type { Judgement } from '../domain/verdict.js';
import { type Outcome, isFinal, nextOutcome } from '../domain/words.js';
import { pause } from './clock.js';
import { type LiveOperation, moveWait, refreshRecord } from './live.js';
import type { Clock, Log, Store } from './ports.js';

export interface Conclude {
  /** Judges the operation; when it has ended, its record gets the outcome and goes to the store. */
  (operation: LiveOperation): Judgement;
}

/** How long the end of a killed operation waits for the report of its kill before it is told, in milliseconds. */
const reportMs = 1_000;

export function createConclude(deps: { clock: Clock; store: Store; log: Log; forget(operation: LiveOperation): void }): Conclude {
  const { clock, store, log, forget } = deps;
  return (operation) => {
    const judgement = refreshRecord(clock, operation);
    const { record } = operation;
    if (!isFinal(judgement.verdict) || judgement.outcome === null) return judgement;
    const outcome = outcomeFor(judgement, judgement.outcome, record);
    if (record.outcome === outcome) {
      // The report of a kill grows after the end, by the looks that confirm it.
      if (operation.killTask?.running() === false) store.put(record).catch((error: unknown) => { notKept(record.operationId, error); });
      return judgement;
    }
    record.outcome = nextOutcome(record.outcome, outcome);
    record.by = judgement.by;
    // Whoever waits is answered now: the record goes to the store as it will be.
    if (record.wait === 'waiting' && !operation.foreign) moveWait(operation, 'answered');
    record.endedAt = clock.iso();
    record.elapsedMs = Math.round(clock.now() - operation.startedAt);
    operation.cancelDeadline();
    log.info({ operationId: record.operationId, requestId: record.requestId, outcome, by: record.by, cause: record.cause, elapsedMs: record.elapsedMs, reason: judgement.reason }, 'operation ended');
    keep(operation);
    // Nothing of it is left in the database, so its session may serve another operation.
    void operation.callEnded.promise.then(() => operation.execution?.drop());
    tellEnd(operation);
    return judgement;
  };

  /** Who waits for the end of a killed one is told with its whole report: what was sent, and the looks that confirm it. */
  function tellEnd({ killTask, concluded }: LiveOperation): void {
    if (killTask?.running() !== true) concluded.resolve();
    else void pause(clock, reportMs, killTask.done).then(() => { concluded.resolve(); });
  }

  function keep(operation: LiveOperation): void {
    const { record } = operation;
    const documentsKept = operation.documents.length === 0 ? Promise.resolve() : store.putDocuments(record.operationId, operation.documents);
    // Asked for in this order, and in one turn: a store in another process is told of both at once.
    Promise.all([documentsKept, store.put(record)])
      .then(
        () => {
          // A lost operation whose call is still in flight may yet be answered.
          if (record.outcome !== 'lost' || operation.foreign) forget(operation);
          else void operation.callEnded.promise.then(() => { forget(operation); });
        },
        (error: unknown) => { notKept(record.operationId, error); },
      );
  }

  function notKept(operationId: string, error: unknown): void {
    log.error({ operationId, error: messageOf(error) }, 'the record of an ended operation could not be kept');
  }
}

/** Our own kill at the wall-clock deadline is a time limit; the close of a cursor that was read far enough is a success, and of one whose documents could not be kept a failure. */
function outcomeFor(judgement: Judgement, outcome: Outcome, { cause, error }: OperationRecord): Outcome {
  if (outcome === 'succeeded' && error?.kind === 'export_failed') return 'failed';
  if (outcome !== 'killed' || judgement.by !== 'us') return outcome;
  if (cause === 'deadline') return 'timed_out';
  if (cause === 'export_failed') return 'failed';
  return cause === 'answer_complete' ? 'succeeded' : outcome;
}
