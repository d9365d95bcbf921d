import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openLocalStore } from '../../src/store/local.js';
import { sleeping, startDetached } from '../support/checked.js';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { isAlive, storeProcessOf } from '../support/processes.js';
import { freshFolder } from '../support/records.js';
import { runArguments } from '../support/runaways.js';
import { type TestServer, type TestServerOptions, startServer } from '../support/server.js';

let mongo: TestMongo;
const started: TestServer[] = [];

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('things').insertMany(Array.from({ length: 50 }, (_, i) => ({ i })));
});
afterAll(async () => {
  await Promise.all(started.map((server) => server.close()));
  await mongo.stop();
});

async function serve(stateFolder: string, options: TestServerOptions = {}): Promise<TestServer> {
  const { args = [], ...others } = options;
  const server = await startServer({ uri: mongo.uri, stateFolder, ...others, args: ['--allow-js', ...args] });
  started.push(server);
  return server;
}

async function killHard(server: TestServer): Promise<void> {
  server.process.kill('SIGKILL');
  await server.exited;
}

const onThings = { database: 'app', collection: 'things' };

describe('a server that was started again', () => {
  it('answers how the earlier operations of its principal ended, and what they read', async () => {
    const folder = freshFolder();
    const first = await serve(folder);
    const read = await first.call('run', { ...onThings, pipeline: [{ $sort: { i: 1 } }, { $project: { _id: 0 } }], limit: 10 });
    const failed = await first.call('run', { ...onThings, pipeline: [{ $project: { x: { $divide: [1, 0] } } }] });
    const handle = await startDetached({ server: first, mongo }, { ...onThings, pipeline: sleeping() });
    await first.call('kill', { id: handle.operationId });
    expect((await first.close()).code).toBe(0);

    const second = await serve(folder);
    expect(await second.call('status', { id: read.operationId })).toMatchObject({ outcome: 'succeeded', documents: read.documents, requestId: read.requestId });
    expect(await second.call('result', { id: read.operationId, offset: 8 })).toMatchObject({ outcome: 'succeeded', documents: [{ i: 8 }, { i: 9 }], more: true });
    expect(await second.call('status', { id: failed.operationId })).toMatchObject({ outcome: 'failed', error: { serverCode: failed.error.serverCode } });
    expect(await second.call('status', { id: handle.operationId })).toMatchObject({ outcome: 'killed', verdict: 'stopped', cause: 'kill_tool', by: 'us', kill: { verdict: 'stopped' } });
    const listed = await second.call('operations');
    expect(listed.running).toEqual([]);
    expect(listed.ended.map(({ operationId }: any) => operationId)).toEqual([handle.operationId, failed.operationId, read.operationId]);
  });

  it('has no documents of earlier operations when none are to be kept, and says so', async () => {
    const folder = freshFolder();
    const first = await serve(folder, { args: ['--keep-results', 'false'] });
    const read = await first.call('run', { ...onThings, pipeline: [] });
    expect(await first.call('result', { id: read.operationId })).toMatchObject({ documentsRead: 50 });
    await first.close();
    const second = await serve(folder);
    expect(await second.call('status', { id: read.operationId })).toMatchObject({ outcome: 'succeeded', documents: [], next: expect.stringMatching(/not kept any more/) });
    expect(await second.call('result', { id: read.operationId })).toMatchObject({ error: { code: 'expired' } });
  });

  it('judges the operations of a killed one by the database before it answers', async () => {
    const folder = freshFolder();
    const first = await serve(folder);
    const scan = runawayCase('02');
    await setUpRunaway(mongo.client, 'scanned', scan);
    const handle = await startDetached({ server: first, mongo }, runArguments(scan, 'scanned'));
    await killHard(first);
    await eventually('the server has noticed the closed connection', async () => (await taggedAs(mongo.client, handle.operationId)).length === 0);
    const second = await serve(folder, { args: ['--sweep', 'off'] });
    const answer = await second.call('status', { id: handle.operationId });
    expect(answer).toMatchObject({ outcome: 'lost', server: 'not_seen', wait: 'gone', reason: expect.stringMatching(/is dead, and 5 looks in a row/) });
    expect(answer.evidence.length).toBeGreaterThan(0);
    expect(answer.evidence.every(({ saw, node }: any) => saw === 'nothing' && mongo.hosts.includes(node))).toBe(true);
    expect(await second.call('result', { id: handle.operationId })).toMatchObject({ outcome: 'lost', documents: [] });
  });

  it('says nothing of an operation on another deployment than the one it is connected to', async () => {
    const folder = freshFolder();
    const first = await serve(folder);
    const handle = await startDetached({ server: first, mongo }, { ...onThings, pipeline: sleeping(20_000) });
    await killHard(first);
    const other = await startMongo();
    const second = await serve(folder, { uri: other.uri });
    const answer = await second.call('status', { id: handle.operationId });
    expect(answer).toMatchObject({ outcome: null, server: 'unreachable', reason: expect.stringMatching(/another deployment/), next: expect.stringMatching(/unknown/) });
    expect(await taggedAs(mongo.client, handle.operationId)).toHaveLength(1);
    await second.close();
    await other.stop();
    const third = await serve(folder);
    await eventually('it is swept by a server of its own deployment', async () => (await taggedAs(mongo.client, handle.operationId)).length === 0);
    await eventually('its end is recorded', async () => (await third.call('status', { id: handle.operationId })).outcome === 'killed');
  });
});

