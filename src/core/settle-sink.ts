/** Closes the file of an export when its call has ended: kept as a whole, or removed. */

import { LeashError } from '../domain/errors.js';
import { pause } from './clock.js';
import type { Sink } from './exports.js';
import type { Clock, ExecutionEnd } from './ports.js';

/** How long the last bytes of a file may take to reach the disk, in milliseconds. */
const keepMs = 60_000;

/** @returns the end of the call, which is `not_taken` where the file could not be kept. Never rejects. */
export async function settleSink(sink: Sink, ended: ExecutionEnd, clock: Clock): Promise<ExecutionEnd> {
  if (ended.kind !== 'complete' && ended.kind !== 'cut') {
    // Nobody waits for it: a disk that hangs must not hold up what is known of the database.
    void sink.discard();
    return ended;
  }
  let failure: unknown = new LeashError('export_failed', `The disk did not take the end of the file within ${keepMs} ms.`);
  const kept = sink.keep().then(() => { failure = null; }, (error: unknown) => { failure = error; });
  await pause(clock, keepMs, kept);
  if (failure === null) return ended;
  void sink.discard();
  return { kind: 'not_taken', error: failure, open: ended.kind === 'cut' };
}
