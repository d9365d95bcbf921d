import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type Bench, type BenchSite, profiled, sleeping, startSite } from '../support/bench.js';
import type { Started } from '../support/engine.js';
import { eventually, taggedAs } from '../support/mongo.js';
import { untilGone } from '../support/runaways.js';
import type { Cut } from '../support/tcp-proxy.js';

let site: BenchSite;
beforeAll(async () => { site = await startSite(); });
afterEach(() => site.settle());
afterAll(() => site.stop());

const merging = (ms: number, into: string) => ({ collection: 'one', pipeline: [...sleeping(ms).pipeline, { $merge: { into } }], writesTo: `app.${into}` });

/** Cuts the connection of the call on the client's side only: the server is not told, and runs on. */
async function cutUnderway({ dataWire }: Bench, { id }: Started, how: Cut): Promise<void> {
  const wire = dataWire(id);
  wire.cut(how, 'client');
  await delay(100);
  expect(await taggedAs(site.witness, id), 'it runs on').toHaveLength(1);
}

describe('when the connection of a call is cut, and the server does not learn of it', () => {
  it.each(['rst', 'fin'] as const)('a read is killed, since its answer cannot come any more (%s)', async (how) => {
    const bench = await site.bench();
    const started = await bench.runs({ ...sleeping(30_000), waitMs: 20_000 });
    const wire = bench.dataWire(started.id);
    wire.cut(how, 'client');
    await untilGone(site.witness, started.id, 2_000);
    const { record } = await started.answer;
    expect(record).toMatchObject({ outcome: 'killed', by: 'us', cause: 'connection_lost', server: 'not_seen', kill: { verdict: 'stopped' } });
    expect(record.error?.message).toMatch(/broke before the reply came/);
    expect(await profiled(site.witness, started.id)).toEqual([{ op: 'command', errCode: 11601 }]);
  });

  it('a write is left to finish, and what it wrote is there', async () => {
    const bench = await site.bench();
    const started = await bench.runs(merging(1_500, 'finished'));
    await cutUnderway(bench, started, 'rst');
    const notes = await eventually('it has ended', async () => {
      const soFar = await profiled(site.witness, started.id);
      return soFar.some(({ op }) => op === 'command') && soFar;
    });
    expect(notes).toEqual([{ op: 'update', errCode: null }, { op: 'command', errCode: null }]);
    expect(await site.witness.db('app').collection('finished').countDocuments()).toBe(1);
    const { record } = await eventually('it is known to be gone', async () => {
      const seen = await bench.engine.status(started.id);
      return seen.record.outcome !== null && seen;
    });
    expect(record).toMatchObject({ outcome: 'lost', by: null, cause: null, kill: null });
    expect(record.writes?.effects).toMatch(/partial or full effects on app\.finished are possible/);
  });

  it('a write that does not finish is killed at its deadline', async () => {
    const bench = await site.bench({ deadlineGraceMs: 300 });
    const started = await bench.runs({ ...merging(30_000, 'unfinished'), maxTimeMS: 500 });
    await cutUnderway(bench, started, 'rst');
    await untilGone(site.witness, started.id, 3_000);
    const { verdict, record } = await bench.engine.status(started.id, 5_000);
    expect({ verdict, record }).toMatchObject({ verdict: 'gone', record: { outcome: 'lost', cause: 'deadline' } });
    expect(await profiled(site.witness, started.id)).toEqual([{ op: 'command', errCode: 11601 }]);
    expect(await site.witness.db('app').collection('unfinished').countDocuments()).toBe(0);
  });
});

it('a wire that loses everything in silence does not stop a kill: the looks go another way', async () => {
  const bench = await site.bench();
  const started = await bench.runs(sleeping(30_000));
  await cutUnderway(bench, started, 'silence');
  expect(await bench.engine.kill(started.id)).toMatchObject({ verdict: 'stopped', record: { server: 'not_seen', outcome: 'killed' } });
  expect(await profiled(site.witness, started.id)).toEqual([{ op: 'command', errCode: 11601 }]);
});

it('a call whose connection went silent between two batches is given up as well, and frees its place and its connection', async () => {
  const bench = await site.bench({ maxOperations: 1, connections: 0 });
  const batches = { pipeline: [{ $set: { n: { $range: [0, 500] } } }, { $unwind: '$n' }], limit: 10_000, waitMs: 30_000 };
  bench.proxy.onClientBytes((wire, text) => { if (text.includes('getMore') && text.includes(started.id)) wire.cut('silence'); });
  const started = bench.engine.run(batches);
  await eventually('its connection is silent', () => bench.proxy.wires().some((wire) => wire.wasCut));
  expect(await bench.engine.kill(started.id)).toMatchObject({ verdict: 'stopped', record: { outcome: 'killed', by: 'us' } });
  expect(bench.engine.calls.get(started.id)?.end?.kind).toBe('given_up');
  // With one place and one connection, it would wait for ever if these were not free.
  expect((await bench.engine.run({ pipeline: [{ $match: {} }], waitMs: 10_000 }).answer).record.outcome).toBe('succeeded');
});

it('control connections that are cut in the middle of a kill are opened again, and the kill is proven', async () => {
  const bench = await site.bench();
  for (const cutWhen of ['killOp', '$currentOp'] as const) {
    const started = await bench.runs(sleeping(30_000));
    let cuts = 0;
    bench.proxy.onClientBytes((wire, text) => {
      if (wire.kind !== 'control' || !text.includes(cutWhen) || cuts === 2) return;
      cuts += 1;
      wire.toServer.swallow();
      wire.cut('rst');
    });
    expect(await bench.engine.kill(started.id)).toMatchObject({ verdict: 'stopped', record: { outcome: 'killed', by: 'us' } });
    expect(cuts).toBe(2);
    expect(await taggedAs(site.witness, started.id)).toEqual([]);
  }
});

it('a kill that never came through is not what ended an operation: it is gone, and nobody knows how', async () => {
  const runner = await site.bench();
  const killer = await site.bench();
  const started = await runner.runs({ ...sleeping(700), waitMs: 20_000 });
  killer.proxy.onClientBytes((wire, text) => {
    if (!text.includes('killOp')) return;
    wire.toServer.swallow();
    wire.cut('rst');
  });
  // Another process of ours sees no reply of the call: it has only its looks to go by.
  const killed = await killer.engine.kill(started.id);
  expect(killed).toMatchObject({ verdict: 'gone', record: { outcome: 'lost', by: null } });
  expect(killed.record.kill?.sent.every(({ error }) => error !== undefined)).toBe(true);
  expect((await started.answer).record).toMatchObject({ outcome: 'succeeded' });
});

it('a node whose answers are slow delays the proof, and nothing is said before it', async () => {
  const bench = await site.bench();
  const started = await bench.runs(sleeping(30_000));
  for (const wire of bench.controlWires()) wire.toClient.delay(300);
  const early = await bench.engine.kill(started.id, 500);
  expect(['still_running', 'unknown']).toContain(early.verdict);
  expect(await bench.engine.kill(started.id)).toMatchObject({ verdict: 'stopped', record: { outcome: 'killed', by: 'us' } });
});
