import type { Document, MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { counting } from '../support/bench.js';
import { type Engine, type Started, startEngine } from '../support/engine.js';
import { type TestMongo, eventually, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { untilGone } from '../support/runaways.js';

let mongo: TestMongo;
let engine: Engine;
const witnesses = new Map<string, MongoClient>();
const on = (host: string): MongoClient => {
  const witness = witnesses.get(host);
  if (witness === undefined) throw new Error(`no witness on ${host}`);
  return witness;
};

beforeAll(async () => {
  mongo = await startMongo({ members: 3 });
  for (const host of mongo.hosts) witnesses.set(host, await mongo.direct(host));
  await mongo.client.db('app').collection('things').insertMany(Array.from({ length: 20 }, (_, i) => ({ _id: i as never })), { writeConcern: { w: 3 } });
  engine = await startEngine(mongo.uri);
  await engine.deployment.ready();
});
afterEach(async () => {
  for (const { operationId } of (await engine.operations()).running) await engine.kill(operationId);
});
afterAll(async () => {
  await engine.close();
  await mongo.stop();
});

async function primary(): Promise<string> {
  return await eventually('a member is primary', async () => {
    for (const host of mongo.hosts) {
      const hello: Document | null = await on(host).db('admin').command({ hello: 1 }).catch(() => null);
      if (hello?.['isWritablePrimary'] === true) return host;
    }
    return null;
  }, 30_000);
}

/** The one member that runs it, as the witnesses of all of them say. */
async function memberOf({ id }: Started): Promise<string> {
  const found = await eventually('a member shows it', async () => {
    const hosts = [];
    for (const host of mongo.hosts) if ((await taggedAs(on(host), id)).length > 0) hosts.push(host);
    return hosts.length > 0 && hosts;
  });
  expect(found).toHaveLength(1);
  return found[0] ?? '';
}

it('a read on a secondary is found there and killed there, and what runs on the other members is not touched', async () => {
  const away = engine.run({ ...counting, readPreference: 'secondary' });
  const host = await memberOf(away);
  expect(host).not.toBe(await primary());
  const home = engine.run({ ...counting, readPreference: 'primary' });
  expect(await memberOf(home)).toBe(await primary());
  const homeOpid = (await taggedAs(on(await primary()), home.id))[0]?.['opid'] as unknown;

  const { record } = await engine.status(away.id);
  expect(record).toMatchObject({ node: host, server: 'running' });
  expect(record.evidence.filter(({ saw }) => saw === 'operation').map(({ node }) => node)).toEqual([host]);
  const kill = engine.kill(away.id);
  await untilGone(on(host), away.id, 2_000);
  const killed = await kill;
  expect(killed).toMatchObject({ verdict: 'stopped', record: { outcome: 'killed', by: 'us' } });
  expect(killed.record.kill?.sent.map(({ node }) => node)).toEqual([host]);
  expect((await taggedAs(on(await primary()), home.id))[0]?.['opid']).toEqual(homeOpid);
});

it('operations of all members are listed, each with its node', async () => {
  const started = [engine.run({ ...counting, readPreference: 'secondary' }), engine.run({ ...counting, readPreference: 'primary' })];
  const nodes = new Set(await Promise.all(started.map(memberOf)));
  expect(nodes.size).toBe(2);
  const { running, looked, silent } = await engine.operations();
  expect(new Set(running.map(({ node }) => node))).toEqual(nodes);
  expect([...looked].sort()).toEqual([...mongo.hosts].sort());
  expect(silent).toEqual([]);
});

it('a read that a stepdown leaves on the old primary is found there and killed there', async () => {
  const started = engine.run({ ...counting, readPreference: 'primary' });
  const old = await memberOf(started);
  await on(old).db('admin').command({ replSetStepDown: 20, force: true });
  const next = await eventually('another member is primary', async () => {
    const host = await primary();
    return host !== old && host;
  }, 30_000);
  expect(await memberOf(started)).toBe(old);
  expect(await engine.status(started.id)).toMatchObject({ record: { node: old, server: 'running', outcome: null } });

  const kill = engine.kill(started.id);
  await untilGone(on(old), started.id, 2_000);
  const killed = await kill;
  expect(killed).toMatchObject({ verdict: 'stopped', record: { outcome: 'killed', by: 'us' } });
  expect(killed.record.kill?.sent.map(({ node }) => node)).toEqual([old]);

  // New work goes to the new primary.
  const after = engine.run({ ...counting, readPreference: 'primary' });
  expect(await memberOf(after)).toBe(next);
});

it('with a member down, operations says who did not answer, and a kill on another member is still proven', async () => {
  const home = await primary();
  const down = mongo.hosts.find((host) => host !== home) ?? '';
  const started = engine.run({ ...counting, readPreference: 'primary' });
  expect(await memberOf(started)).toBe(home);
  process.kill(mongo.pid(down), 'SIGKILL');
  const { silent, looked, running } = await eventually('the member is missed', async () => {
    const listed = await engine.operations();
    return listed.silent.length > 0 && listed;
  }, 30_000);
  expect(silent.map(({ node }) => node)).toEqual([down]);
  expect([...looked].sort()).toEqual(mongo.hosts.filter((host) => host !== down).sort());
  expect(running.map(({ operationId }) => operationId)).toEqual([started.id]);

  expect((await engine.kill(started.id)).verdict).toBe('stopped');
  expect(await tagged(on(home))).toEqual([]);
  // With a member silent, an id of which nothing is known may be there: that is not "not found".
  await expect(engine.kill('0'.repeat(26))).rejects.toMatchObject({ code: 'unreachable', message: expect.stringContaining(down) as string });
});
