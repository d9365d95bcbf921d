import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type BenchSite, profiled, sleeping, startSite } from '../support/bench.js';
import { eventually, taggedAs } from '../support/mongo.js';

let site: BenchSite;
beforeAll(async () => { site = await startSite(); });
afterEach(() => site.settle());
afterAll(() => site.stop());

describe('when the bytes of a command are held on their way to the server', () => {
  it('a kill meanwhile is unknown however many looks are empty, and the operation is killed as soon as it arrives', async () => {
    const { engine, proxy } = await site.bench();
    await engine.deployment.ready();
    proxy.onClientBytes((wire, text) => { if (wire.kind === 'data' && text.includes(started.id)) wire.toServer.hold(); });
    const started = engine.run(sleeping(30_000));
    await eventually('the driver has sent it', () => engine.calls.get(started.id)?.sentAt);
    const early = await engine.kill(started.id, 400);
    expect(early).toMatchObject({ verdict: 'unknown', record: { server: 'not_seen', outcome: null } });
    expect(early.record.kill?.after.every(({ saw }) => saw === 'nothing')).toBe(true);
    expect(await profiled(site.witness, started.id)).toEqual([]);

    for (const wire of proxy.wires()) wire.toServer.release();
    await eventually('the server has ended it', async () => (await profiled(site.witness, started.id)).length > 0);
    expect(await profiled(site.witness, started.id)).toEqual([{ op: 'command', errCode: 11601 }]);
    const late = await engine.status(started.id, 5_000);
    expect(late).toMatchObject({ verdict: 'stopped', record: { outcome: 'killed', by: 'us', cause: 'kill_tool', kill: { sent: [{ method: 'killOp' }] } } });
  });

  it('a quick one that succeeds after its release is reported as what the reply says', async () => {
    const { engine, proxy } = await site.bench();
    await engine.deployment.ready();
    proxy.onClientBytes((wire, text) => { if (wire.kind === 'data' && text.includes(started.id)) wire.toServer.hold(); });
    const started = engine.run({ pipeline: [{ $match: {} }] });
    await eventually('the driver has sent it', () => engine.calls.get(started.id)?.sentAt);
    expect((await engine.kill(started.id, 400)).verdict).toBe('unknown');

    for (const wire of proxy.wires()) wire.toServer.release();
    const { record, verdict } = await engine.status(started.id, 5_000);
    const [entry] = await profiled(site.witness, started.id);
    expect(entry).toBeDefined();
    expect({ verdict, outcome: record.outcome }).toEqual(entry?.errCode === null ? { verdict: 'ended_first', outcome: 'succeeded' } : { verdict: 'stopped', outcome: 'killed' });
  });

  it('a cursor whose next getMore is held is closed, and what arrives later finds nothing to run on', async () => {
    const { engine, proxy } = await site.bench();
    await engine.deployment.ready();
    proxy.onClientBytes((wire, text) => { if (text.includes('getMore') && text.includes(started.id)) wire.toServer.hold(); });
    const started = engine.run({ pipeline: [{ $set: { n: { $range: [0, 500] } } }, { $unwind: '$n' }], limit: 10_000 });
    await eventually('the getMore is held', () => proxy.wires().some((wire) => wire.toServer.waitingBytes > 0));
    const kill = engine.kill(started.id);
    await eventually('its cursor is closed', async () => (await taggedAs(site.witness, started.id)).length === 0);
    for (const wire of proxy.wires()) wire.toServer.release();
    expect(await kill).toMatchObject({ verdict: 'stopped', record: { outcome: 'killed', by: 'us', kill: { sent: [{ method: 'killCursors' }] } } });
    expect(await profiled(site.witness, started.id)).toEqual([{ op: 'command', errCode: null }]);
  });
});

describe('when the reply is held on its way back', () => {
  /** Ends by itself between the look that sees it and the kill, as the kill is held; its reply is held, too. */
  async function endsBeforeItsKill() {
    const bench = await site.bench();
    const started = await bench.runs(sleeping(300));
    bench.dataWire(started.id).toClient.hold();
    bench.proxy.onClientBytes((wire, text) => { if (text.includes('killOp')) wire.toServer.hold(); });
    const kill = bench.engine.kill(started.id);
    await eventually('the kill is on its way', () => bench.controlWires().some((wire) => wire.toServer.waitingBytes > 0));
    await eventually('it has ended by itself', async () => (await profiled(site.witness, started.id)).length > 0);
    for (const wire of bench.controlWires()) wire.toServer.release();
    return { ...bench, started, kill };
  }

  it('its absence is no proof of a kill: the reply is waited for, and says that it ended first', async () => {
    const { engine, started, kill, dataWire } = await endsBeforeItsKill();
    const seenGone = await eventually('looks miss it', async () => {
      const { record } = await engine.status(started.id);
      return record.server === 'not_seen' && record;
    });
    expect(seenGone).toMatchObject({ outcome: null });
    dataWire(started.id).toClient.release();
    expect(await kill).toMatchObject({ verdict: 'ended_first', record: { outcome: 'succeeded', documentsRead: 1 } });
    expect(await profiled(site.witness, started.id)).toEqual([{ op: 'command', errCode: null }]);
  });

  it('a reply that does not come is given up, and one that comes after that changes nothing any more', async () => {
    const { engine, started, kill, dataWire } = await endsBeforeItsKill();
    const wire = dataWire(started.id);
    expect(await kill).toMatchObject({ verdict: 'stopped', record: { server: 'not_seen', outcome: 'killed' } });
    wire.toClient.release();
    await eventually('the connection of the call is closed', () => !wire.open);
    expect(await engine.status(started.id)).toMatchObject({ verdict: 'stopped', record: { outcome: 'killed', error: null } });
  });

  it('a write whose reply does not come is gone, never stopped', async () => {
    const bench = await site.bench();
    const pipeline = [...sleeping(30_000).pipeline, { $merge: { into: 'merged' } }];
    const started = await bench.runs({ collection: 'one', pipeline, writesTo: 'app.merged' });
    bench.dataWire(started.id).toClient.hold();
    const killed = await bench.engine.kill(started.id);
    expect(killed).toMatchObject({ verdict: 'gone', record: { server: 'not_seen', outcome: 'lost' } });
    expect(killed.record.writes?.effects).toMatch(/partial or full effects on app\.merged are possible/);
    expect(await taggedAs(site.witness, started.id)).toEqual([]);
  });

  it('the reply of a write that comes in time says how it ended', async () => {
    const bench = await site.bench();
    const pipeline = [...sleeping(30_000).pipeline, { $merge: { into: 'merged' } }];
    const started = await bench.runs({ collection: 'one', pipeline, writesTo: 'app.merged' });
    const wire = bench.dataWire(started.id);
    wire.toClient.hold();
    const kill = bench.engine.kill(started.id);
    await eventually('it is gone', async () => (await profiled(site.witness, started.id)).length > 0);
    wire.toClient.release();
    expect(await kill).toMatchObject({ verdict: 'stopped', record: { outcome: 'killed', by: 'us' } });
  });
});
