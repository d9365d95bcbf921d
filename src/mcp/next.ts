/** The sentence that ends each answer: what to do now. */

import type { OperationRecord } from '../domain/operation.js';
import { type Verdict, isFinal } from '../domain/words.js';
import type { ToolLimits } from './tool.js';

/** For an operation that has not ended, or whose end is not proven. */
export function nextForOpen(record: OperationRecord): string {
  const id = record.operationId;
  if (record.error !== null && record.outcome === null) return `What became of it is unknown: ask status with id "${id}", or look at the database with the mongosh lines, before running it again.`;
  if (record.wait === 'gone' && (record.server === 'not_seen' || record.server === 'unreachable')) return `What became of it is unknown: ask status with id "${id}" again, or look at the database with the mongosh lines, before running it again.`;
  if (record.server === 'not_sent') return `It has not been sent to the database yet. Ask status with id "${id}" (waitMs lets it wait for the end), or stop it with kill. Do not run it again meanwhile.`;
  const until = record.deadlineAt === null ? '' : ' until its deadline';
  const stopping = record.kill === null ? ', or stop it with kill' : '';
  return `It goes on in the database${until}. Ask status with id "${id}" (waitMs lets it wait for the end)${stopping}. Do not run it again meanwhile.`;
}

/** For an operation that has ended; what its documents need is said elsewhere. */
export function nextForEnded(record: OperationRecord, limits: ToolLimits): string {
  return withEffects(adviceForEnded(record, limits), record);
}

/** What a write may have left behind must not be missed by whoever reads only this sentence. */
function withEffects(advice: string, { writes, outcome }: OperationRecord): string {
  return writes === null || outcome === 'never_sent' ? advice : `${writes.effects} ${advice}`;
}

function adviceForEnded(record: OperationRecord, limits: ToolLimits): string {
  switch (record.outcome) {
    case 'timed_out':
      return timeAdvice(record, limits);
    case 'killed':
      return record.by === 'us' ? 'It was stopped as asked. Run it again only if it is still wanted.' : 'Somebody else, or a limit of the server, killed it. Ask why before you run it again.';
    case 'failed':
      return failureAdvice(record);
    case 'lost':
      return record.writes === null ? 'How it ended is unknown; a read can be run again.' : 'How it ended is unknown: look at the target before you run it again.';
    case 'never_sent':
      return record.error?.next ?? 'Nothing was sent to the database. Call again if it is still wanted.';
    default:
      return 'Nothing: it has ended.';
  }
}

function timeAdvice(record: OperationRecord, limits: ToolLimits): string {
  const had = record.maxTimeMS ?? limits.maxTimeMS;
  const cheaper = 'make it cheaper (an index, an earlier $match)';
  return had < limits.maxTimeMSCeiling
    ? `Its limit was ${had} ms: ${cheaper}, or ask for more with maxTimeMS, up to ${limits.maxTimeMSCeiling}.`
    : `Its limit was ${had} ms, the most that this server allows: ${cheaper}.`;
}

function failureAdvice(record: OperationRecord): string {
  // BSONObjectTooLarge, and the form in which the server closes the connection instead.
  if (record.error?.code === 10334 || record.error?.code === 17419) return 'A result document is over the 16 MB limit of the server: project fewer fields, or $unwind instead of collecting into one document.';
  return 'Correct what the error names and run it again.';
}

/** After a kill. */
export function nextForVerdict(verdict: Verdict, record: OperationRecord): string {
  return isFinal(verdict) ? withEffects(adviceForVerdict(verdict, record), record) : adviceForVerdict(verdict, record);
}

function adviceForVerdict(verdict: Verdict, record: OperationRecord): string {
  const id = record.operationId;
  switch (verdict) {
    case 'stopped':
      return 'It is proven to run no more.';
    case 'ended_first':
      return (record.kill?.sent.length ?? 0) > 0
        ? `It ended by itself, as ${record.outcome ?? 'its reply says'}, although a kill had been sent to it.`
        : `It had ended before the kill, as ${record.outcome ?? 'its reply says'}: there was nothing to kill.`;
    case 'never_sent':
      return 'It had not been sent to the database, and it will not be.';
    case 'gone':
      return 'It runs no more; how it ended is unknown.';
    case 'refused':
      return `The database refused the kill for want of a privilege, and it still runs. Use a user with the action killop, or the user that it runs as, then kill "${id}" again.`;
    case 'still_running':
      return `It still runs although a kill was sent; it is watched on. Ask status with id "${id}" again.`;
    default:
      return isFinal(verdict) ? 'Nothing.' : `Not enough was seen to say that it stopped. It is watched on: ask status with id "${id}", or kill it again.`;
  }
}
