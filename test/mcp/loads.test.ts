import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { blockByDrop, runArguments, spilledFiles, startDetached, untilGone } from '../support/runaways.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;
const measured: [load: string, ms: number][] = [];

beforeAll(async () => {
  mongo = await startMongo();
  server = await startServer({ uri: mongo.uri, args: ['--allow-js', '--allow-writes'] });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
  console.log(['kill to gone, in milliseconds:', ...measured.map(([load, ms]) => `  ${load}: ${ms}`)].join('\n'));
});

const javascript = (body: string) => ({ pipeline: [{ $project: { x: { $function: { body, args: [], lang: 'js' } } } }] });
const sum = { $reduce: { input: { $range: [0, 5_000] }, initialValue: 0, in: { $add: ['$$value', { $mod: ['$$this', 7] }] } } };
const hasSpilled = async () => await eventually('it spills to disk', () => spilledFiles(mongo).length > 0);

interface Load {
  load: string;
  /** The runaway whose data, and unless it is replaced whose operation, this is. */
  from: string;
  request?: Record<string, unknown>;
  /** Waits for what makes it this load. */
  until?: () => Promise<unknown>;
  locked?: boolean;
}

const loads: Load[] = [
  { load: 'collection scan with $expr', from: '15', request: { pipeline: [{ $match: { $expr: { $lt: [sum, 0] } } }] } },
  { load: '$function, sleeping', from: '06', request: javascript('function(){sleep(40000);return 1;}') },
  { load: '$function, busy', from: '06', request: javascript('function(){while(true){}}') },
  {
    load: '$group that spills to disk',
    from: '05',
    request: {
      pipeline: [{ $project: { v: { $range: [0, 200_000] }, pad: 1 } }, { $unwind: '$v' }, { $group: { _id: { row: '$_id', v: '$v' }, pad: { $first: '$pad' } } }, { $count: 'n' }],
    },
    until: hasSpilled,
  },
  { load: '$sort that spills to disk', from: '05', until: hasSpilled },
  { load: '$lookup', from: '01' },
  { load: '$graphLookup', from: '04' },
  { load: '$out', from: '16' },
  { load: '$merge', from: '17' },
  { load: '$merge that waits for a lock', from: '13', locked: true },
];

describe.each(loads)('$load', ({ load, from, request, until, locked }) => {
  const database = `load_${loads.findIndex((each) => each.load === load)}`;
  const runaway = runawayCase(from);
  let release: () => Promise<void> = async () => undefined;

  beforeAll(async () => {
    await setUpRunaway(mongo.client, database, runaway);
    if (locked === true) ({ release } = await blockByDrop(mongo.client, database, runaway));
    return async () => {
      await release();
    };
  });

  it('is gone from the database within 2 s of the kill, and the verdict is stopped', async () => {
    const { id } = await startDetached(server, mongo.client, { ...runArguments(runaway, database), ...request });
    await until?.();
    // The time of a $merge starts anew with each of its updates.
    if (from !== '17') await eventually('it has run for a while', async () => Number((await taggedAs(mongo.client, id))[0]?.['microsecs_running']) > 100_000);
    const [goneMs, killed] = await Promise.all([untilGone(mongo.client, id, 2_000), server.call('kill', { id })]);
    expect(await taggedAs(mongo.client, id)).toEqual([]);
    measured.push([load, goneMs]);
    expect(goneMs).toBeLessThan(2_000);
    expect(killed).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us', server: 'ended', error: { serverCode: 11601 } });
    expect(killed.kill.sent).not.toEqual([]);
    if (until !== undefined) await eventually('its temporary files are gone', () => spilledFiles(mongo).length === 0, 2_000);
  });
});
