/** Runs the side-by-side tests with the stock server, and writes docs/compatibility.md from what they meet. */
import './node-version.mjs';
import { main, runNode, say } from './run.mjs';
import { setUp } from './setup.mjs';

await main(async () => {
  const env = { ...(await setUp()), WRITE_COMPATIBILITY: '1' };
  // One file after the other: both write the page, and what is measured should not wait for another test.
  const code = await runNode(['node_modules/vitest/vitest.mjs', 'run', '--no-file-parallelism', 'test/compatibility'], { env });
  if (code === 0) say('docs/compatibility.md holds what this run has met (what was skipped stays as it was)');
  return code;
});
