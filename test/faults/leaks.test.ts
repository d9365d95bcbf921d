import type { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type BenchSite, connections, sleeping, startSite } from '../support/bench.js';
import { eventually, tagged } from '../support/mongo.js';

let site: BenchSite;
let watching: MongoClient;
beforeAll(async () => {
  site = await startSite();
  watching = await site.mongo.direct(site.host);
});
afterEach(() => site.settle());
afterAll(() => site.stop());

const batches = { pipeline: [{ $set: { n: { $range: [0, 500] } } }, { $unwind: '$n' }], limit: 10_000 };

/** The logical sessions that this node knows, those of the witness among them. */
async function sessions(): Promise<Set<string>> {
  const rows = await watching.db('admin').aggregate([{ $listLocalSessions: { allUsers: true } }]).toArray();
  return new Set(rows.map((row) => String(row['_id'].id)));
}

it('operations that ended, were killed, or lost their connection leave no cursor, no session and no connection of their own', async () => {
  const { engine, runs, dataWire } = await site.bench();
  await engine.run({ pipeline: [{ $match: {} }], waitMs: 10_000 }).answer;
  const sessionsBefore = await sessions();
  const connectionsBefore = (await connections(watching)).length;
  const broken = 3;

  for (let i = 0; i < 10; i += 1) {
    expect((await engine.run({ pipeline: [{ $match: {} }], waitMs: 10_000 }).answer).record.outcome).toBe('succeeded');
    expect((await engine.run({ ...batches, waitMs: 10_000 }).answer).record.outcome).toBe('succeeded');
    // More than it may read: the cursor that is left is closed for it.
    const cut = await engine.run({ ...batches, maxResultBytes: 1_000, waitMs: 10_000 }).answer;
    expect(cut.record).toMatchObject({ outcome: 'succeeded', more: true, cause: 'answer_complete' });
    expect((await engine.kill((await runs(sleeping(30_000))).id)).verdict).toBe('stopped');
    const failed = await engine.run({ pipeline: [{ $project: { n: { $divide: [1, 0] } } }], waitMs: 10_000 }).answer;
    expect(failed.record.outcome).toBe('failed');
  }
  for (let i = 0; i < broken; i += 1) {
    const started = await runs({ ...sleeping(30_000), waitMs: 10_000 });
    dataWire(started.id).cut('rst', 'client');
    expect((await started.answer).record).toMatchObject({ outcome: 'killed', cause: 'connection_lost' });
  }

  expect(await tagged(watching)).toEqual([]);
  // One session serves one operation after the other; a driver gives up that of a broken connection, and begins another.
  const added = [...await sessions()].filter((id) => !sessionsBefore.has(id));
  expect(added.length).toBeLessThanOrEqual(broken + 2);
  // What the proxy still holds open of the connections that were cut is its own.
  expect((await connections(watching)).length).toBeLessThanOrEqual(connectionsBefore + broken + 1);
});

it('the end of an engine closes every connection that it has opened', async () => {
  const count = async () => (await watching.db('admin').command({ serverStatus: 1 }))['connections'].current as number;
  await eventually('those of the test before are closed', async () => (await connections(watching)).length === 0);
  const before = await count();
  const bench = await site.bench();
  const running = [];
  // One after the other, so that the witness needs no further connection of its own.
  for (let i = 0; i < 5; i += 1) running.push(await bench.runs(sleeping(30_000)));
  expect(await count()).toBeGreaterThan(before + 5);
  for (const { id } of running) expect((await bench.engine.kill(id)).verdict).toBe('stopped');
  await bench.engine.close();
  await eventually('as many connections are open as before', async () => await count() <= before);
});
