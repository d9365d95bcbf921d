import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type BenchSite, connections, sleeping, startSite } from '../support/bench.js';
import { type TestMongo, eventually, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { untilGone } from '../support/runaways.js';

let site: BenchSite;
let other: TestMongo;
beforeAll(async () => {
  site = await startSite();
  other = await startMongo();
});
afterEach(() => site.settle());
afterAll(async () => {
  await site.stop();
  await other.stop();
});

it('an operation on a frozen server is unknown and the server unreachable; thawed, it is killed and proven', async () => {
  const { engine, runs } = await site.bench();
  const started = await runs(sleeping(60_000));
  site.mongo.freeze(site.host);
  try {
    const killed = await engine.kill(started.id, 6_000);
    expect(killed).toMatchObject({ verdict: 'unknown', record: { server: 'unreachable', outcome: null } });
    expect(killed.record.evidence.at(-1)).toMatchObject({ saw: 'no_answer' });
    const listed = await engine.operations();
    expect(listed.silent).toHaveLength(1);
    expect(listed.running).toMatchObject([{ operationId: started.id, server: 'unreachable' }]);
  } finally {
    site.mongo.thaw(site.host);
  }
  const again = await engine.kill(started.id, 30_000);
  // Its connection may have been given up by the driver while the server was frozen: then the server may end it itself.
  expect(['stopped', 'gone']).toContain(again.verdict);
  expect(await taggedAs(site.witness, started.id)).toEqual([]);
  expect((await engine.status(started.id)).record.outcome).not.toBeNull();
});

it('another server process at the same address proves nothing by not showing the operation', async () => {
  const { engine, runs, proxy, controlWires } = await site.bench();
  const started = await runs(sleeping(60_000));
  const running = await engine.status(started.id);
  expect(running.record.server).toBe('running');
  const reconnectTo = (host: string) => {
    proxy.setUpstream(host);
    for (const wire of controlWires()) wire.cut('rst');
  };
  reconnectTo(other.hosts[0] ?? '');
  const elsewhere = await engine.kill(started.id, 2_000);
  expect(elsewhere).toMatchObject({ verdict: 'unknown', record: { server: 'not_seen', outcome: null } });
  expect(elsewhere.record.reason).toMatch(/another server process/);
  expect(elsewhere.record.kill?.after.filter(({ saw }) => saw === 'nothing').length).toBeGreaterThanOrEqual(3);
  expect(await taggedAs(site.witness, started.id), 'it runs on').toHaveLength(1);

  reconnectTo(site.host);
  expect(await engine.kill(started.id, 30_000)).toMatchObject({ verdict: 'stopped', record: { outcome: 'killed', by: 'us' } });
  expect(await taggedAs(site.witness, started.id)).toEqual([]);
  expect(await connections(other.client)).toEqual([]);
});

it.each(['SIGTERM', 'SIGKILL'] as const)('a server that is ended by %s in the middle and started again takes the operation along, and no answer calls that a kill of ours', async (signal) => {
  const { engine, runs } = await site.bench();
  const started = await runs({ ...sleeping(60_000), waitMs: 0 });
  await engine.status(started.id);
  if (signal === 'SIGKILL') process.kill(site.mongo.pid(site.host), 'SIGKILL');
  await site.mongo.restart(site.host);
  await eventually('the server is back', async () => (await tagged(site.witness).catch(() => null)) !== null, 30_000);

  const { record } = await eventually('what became of it is known', async () => {
    const seen = await engine.status(started.id, 1_000);
    return seen.record.outcome !== null && seen;
  }, 30_000);
  // A server that shuts down interrupts what runs, as a killOp does: not by us, and a reply that says so is not always sent.
  expect(['lost', 'failed', 'killed']).toContain(record.outcome);
  expect(record.by).not.toBe('us');
  expect(await taggedAs(site.witness, started.id)).toEqual([]);

  const next = await runs(sleeping(60_000));
  expect((await engine.kill(next.id)).verdict).toBe('stopped');
  await untilGone(site.witness, next.id, 2_000);
});
