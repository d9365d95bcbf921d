import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Document } from 'mongodb';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { collectionNames, runArguments, startWaiting, untilGone } from '../support/runaways.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  server = await startServer({ uri: mongo.uri, args: ['--allow-writes'] });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

async function uuidOf(database: string, collection: string): Promise<string> {
  const [found] = await mongo.client.db(database).listCollections({ name: collection }).toArray();
  return String((found as { info?: { uuid?: { toHexString(): string } } } | undefined)?.info?.uuid?.toHexString());
}

const documentsOf = (database: string, collection: string) => mongo.client.db(database).collection<Document & { _id: unknown }>(collection);

/** The pipeline of the case, ended before it has made more than a few documents. */
function small(request: Record<string, unknown>): Record<string, unknown> {
  const pipeline = structuredClone(request['pipeline']) as Document[];
  pipeline[0]!['$project'].v.$range[1] = 2;
  return { ...request, pipeline };
}

describe('a long $out that is stopped', () => {
  const runaway = runawayCase('16');

  it.each(['kill', 'cancel'] as const)('by %s leaves its target whole and nothing else behind, and the answer says so by the UUID', async (stop) => {
    const database = `runaway_16_${stop}`;
    await setUpRunaway(mongo.client, database, runaway);
    const uuid = await uuidOf(database, 'target');
    const started = await startWaiting(server, mongo.client, runArguments(runaway, database), `out-${stop}`);
    await eventually('it writes to its temporary collection', async () => (await collectionNames(mongo.client, database)).some((name) => name.startsWith('tmp.agg_out.')));
    expect(await server.call('status', { id: started.id })).toMatchObject({ server: 'running', outcome: null, database, collection: 'src', writes: { stage: '$out', target: `${database}.target` } });

    const stopping = stop === 'kill' ? server.call('kill', { id: started.id }) : Promise.resolve(started.cancel());
    expect(await untilGone(mongo.client, started.id, 2_000)).toBeLessThan(2_000);
    await stopping;
    const told = await server.call('status', { id: started.id, waitMs: 10_000 });
    expect(told).toMatchObject({ outcome: 'killed', by: 'us', verdict: 'stopped', error: { serverCode: 11601 } });
    expect(await documentsOf(database, 'target').find().toArray()).toEqual([{ _id: 'old' }]);
    expect(await collectionNames(mongo.client, database)).toEqual(['src', 'target']);
    expect(await uuidOf(database, 'target')).toBe(uuid);
    expect(told.writes.effects).toContain(`the same collection as before (UUID ${uuid})`);
  });

  it('by its time limit of 2 s leaves its target whole, and is no kill', async () => {
    const database = 'runaway_16_limit';
    await setUpRunaway(mongo.client, database, runaway);
    const answer = await server.call('run', { ...runArguments(runaway, database), maxTimeMS: 2_000 });
    expect(answer).toMatchObject({ outcome: 'timed_out', error: { code: 'timed_out', serverCode: 50 } });
    expect(answer).not.toHaveProperty('kill');
    expect(answer.elapsedMs).toBeGreaterThanOrEqual(1_990);
    expect(answer.elapsedMs).toBeLessThan(4_000);
    expect(answer.writes.effects).toContain(`the same collection as before (UUID ${await uuidOf(database, 'target')})`);
    expect(await documentsOf(database, 'target').find().toArray()).toEqual([{ _id: 'old' }]);
    expect(await collectionNames(mongo.client, database)).toEqual(['src', 'target']);
  });
});

describe('a long $merge that is stopped', () => {
  const runaway = runawayCase('17');

  it.each(['kill', 'cancel'] as const)('by %s leaves what it had merged, and the answer says so and never speaks of a rollback', async (stop) => {
    const database = `runaway_17_${stop}`;
    await setUpRunaway(mongo.client, database, runaway);
    const started = await startWaiting(server, mongo.client, runArguments(runaway, database), `merge-${stop}`);
    await eventually('something has been merged', async () => (await documentsOf(database, 'target').estimatedDocumentCount()) > 0);

    const stopping = stop === 'kill' ? server.call('kill', { id: started.id }) : Promise.resolve(started.cancel());
    expect(await untilGone(mongo.client, started.id, 2_000)).toBeLessThan(2_000);
    await stopping;
    const told = await server.call('status', { id: started.id, waitMs: 10_000 });
    expect(told).toMatchObject({ outcome: 'killed', by: 'us', verdict: 'stopped', error: { serverCode: 11601 }, writes: { stage: '$merge', target: `${database}.target` } });
    expect(told.writes.effects).toContain('stays there: partial effects are possible');
    expect(JSON.stringify(told)).not.toMatch(/roll(ed|s)? ?back/i);
    const merged = await documentsOf(database, 'target').countDocuments();
    expect(merged).toBeGreaterThan(0);
    expect(merged).toBeLessThan(400 * 50_000);
    // It writes no more.
    expect(await taggedAs(mongo.client, started.id)).toEqual([]);
    expect(await documentsOf(database, 'target').countDocuments()).toBe(merged);
  });

  it('by its time limit of 2 s says that partial effects are possible, and is no kill', async () => {
    const database = 'runaway_17_limit';
    await setUpRunaway(mongo.client, database, runaway);
    const answer = await server.call('run', { ...runArguments(runaway, database), maxTimeMS: 2_000 });
    expect(answer).toMatchObject({ outcome: 'timed_out', error: { code: 'timed_out', serverCode: 50 } });
    expect(answer).not.toHaveProperty('kill');
    expect(answer.elapsedMs).toBeLessThan(4_000);
    expect(answer.writes.effects).toContain('stays there: partial effects are possible');
    expect(await documentsOf(database, 'target').countDocuments()).toBeGreaterThan(0);
  });
});

describe('a write that succeeds', () => {
  it('says of $out that its target holds the result', async () => {
    const runaway = runawayCase('16');
    await setUpRunaway(mongo.client, 'written_16', runaway);
    const answer = await server.call('run', small(runArguments(runaway, 'written_16')));
    expect(answer).toMatchObject({ outcome: 'succeeded', documents: [], more: false, writes: { stage: '$out', target: 'written_16.target', effects: 'written_16.target holds the result now.' } });
    expect(answer.next).toBe('written_16.target holds the result now.');
    expect(await documentsOf('written_16', 'target').countDocuments()).toBe(800);
  });

  it('says of $merge that its result was merged', async () => {
    const runaway = runawayCase('17');
    await setUpRunaway(mongo.client, 'written_17', runaway);
    const answer = await server.call('run', small(runArguments(runaway, 'written_17')));
    expect(answer).toMatchObject({ outcome: 'succeeded', documents: [], more: false, writes: { stage: '$merge', target: 'written_17.target', effects: 'The result was merged into written_17.target.' } });
    expect(await documentsOf('written_17', 'target').countDocuments()).toBe(800);
  });
});
