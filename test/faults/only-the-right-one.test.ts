import { setTimeout as delay } from 'node:timers/promises';
import type { Document, MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type BenchSite, sleeping, startSite } from '../support/bench.js';
import { eventually, running, taggedAs } from '../support/mongo.js';
import { untilGone } from '../support/runaways.js';

let site: BenchSite;
let stranger: MongoClient;
beforeAll(async () => {
  site = await startSite();
  stranger = await site.mongo.direct(site.host);
  const big = site.witness.db('app').collection('big');
  for (let i = 0; i < 4; i += 1) await big.insertMany(Array.from({ length: 12 }, (_, j) => ({ _id: (i * 12 + j) as never, text: 'x'.repeat(1_000_000) })));
});
afterEach(() => site.settle());
afterAll(() => site.stop());

const opids = (rows: readonly Document[]): unknown[] => rows.map((row) => row['opid'] as unknown);

it('of two identical operations and the same pipeline of a stranger, only the one that was meant dies', async () => {
  const { engine, runs } = await site.bench();
  const load = sleeping(30_000);
  const one = await runs(load);
  const other = await runs(load);
  const theirs = stranger.db('app').collection('one').aggregate(load.pipeline, { comment: 'theirs' }).toArray();
  theirs.catch(() => undefined);
  const [theirOpid] = opids(await eventually('theirs runs', async () => {
    const rows = await running(site.witness, 'theirs');
    return rows.length > 0 && rows;
  }));
  const otherOpids = opids(await taggedAs(site.witness, other.id));

  expect((await engine.kill(one.id)).verdict).toBe('stopped');
  expect(await taggedAs(site.witness, one.id)).toEqual([]);
  // Whatever else the kill might have hit would be gone by then.
  await delay(3_000);
  expect(opids(await taggedAs(site.witness, other.id))).toEqual(otherOpids);
  expect(opids(await running(site.witness, 'theirs'))).toEqual([theirOpid]);
  expect((await engine.status(other.id)).record).toMatchObject({ outcome: null, server: 'running', kill: null });

  expect((await engine.kill(other.id)).verdict).toBe('stopped');
  expect(opids(await running(site.witness, 'theirs'))).toEqual([theirOpid]);
  await stranger.db('admin').command({ killOp: 1, op: theirOpid });
  await expect(theirs).rejects.toMatchObject({ code: 11601 });
});

it('a comment of a stranger that holds a tag and does not begin with it is not mistaken for the operation', async () => {
  const { engine, runs } = await site.bench();
  const started = await runs(sleeping(30_000));
  const [row] = await taggedAs(site.witness, started.id);
  const tag = String(row?.['command'].comment);
  // Not a tag: something stands before it, and an unanchored search would find it.
  const near = `copy of ${tag}`;
  const theirs = stranger.db('app').collection('one').aggregate(sleeping(5_000).pipeline, { comment: near }).toArray();
  theirs.catch(() => undefined);
  await eventually('theirs runs', async () => (await running(site.witness, near)).length > 0);
  expect((await engine.kill(started.id)).verdict).toBe('stopped');
  const [left] = await running(site.witness, near);
  expect(left?.['killPending']).toBeUndefined();
  await stranger.db('admin').command({ killOp: 1, op: left?.['opid'] });
  await expect(theirs).rejects.toMatchObject({ code: 11601 });
});

it('with every place taken and more in the queue, one that is killed is gone within 2 seconds', async () => {
  const { engine, runs } = await site.bench({ maxOperations: 10 });
  const all = [];
  for (let i = 0; i < 10; i += 1) all.push(await runs(sleeping(30_000)));
  const queued = Array.from({ length: 10 }, () => engine.run(sleeping(30_000)));
  await eventually('the others queue', () => engine.leash.load().queued === 10);
  const [first, ...rest] = all;
  const kill = engine.kill(first?.id ?? '');
  expect(await untilGone(site.witness, first?.id ?? '', 2_000)).toBeLessThan(2_000);
  expect((await kill).verdict).toBe('stopped');

  const ids = [...rest, ...queued].map(({ id }) => id);
  const killed = await Promise.all(ids.map(async (id) => [id, (await engine.kill(id)).verdict] as const));
  expect(new Set(killed.map(([, verdict]) => verdict))).toEqual(new Set(['stopped', 'never_sent']));
  for (const [id] of killed) expect(await taggedAs(site.witness, id)).toEqual([]);
});

it('batches of 16 MB that are being read do not delay a kill', async () => {
  const { engine, runs } = await site.bench();
  const reads = [];
  for (let round = 0; round < 3; round += 1) {
    const started = await runs(sleeping(30_000));
    const read = engine.run({ collection: 'big', pipeline: [{ $sort: { _id: 1 } }, { $unionWith: 'big' }, { $unionWith: 'big' }], limit: 10_000, maxResultBytes: 1_000_000_000, waitMs: 60_000 });
    await eventually('its first batch has come', () => (engine.calls.get(read.id)?.documents.length ?? 0) > 0);
    const kill = engine.kill(started.id);
    expect(await untilGone(site.witness, started.id, 2_000)).toBeLessThan(2_000);
    expect((await kill).verdict).toBe('stopped');
    expect(engine.calls.get(read.id)?.end).toBeNull();
    reads.push(read);
  }
  for (const { answer } of reads) expect((await answer).record).toMatchObject({ outcome: 'succeeded', documentsRead: 144 });
});
