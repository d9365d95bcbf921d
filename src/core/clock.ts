/** The real clock: monotonic for measuring, wall-clock only for showing. */

import type { Clock } from './ports.js';

export function systemClock(): Clock {
  const now = () => performance.now();
  let offset = Date.now() - now();
  // One operation asks for the same moment several times.
  let last = { ms: Number.NaN, text: '' };
  return {
    now,
    iso(at = now()) {
      // One offset gives one moment one text; it moves only when the machine's clock was set or the machine slept.
      const current = Date.now() - now();
      if (Math.abs(current - offset) > 50) offset = current;
      const ms = Math.round(offset + at);
      if (ms !== last.ms) last = { ms, text: new Date(ms).toISOString() };
      return last.text;
    },
    after(ms, call, options) {
      // A longer timer than this fires at once in Node.
      const timer = setTimeout(call, Math.min(ms, 2_147_483_647));
      if (options?.background === true) timer.unref();
      return () => {
        clearTimeout(timer);
      };
    },
  };
}

/** Waits that many milliseconds, or until the other promise settles, whichever is first. */
export async function pause(clock: Clock, ms: number, orUntil?: Promise<unknown>): Promise<void> {
  await new Promise<void>((resolve) => {
    const cancel = clock.after(ms, resolve);
    const settle = () => {
      cancel();
      resolve();
    };
    orUntil?.then(settle, settle);
  });
}
