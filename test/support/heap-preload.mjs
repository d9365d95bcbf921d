/** Loaded before the program by a test, with --expose-gc: on SIGUSR2 it says on stderr what is left in memory after a collection. */

import process from 'node:process';
import { setImmediate } from 'node:timers';

process.on('SIGUSR2', async () => {
  // What was let go of in a callback of the first collection goes with the later ones.
  for (let round = 0; round < 5; round += 1) {
    globalThis.gc();
    await new Promise((resolve) => { setImmediate(resolve); });
  }
  process.stderr.write(`${JSON.stringify({ heapUsedBytes: process.memoryUsage().heapUsed })}\n`);
});
