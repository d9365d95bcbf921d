import { afterAll, beforeAll, it } from 'vitest';
import { setTimeout as delay } from 'node:timers/promises';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { startProxy } from '../support/tcp-proxy.js';
import { startEngine } from '../support/engine.js';

let mongo: TestMongo;
beforeAll(async () => { mongo = await startMongo(); });
afterAll(async () => { await mongo.stop(); });
const sleepy = (ms: number) => [{ $match: { $expr: { $function: { body: `function(){sleep(${ms});return true}`, args: [], lang: 'js' } } } }];

it('late success after stopped', async () => {
  process.on('unhandledRejection', (e) => { console.log('UNHANDLED', e); });
  await mongo.client.db('app').collection('things').insertMany([{ a: 1 }]);
  const db = mongo.client.db('app');
  await db.command({ profile: 2, filter: { $or: [{ 'command.comment': { $regex: '^mongo-leash\\.1' } }, { 'originatingCommand.comment': { $regex: '^mongo-leash\\.1' } }] } });
  const proxy = await startProxy(mongo.hosts[0]!);
  const engine = await startEngine(proxy.uri);
  await engine.deployment.ready();
  console.log(proxy.wires().map((w) => w.kind));
  const started = engine.run({ pipeline: sleepy(300), waitMs: 20_000 });
  await eventually('seen', async () => (await taggedAs(mongo.client, started.id)).length > 0);
  const wire = proxy.wires().find((w) => w.carried(started.id))!;
  wire.toClient.hold();
  // see it, freeze control? let it end itself
  await delay(250);
  const t0 = performance.now();
  const killed = await engine.kill(started.id, 5000);
  console.log('kill', performance.now() - t0, killed.verdict, killed.record.reason, JSON.stringify(killed.record.kill, null, 1));
  await delay(100);
  wire.toClient.release();
  await delay(300);
  const st = await engine.status(started.id);
  console.log(st.verdict, st.record.outcome, engine.calls.get(started.id));
  console.log(JSON.stringify(await db.collection('system.profile').find({}).toArray(), null, 1));
  const sessions = await mongo.client.db('admin').aggregate([{ $listLocalSessions: { allUsers: true } }]).toArray().catch((e) => e);
  const local = await mongo.client.db('config').collection('x').aggregate([{ $documents: [] }]).toArray().catch((e: Error) => e.message);
  console.log(sessions, local);
  await engine.close();
  console.log(await mongo.client.db('admin').command({ refreshLogicalSessionCacheNow: 1 }).catch((e) => e.message));
  console.log((await mongo.client.db('admin').aggregate([{ $listLocalSessions: { allUsers: true } }]).toArray().catch((e) => e)));
  console.log((await mongo.client.db('admin').command({ serverStatus: 1 })).connections);
  await proxy.close();
});
