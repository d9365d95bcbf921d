/** `mongo-leash top --json`: what runs under our tags, each second, one object a line, for as long as somebody reads. */

import { pause } from '../core/clock.js';
import { takeSurvey } from '../core/survey.js';
import { printJson } from './output.js';
import { endSignals } from './signals.js';
import type { Terminal } from './terminal.js';

const refreshMs = 1_000;

/** Ends with 0 on a signal, or when nobody reads any more. @throws LeashError unreachable when there is nothing to look at in the beginning */
export async function topJson(terminal: Terminal): Promise<number> {
  const { clock } = terminal;
  let over = false;
  const left = new Promise<void>((resolve) => {
    const leave = () => {
      over = true;
      resolve();
    };
    for (const signal of endSignals) process.once(signal, leave);
    process.stdout.once('error', leave);
  });
  while (!over) {
    const { entries, silent } = await takeSurvey(terminal, { untagged: false });
    const seenAt = clock.iso();
    for (const entry of entries) printJson({ seenAt, ...entry });
    for (const { node, reason } of silent) printJson({ seenAt, node, silent: reason });
    await pause(clock, refreshMs, left);
  }
  return 0;
}
