import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { type Bench, type BenchSite, profiled, sleeping, startSite } from '../support/bench.js';
import { eventually, taggedAs } from '../support/mongo.js';

let site: BenchSite;
beforeAll(async () => { site = await startSite(); });
afterEach(() => site.settle());
afterAll(() => site.stop());

const quick = { pipeline: [{ $match: {} }] };
const neverSent = { verdict: 'never_sent', record: { server: 'not_sent', outcome: 'never_sent', sentAt: null, node: null, kill: { sent: [] } } };

/** Everything that still can be sent has been by the time a later operation has run. */
async function expectNothingSent({ engine, proxy }: Bench, id: string): Promise<void> {
  const later = await engine.run({ ...quick, waitMs: 10_000 }).answer;
  expect(later.record.outcome).toBe('succeeded');
  expect(await profiled(site.witness, later.record.operationId)).toHaveLength(1);
  expect(await profiled(site.witness, id)).toEqual([]);
  expect(await taggedAs(site.witness, id)).toEqual([]);
  expect(engine.calls.get(id)?.sentAt ?? null).toBeNull();
  expect(proxy.wires().some((wire) => wire.carried(id))).toBe(false);
}

it('an operation that is killed while it queues for a place is never sent', async () => {
  const bench = await site.bench({ maxOperations: 1 });
  const first = await bench.runs(sleeping(30_000));
  const queued = bench.engine.run({ ...quick, waitMs: 10_000 });
  await eventually('it queues', () => bench.engine.leash.load().queued === 1);
  expect(await bench.engine.kill(queued.id)).toMatchObject(neverSent);
  expect((await queued.answer).record.outcome).toBe('never_sent');
  expect((await bench.engine.kill(first.id)).verdict).toBe('stopped');
  await expectNothingSent(bench, queued.id);
});

it('an operation that is cancelled while it waits for a connection of the pool is never sent', async () => {
  const bench = await site.bench({ maxOperations: 5, connections: 0 });
  const first = await bench.runs(sleeping(30_000));
  const waiting = bench.engine.run({ ...quick, waitMs: 10_000 });
  await eventually('it has got as far as the driver', () => bench.engine.calls.has(waiting.id));
  waiting.cancel();
  expect((await waiting.answer).record).toMatchObject({ outcome: 'never_sent', cause: 'client_cancelled', wait: 'cancelled' });
  expect(await bench.engine.kill(waiting.id)).toMatchObject(neverSent);
  expect((await bench.engine.kill(first.id)).verdict).toBe('stopped');
  await expectNothingSent(bench, waiting.id);
});

it('an operation that is killed while its connection is still being opened is never sent', async () => {
  const bench = await site.bench();
  const first = await bench.runs(sleeping(30_000));
  // A new connection's first words are held; the connections that exist are not.
  const known = new Set(bench.proxy.wires());
  bench.proxy.onClientBytes((wire) => { if (!known.has(wire)) wire.toServer.hold(); });
  const opening = bench.engine.run({ ...quick, waitMs: 10_000 });
  const blocked = [opening];
  // The pool may have had an idle connection: then the next one has to open its own.
  await eventually('one waits for its connection', () => {
    if (bench.proxy.wires().some((wire) => !known.has(wire) && wire.toServer.waitingBytes > 0)) return true;
    if (bench.engine.calls.get(blocked.at(-1)?.id ?? '')?.sentAt) blocked.push(bench.engine.run(sleeping(30_000)));
    return false;
  });
  const last = blocked.at(-1)?.id ?? '';
  expect(await bench.engine.kill(last)).toMatchObject(neverSent);
  known.clear();
  for (const wire of bench.proxy.wires()) {
    known.add(wire);
    wire.toServer.release();
  }
  for (const { id } of [first, ...blocked]) await bench.engine.kill(id);
  await expectNothingSent(bench, last);
});

it('an operation on a database that is down is never sent, and the next one runs when the database is back', async () => {
  const bench = await site.bench();
  bench.proxy.goDown();
  const waiting = bench.engine.run({ ...quick, waitMs: 10_000 });
  expect(await bench.engine.kill(waiting.id)).toMatchObject(neverSent);
  bench.proxy.comeUp();
  await expectNothingSent(bench, waiting.id);
});

it('the same holds for a database that goes down after it was connected', async () => {
  const bench = await site.bench();
  await bench.engine.deployment.ready();
  bench.proxy.goDown();
  // An idle connection learns late that it is cut, and opening one may fail at once: neither waits for anything.
  const waiting = await eventually('one waits for a server', async () => {
    const started = bench.engine.run({ ...quick, maxTimeMS: 1_000, waitMs: 10_000 });
    const call = await eventually('it has got as far as the driver', () => bench.engine.calls.get(started.id));
    await Promise.race([started.answer.catch(() => undefined), delay(200)]);
    return call.sentAt === null && call.end === null && started;
  });
  expect(await bench.engine.kill(waiting.id)).toMatchObject(neverSent);
  bench.proxy.comeUp();
  await expectNothingSent(bench, waiting.id);
});
