/** Measures a small call and the start against the driver alone, a bare server and the stock server. `--write` keeps it in docs/bench.md, `--quick` is for a look. */
import './node-version.mjs';
import process from 'node:process';
import { main, runNode } from './run.mjs';
import { setUp } from './setup.mjs';

await main(async () => {
  const env = await setUp();
  return runNode(['scripts/bench/drive.mjs', ...process.argv.slice(2)], { env, ownsSignals: true });
});
