/** `npm test`: every check of the project from a fresh clone on. Its last line is vitest's own totals, for people and CI alike. */
import './node-version.mjs';
import process from 'node:process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import { main, runNode, say } from './run.mjs';
import { setUp } from './setup.mjs';
import { totalsLine } from './totals.mjs';

const checks = [
  { name: 'type check', args: ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.check.json'] },
  { name: 'lint', args: ['node_modules/eslint/bin/eslint.js', '--max-warnings', '0', '.'] },
  { name: 'import directions', args: ['scripts/check-imports.mjs'] },
];

await main(async () => {
  const env = await setUp();
  const failed = [];
  const step = async ({ name, args }) => {
    say(name);
    const startedAt = performance.now();
    const code = await runNode(args, { env });
    const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
    say(`${name} ${code === 0 ? 'passed' : `FAILED (exit code ${code})`} in ${seconds} s`);
    if (code !== 0) failed.push(name);
  };

  for (const check of checks) await step(check);

  const workDir = await mkdtemp(join(tmpdir(), 'mongo-leash-test-'));
  try {
    const report = join(workDir, 'vitest.json');
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    await step({
      name: 'tests',
      args: ['node_modules/vitest/vitest.mjs', 'run', ...reporters, ...process.argv.slice(2)],
    });
    const totals = await readFile(report, 'utf8').catch(() => undefined);
    if (failed.length > 0) say(`failed: ${failed.join(', ')}`);
    if (totals === undefined) say('vitest wrote no report, so there are no totals');
    else process.stdout.write(`${totalsLine(JSON.parse(totals))}\n`);
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
  return failed.length > 0 ? 1 : 0;
});
