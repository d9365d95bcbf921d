import process from 'node:process';
import type { MongoClient } from 'mongodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type BenchSite, startSite } from '../support/bench.js';
import { seedLoads } from '../support/campaign-loads.js';
import { type WaveResult, playWave } from '../support/campaign.js';

// `scripts/campaign.mjs` sets these for the long form.
const seed = Number(process.env['CAMPAIGN_SEED'] ?? 1028);
const lives = Number(process.env['CAMPAIGN_LIVES'] ?? 60);
const isLong = process.env['CAMPAIGN_LIVES'] !== undefined;
const livesInWave = 12;

let site: BenchSite;
let watching: MongoClient;
beforeAll(async () => {
  // A stranger sleeps in JavaScript for longer than the server allows by itself.
  site = await startSite({ args: ['--setParameter', 'internalQueryJavaScriptFnTimeoutMillis=600000'] });
  await seedLoads(site.witness);
  watching = await site.mongo.direct(site.host);
});
afterAll(() => site.stop());

function tell({ seed: played, problems, ends, looks, elapsedMs, stoppedButEnded }: WaveResult): void {
  if (!isLong) return;
  process.stderr.write(`seed ${played}: ${JSON.stringify(ends)}, stopped and yet ended well ${stoppedButEnded}, ${looks} looks, ${elapsedMs} ms\n`);
  for (const problem of problems) process.stderr.write(`  ${problem}\n`);
}

it(`of ${lives} random lives, no answer is contradicted by what the database shows, and nothing is left`, async () => {
  const problems: Record<string, string[]> = {};
  for (let wave = 0; wave * livesInWave < lives; wave += 1) {
    // Each wave is a seed of its own, so that one that fails can be played again alone.
    const result = await playWave(site, watching, seed + wave, Math.min(livesInWave, lives - wave * livesInWave));
    tell(result);
    if (result.problems.length > 0) problems[`play it again: node scripts/campaign.mjs --seed ${result.seed} --lives ${result.lives}`] = result.problems;
  }
  expect(problems).toEqual({});
}, 30_000 + lives * 5_000);
