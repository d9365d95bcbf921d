/** One clock for several processes of this machine, and waits with a deadline. */
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';

/** Milliseconds, with a fraction, of the system's monotonic clock, which all processes read alike; only differences mean something. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

/**
 * Asks again until the answer is there.
 * @throws {Error} naming what was waited for, when the time is over
 */
export async function until(what, ask, withinMs) {
  const deadline = now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer) return answer;
    if (now() > deadline) throw new Error(`within ${withinMs} ms it did not come true that ${what}`);
    await delay(10);
  }
}
