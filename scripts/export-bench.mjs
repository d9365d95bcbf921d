/** Measures an export of a million documents against the driver's own cursor, and writes what it measured into docs/exports.md. */
import './node-version.mjs';
import { main, runNode } from './run.mjs';
import { setUp } from './setup.mjs';

await main(async () => {
  const env = await setUp();
  return runNode(['scripts/export-bench-drive.mjs'], { env, ownsSignals: true });
});
