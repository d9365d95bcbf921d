import { afterAll, beforeAll, it } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { startProxy } from '../support/tcp-proxy.js';
import { startEngine } from '../support/engine.js';

let mongo: TestMongo;
beforeAll(async () => { mongo = await startMongo({ args: ['--setParameter', 'enableTestCommands=1'] }); });
afterAll(async () => { await mongo.stop(); });
const sleepy = (ms: number) => [{ $match: { $expr: { $function: { body: `function(){sleep(${ms});return true}`, args: [], lang: 'js' } } } }];

it('late success after stopped', async () => {
  await mongo.client.db('app').collection('things').insertMany([{ a: 1 }]);
  const db = mongo.client.db('app');
  const proxy = await startProxy(mongo.hosts[0]!);
  const engine = await startEngine(proxy.uri);
  await engine.deployment.ready();
  const started = engine.run({ pipeline: sleepy(300), waitMs: 20_000 });
  await eventually('seen', async () => (await taggedAs(mongo.client, started.id)).length > 0);
  const wire = proxy.wires().find((w) => w.carried(started.id))!;
  wire.toClient.hold();
  proxy.onClientBytes((w, text) => { if (text.includes('killOp')) w.toServer.hold(); });
  const t0 = performance.now();
  const killing = engine.kill(started.id, 5000);
  await eventually('ended', async () => (await taggedAs(mongo.client, started.id)).length === 0);
  proxy.wires().forEach((w) => { w.toServer.release(); });
  const killed = await killing;
  console.log('kill', performance.now() - t0, killed.verdict, killed.record.reason, JSON.stringify(killed.record.kill, null, 1));
  await delay(100);
  wire.toClient.release();
  await delay(300);
  const st = await engine.status(started.id);
  console.log(st.verdict, st.record.outcome, engine.calls.get(started.id));
  await engine.close();
  const sessions = await mongo.client.db('admin').aggregate([{ $listLocalSessions: { allUsers: true } }]).toArray().catch((e) => e);
  console.log(sessions.length, await mongo.client.db('admin').command({ refreshLogicalSessionCacheNow: 1 }).catch((e) => e.message));
  console.log((await mongo.client.db('admin').aggregate([{ $listLocalSessions: { allUsers: true } }]).toArray().catch((e) => e)).length);
  await proxy.close();
});
