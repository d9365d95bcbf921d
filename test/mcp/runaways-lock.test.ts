import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type TestMongo, startMongo, taggedAs } from '../support/mongo.js';
import { blockByDrop, collectionNames, runArguments, startDetached, startWaiting, untilGone } from '../support/runaways.js';
import { type TestServer, startServer } from '../support/server.js';

const database = 'runaway_13';
const runaway = runawayCase('13');
const request = runArguments(runaway, database);
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

describe('a $merge that waits for a lock behind a drop', () => {
  let release: () => Promise<void>;

  beforeEach(async () => {
    await setUpRunaway(mongo.client, database, runaway);
    ({ release } = await blockByDrop(mongo.client, database, runaway));
    return async () => {
      await release();
    };
  });

  it('is told of as waiting for a lock, and killed while it waits', async () => {
    const { id } = await startDetached(server, mongo.client, request);
    const told = await server.call('status', { id, waitMs: 1_000 });
    const [row] = await taggedAs(mongo.client, id);
    expect(row).toMatchObject({ waitingForLock: true });
    expect(told).toMatchObject({ server: 'waiting_for_lock', outcome: null });
    expect(told.evidence.at(-1)).toMatchObject({ saw: 'operation', opid: String(row?.['opid']), waitingForLock: true, killPending: false });

    const [goneMs, killed] = await Promise.all([untilGone(mongo.client, id, 2_000), server.call('kill', { id })]);
    expect(goneMs).toBeLessThan(2_000);
    expect(await taggedAs(mongo.client, id)).toEqual([]);
    expect(killed).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us', error: { serverCode: 11601 } });
    expect(killed.kill.before[0]).toMatchObject({ waitingForLock: true });
    expect(killed.writes).toMatchObject({ stage: '$merge', target: `${database}.locked` });
    expect(killed.writes.effects).toContain('partial effects are possible');
  });

  it('is killed when its call is cancelled, and does not come back when the lock is free', async () => {
    const started = await startWaiting(server, mongo.client, request, 'locked-out');
    started.cancel();
    expect(await untilGone(mongo.client, started.id, 2_000)).toBeLessThan(2_000);
    await started.cancelled;
    const told = await server.call('status', { requestId: started.requestId, waitMs: 10_000 });
    expect(told).toMatchObject({ outcome: 'killed', by: 'us', verdict: 'stopped', wait: 'cancelled' });
    await release();
    release = async () => undefined;
    expect(await collectionNames(mongo.client, database)).toEqual(['src']);
  });

  it('is ended by its time limit of 2 s while it waits, which is no kill', async () => {
    const answer = await server.call('run', { ...request, maxTimeMS: 2_000 });
    expect(answer).toMatchObject({ outcome: 'timed_out', error: { code: 'timed_out', serverCode: 50 } });
    expect(answer).not.toHaveProperty('kill');
    expect(answer.elapsedMs).toBeGreaterThanOrEqual(1_990);
    expect(answer.elapsedMs).toBeLessThan(4_000);
    expect(answer.next).toContain('ask for more with maxTimeMS');
    expect(await taggedAs(mongo.client, answer.operationId)).toEqual([]);
  });
});
