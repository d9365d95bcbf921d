/** `npm run demo`: one command from a fresh clone to the running demo, whose exit code it passes on. */
import './node-version.mjs';
import { main, runNode } from './run.mjs';
import { setUp } from './setup.mjs';

await main(async () => {
  const env = await setUp();
  return runNode(['scripts/demo-drive.mjs'], { env, ownsSignals: true });
});
