import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import type { Inspection } from '../../src/core/leash.js';
import { type BenchSite, profiled, sleeping, startSite } from '../support/bench.js';
import type { Engine } from '../support/engine.js';
import { eventually, tagged, taggedAs } from '../support/mongo.js';

let site: BenchSite;
beforeAll(async () => { site = await startSite(); });
afterEach(() => site.settle());
afterAll(() => site.stop());

/** What the reply that crossed the wire, and the server's own notes, allow to be said. */
async function expectTruth(engine: Engine, id: string, { verdict, record }: Inspection): Promise<'stopped' | 'ended_first'> {
  const end = engine.calls.get(id)?.end;
  const notes = await profiled(site.witness, id);
  const told = { verdict, outcome: record.outcome, by: record.by, documentsRead: record.documentsRead };
  if (end?.kind === 'complete') {
    expect(told).toEqual({ verdict: 'ended_first', outcome: 'succeeded', by: null, documentsRead: 1 });
    expect(notes).toEqual([{ op: 'command', errCode: null }]);
    return 'ended_first';
  }
  expect(end).toMatchObject({ kind: 'server_error', code: 11601 });
  expect(told).toEqual({ verdict: 'stopped', outcome: 'killed', by: 'us', documentsRead: 0 });
  expect(notes).toEqual([{ op: 'command', errCode: 11601 }]);
  return 'stopped';
}

it.each([
  { on: 'a quick wire', replyDelayMs: 0, killsAtMs: [0, 100] },
  { on: 'a wire whose replies are slow', replyDelayMs: 60, killsAtMs: [0, 160] },
])('a kill that races the end on $on says ended_first for what has succeeded, and stopped for what was interrupted', async ({ replyDelayMs, killsAtMs: [from = 0, to = 0] }) => {
  const { engine, runs, dataWire } = await site.bench();
  const counts = { stopped: 0, ended_first: 0 };
  const rounds = 40;
  for (let round = 0; round < rounds; round += 1) {
    const started = await runs({ ...sleeping(50), waitMs: 10_000 });
    dataWire(started.id).toClient.delay(replyDelayMs);
    await delay(from + ((to - from) * round) / rounds);
    const killed = await engine.kill(started.id);
    expect(await taggedAs(site.witness, started.id)).toEqual([]);
    counts[await expectTruth(engine, started.id, killed)] += 1;
    // The caller of run is told the same as the caller of kill.
    expect((await started.answer).record.outcome).toBe(killed.record.outcome);
  }
  expect(counts.stopped).toBeGreaterThan(0);
  expect(counts.ended_first).toBeGreaterThan(0);
});

it('a kill of what has ended already says what became of it, and sends nothing', async () => {
  const { engine, proxy } = await site.bench();
  const { record } = await engine.run({ pipeline: [{ $match: {} }], waitMs: 10_000 }).answer;
  const sent: string[] = [];
  proxy.onClientBytes((_wire, text) => { if (/killOp|killCursors|killSessions/.test(text)) sent.push(text); });
  expect(await engine.kill(record.operationId)).toMatchObject({ verdict: 'ended_first', record: { outcome: 'succeeded', kill: null } });
  expect(sent).toEqual([]);
});

it('kills that are asked for at once are one kill with one report, and the first cause is kept', async () => {
  const { engine, proxy, runs } = await site.bench();
  let killOps = 0;
  proxy.onClientBytes((_wire, text) => { if (text.includes('killOp')) killOps += 1; });
  const started = await runs({ ...sleeping(30_000), waitMs: 20_000 });
  started.cancel();
  const [one, other] = await Promise.all([engine.kill(started.id), engine.kill(started.id)]);
  expect(one).toMatchObject({ verdict: 'stopped', record: { cause: 'client_cancelled', wait: 'cancelled', kill: { cause: 'client_cancelled' } } });
  expect(other.record).toEqual(one.record);
  expect(killOps).toBe(1);
  expect(await engine.kill(started.id)).toMatchObject({ verdict: 'stopped', record: { cause: 'client_cancelled' } });
  expect(killOps).toBe(1);
});

it('after an unknown verdict another kill may be asked for at once, and proves it', async () => {
  const { engine, runs, controlWires } = await site.bench();
  const started = await runs(sleeping(30_000));
  for (const wire of controlWires()) wire.toServer.hold();
  const first = await engine.kill(started.id, 300);
  expect(first).toMatchObject({ verdict: 'unknown', record: { outcome: null } });
  expect(await taggedAs(site.witness, started.id)).toHaveLength(1);
  for (const wire of controlWires()) wire.toServer.release();
  expect(await engine.kill(started.id)).toMatchObject({ verdict: 'stopped', record: { outcome: 'killed', by: 'us' } });
  expect(await tagged(site.witness)).toEqual([]);
});

it("a stranger's killOp is reported as killed by others, and no kill of ours is sent", async () => {
  const { engine, runs } = await site.bench();
  const started = await runs({ ...sleeping(30_000), waitMs: 20_000 });
  const [row] = await taggedAs(site.witness, started.id);
  await site.witness.db('admin').command({ killOp: 1, op: row?.['opid'] });
  const { record } = await started.answer;
  expect(record).toMatchObject({ outcome: 'killed', by: 'others', cause: null, kill: null });
  expect(engine.firstKillAt.has(started.id)).toBe(false);
  expect(await engine.kill(started.id)).toMatchObject({ verdict: 'stopped', record: { by: 'others' } });
});

it('a cursor that is between two batches is killed as surely as one that runs', async () => {
  const { engine, proxy } = await site.bench();
  await engine.deployment.ready();
  const batches = { pipeline: [{ $set: { n: { $range: [0, 500] } } }, { $unwind: '$n' }], limit: 10_000, waitMs: 20_000 };
  const methods = new Set<string>();
  for (let round = 0; round < 12; round += 1) {
    // Slow replies: the cursor idles on the server for most of the time.
    proxy.onClientBytes((wire, text) => { if (wire.kind === 'data' && text.includes(started.id)) wire.toClient.delay(30); });
    const started = engine.run(batches);
    await eventually('its first batch has come', async () => (await profiled(site.witness, started.id)).length > 0);
    await delay(round * 9);
    const killed = await engine.kill(started.id);
    expect(await taggedAs(site.witness, started.id)).toEqual([]);
    expect(killed).toMatchObject({ verdict: 'stopped', record: { outcome: 'killed', by: 'us' } });
    for (const { method } of killed.record.kill?.sent ?? []) methods.add(method);
    expect((await started.answer).record.outcome).toBe('killed');
  }
  expect(methods).toContain('killCursors');
});
