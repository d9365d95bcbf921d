import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Document } from 'mongodb';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type TestMongo, eventually, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { runArguments, startDetached, startWaiting, untilGone } from '../support/runaways.js';
import { type TestServer, startServer } from '../support/server.js';

const database = 'runaway_15';
const runaway = runawayCase('15');
/** More than one batch, so that the cost comes in getMores. */
const request = { ...runArguments(runaway, database), limit: 10_000 };
let mongo: TestMongo;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  await setUpRunaway(mongo.client, database, runaway);
  server = await startServer({ uri: mongo.uri });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

async function openCursors(): Promise<number> {
  return Number((await mongo.client.db('admin').command({ serverStatus: 1 }))['metrics'].cursor.open.total);
}

async function inGetMore(id: string): Promise<Document> {
  return await eventually('the database is in a getMore', async () => (await taggedAs(mongo.client, id)).find(({ op }) => op === 'getmore'), 30_000);
}

describe('an aggregation whose cost comes after the first batch', () => {
  it('is found in its getMore although opid and kind of operation have changed, and killed there with its cursor', async () => {
    const before = await openCursors();
    const { id, row } = await startDetached(server, mongo.client, request);
    expect(row).toMatchObject({ op: 'command', command: { aggregate: 'seq' } });
    const later = await inGetMore(id);
    expect(later['opid']).not.toBe(row['opid']);
    expect(later).toMatchObject({ command: { collection: 'seq' }, cursor: { originatingCommand: { aggregate: 'seq' } } });

    const told = await server.call('status', { id });
    expect(told).toMatchObject({ server: 'running', outcome: null });
    expect(told.evidence.at(-1)).toMatchObject({ saw: 'operation', namespace: `${database}.seq`, planSummary: 'IXSCAN { _id: 1 }' });
    expect(told.evidence.at(-1).opid).not.toBe(String(row['opid']));
    expect(told.documentsRead).toBeGreaterThanOrEqual(1_000);

    const [goneMs, killed] = await Promise.all([untilGone(mongo.client, id, 2_000), server.call('kill', { id })]);
    expect(goneMs).toBeLessThan(2_000);
    expect(await taggedAs(mongo.client, id)).toEqual([]);
    expect(killed).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us', error: { serverCode: 11601, message: expect.stringContaining('getMore') } });
    expect(await openCursors()).toBe(before);
  });

  it('is killed in its getMore when its call is cancelled, and keeps what it had read', async () => {
    const before = await openCursors();
    const started = await startWaiting(server, mongo.client, request, 'slow-batches');
    await inGetMore(started.id);
    started.cancel();
    expect(await untilGone(mongo.client, started.id, 2_000)).toBeLessThan(2_000);
    await started.cancelled;
    const told = await server.call('status', { requestId: started.requestId, waitMs: 10_000 });
    expect(told).toMatchObject({ outcome: 'killed', by: 'us', verdict: 'stopped', wait: 'cancelled' });
    expect(await openCursors()).toBe(before);
    const kept = await server.call('result', { id: started.id, limit: 1 });
    expect(kept).toMatchObject({ outcome: 'killed', documents: [{ _id: 0, v: 0 }] });
    expect(kept.documentsRead).toBeGreaterThanOrEqual(1_000);
  });

  it('is ended by its time limit of 2 s over all its batches, which is no kill', async () => {
    const before = await openCursors();
    const answer = await server.call('run', { ...request, maxTimeMS: 2_000 });
    expect(answer).toMatchObject({ outcome: 'timed_out', error: { code: 'timed_out', serverCode: 50 } });
    expect(answer).not.toHaveProperty('kill');
    expect(answer.elapsedMs).toBeGreaterThanOrEqual(1_990);
    expect(answer.elapsedMs).toBeLessThan(4_000);
    expect(answer.next).toContain('ask for more with maxTimeMS');
    expect(await tagged(mongo.client)).toEqual([]);
    expect(await openCursors()).toBe(before);
  });
});
