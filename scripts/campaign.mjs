/** Plays the fault campaign for as long as is asked: random lives on a real mongod behind a bad network, watched by an observer. */
import './node-version.mjs';
import { parseArgs } from 'node:util';
import { main, runNode, say, SetupError } from './run.mjs';
import { setUp } from './setup.mjs';

const usage = 'usage: node scripts/campaign.mjs [--lives n (600)] [--seed n (of the moment)]';

const wholeNumber = (name, text) => {
  if (!/^\d{1,9}$/.test(text)) throw new SetupError(`--${name} must be a whole number below a billion\n${usage}`);
  return text;
};

const readOptions = () => {
  try {
    const { values } = parseArgs({ options: { lives: { type: 'string', default: '600' }, seed: { type: 'string', default: String(Math.floor(Date.now() / 1000) % 1_000_000) } } });
    return { lives: wholeNumber('lives', values.lives), seed: wholeNumber('seed', values.seed) };
  } catch (error) {
    throw error instanceof SetupError ? error : new SetupError(`${error.message}\n${usage}`);
  }
};

await main(async () => {
  const { lives, seed } = readOptions();
  const env = await setUp();
  say(`campaign of ${lives} lives from seed ${seed}; a wave that fails says how to play it again`);
  // Progress goes straight through: one line a wave.
  return await runNode(['node_modules/vitest/vitest.mjs', 'run', '--disable-console-intercept=true', 'test/faults/campaign.test.ts'], {
    env: { ...env, CAMPAIGN_LIVES: lives, CAMPAIGN_SEED: seed },
  });
});