describe('another server of the same user that lives', () => {
  it('has its operation reported from looks, and its end when it has recorded it', async () => {
    const folder = freshFolder();
    const [owner, other] = [await serve(folder), await serve(folder)];
    const handle = await startDetached({ server: owner, mongo }, { ...onThings, pipeline: sleeping(1_500), limit: 3 });
    const seen = await other.call('status', { id: handle.operationId });
    expect(seen).toMatchObject({ outcome: null, server: 'running', node: mongo.hosts[0], maxTimeMS: handle.maxTimeMS, createdAt: handle.createdAt });
    expect((await other.call('operations')).running).toMatchObject([{ operationId: handle.operationId }]);
    const killed = owner.call('kill', { id: handle.operationId });
    const told = await other.call('status', { id: handle.operationId, waitMs: 30_000 });
    expect(told).toMatchObject({ outcome: 'killed', verdict: 'stopped', cause: 'kill_tool' });
    expect(await killed).toMatchObject({ verdict: 'stopped' });
    expect((await other.call('operations')).running).toEqual([]);
  });

  it('ends with success that is told as such, not as lost', async () => {
    const folder = freshFolder();
    const [owner, other] = [await serve(folder), await serve(folder)];
    const pipeline = [{ $limit: 1 }, { $match: { $expr: { $function: { body: 'function(){sleep(1000);return true}', args: [], lang: 'js' } } } }];
    const handle = await startDetached({ server: owner, mongo }, { ...onThings, pipeline });
    expect(await other.call('status', { id: handle.operationId, waitMs: 30_000 })).toMatchObject({ outcome: 'succeeded', returned: 1 });
    expect(await owner.call('status', { id: handle.operationId })).toMatchObject({ outcome: 'succeeded', returned: 1 });
  });

  it('whose operation is killed from here keeps both what it knows and what the kill did', async () => {
    const folder = freshFolder();
    const [owner, other] = [await serve(folder), await serve(folder)];
    const handle = await startDetached({ server: owner, mongo }, { ...onThings, pipeline: sleeping() });
    expect(await other.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us' });
    const all = { outcome: 'killed', by: 'us', cause: 'kill_tool', reason: expect.stringMatching(/a kill was sent to it/), kill: { verdict: 'stopped' }, error: { serverCode: 11601 } };
    for (const server of [owner, other]) {
      await eventually('its own process has recorded its reply', async () => (await server.call('status', { id: handle.operationId })).error?.serverCode === 11601);
      expect(await server.call('status', { id: handle.operationId })).toMatchObject(all);
    }
  });
});

describe('a server that is killed', () => {
  it('has the record on its disk before the database has the operation', async () => {
    for (let i = 0; i < 5; i += 1) {
      const folder = freshFolder();
      const server = await serve(folder);
      const own = `before-${i}`;
      server.call('run', { ...onThings, pipeline: sleeping(2_000), comment: own }).catch(() => undefined);
      const ours = { $regex: `^mongo-leash\\.1\\..* ${own}$` };
      const row = await eventually('the database shows it', async () => (await mongo.client.db('admin').aggregate([{ $currentOp: {} }, { $match: { 'command.comment': ours } }]).toArray())[0]);
      await killHard(server);
      const id = String(row['command'].comment).split('.')[3] ?? '';
      const store = openLocalStore({ folder, retentionMs: 60_000, maxResultBytes: 1_000 });
      expect(await store.get(id)).toMatchObject({ operationId: id, outcome: null, whereabouts: { nodes: mongo.hosts }, tag: row['command'].comment });
      expect(await store.instances()).toMatchObject([{ pid: server.process.pid }]);
      await store.close();
    }
  });

  it('takes the process of its store with it', async () => {
    const server = await serve(freshFolder());
    await server.call('run', { ...onThings, pipeline: [] });
    const holder = storeProcessOf(server.process.pid ?? 0) ?? 0;
    expect(isAlive(holder)).toBe(true);
    await killHard(server);
    await eventually('it is gone', () => !isAlive(holder));
  });
});
