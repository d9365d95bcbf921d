/** Named connections over HTTP: those of the configuration serve everybody, and no caller brings a connection string (that would be server-side request forgery). */
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sleeping } from '../support/checked.js';
import { type HttpClient, type HttpTestServer, connectLegacy, connectModern, startHttpServer } from '../support/http-server.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { newOperationId } from '../support/records.js';

let first: TestMongo;
let second: TestMongo;
let http: HttpTestServer;
let anna: HttpClient;
let ben: HttpClient;
let boss: HttpClient;
const secret = 's3cr3t-of-staging';
const where = { database: 'app', collection: 'things' };
const all = { ...where, pipeline: [{ $project: { _id: 0 } }] };

beforeAll(async () => {
  [first, second] = await Promise.all([startMongo(), startMongo({ auth: true })]);
  await first.client.db('app').collection('things').insertOne({ of: 'first' });
  await second.client.db('app').collection('things').insertOne({ of: 'second' });
  await second.client.db('admin').command({ createUser: 'reader', pwd: secret, roles: [{ role: 'read', db: 'app' }] });
  http = await startHttpServer({
    uri: first.uri,
    args: ['--allow-js'],
    env: {
      MONGO_LEASH_CONNECTIONS: JSON.stringify({ staging: second.uriFor('reader', secret), broken: 'mongodb://user:s3cr3t-of-broken@127.0.0.1:1/' }),
      MONGO_LEASH_TOKENS: ['anna leash:kill anna-token-0123456789', 'ben leash:kill ben-token-0123456789', 'boss leash:admin boss-token-0123456789'].join(';'),
    },
  });
  anna = await connectModern(http.url, 'anna-token-0123456789');
  ben = await connectLegacy(http.url, 'ben-token-0123456789');
  boss = await connectModern(http.url, 'boss-token-0123456789');
});
afterAll(async () => {
  await Promise.all([anna.close(), ben.close(), boss.close()]);
  await http.stop();
  await Promise.all([first.stop(), second.stop()]);
});

describe('a connection string of a caller', () => {
  it('is refused before anything is dialled', async () => {
    let dialled = 0;
    const inner = createServer((socket) => { dialled += 1; socket.destroy(); });
    const port = await new Promise<number>((resolve) => { inner.listen(0, '127.0.0.1', () => { resolve((inner.address() as { port: number }).port); }); });
    try {
      for (const client of [anna, ben, boss]) {
        const body = await client.call('connect', { connectionString: `mongodb://x:hidden-secret@127.0.0.1:${port}/`, connectionName: 'mine' });
        expect(body.error).toMatchObject({ code: 'refused_by_policy', path: 'connectionString', databaseState: 'Nothing was sent to the database.' });
        expect(body.next).toContain('preconfigured, staging, broken');
        const asId = await client.call('run', { ...all, connectionId: `mongodb://x:hidden-secret@127.0.0.1:${port}/` });
        expect(asId.error.code).toBe('not_found');
        expect(JSON.stringify([body, asId])).not.toContain('hidden-secret');
        expect((await client.call('list-connections')).connections.map(({ connectionId }: { connectionId: string }) => connectionId)).toEqual(['preconfigured', 'staging', 'broken']);
      }
      expect(dialled).toBe(0);
    } finally {
      await new Promise((resolve) => { inner.close(resolve); });
    }
  });
});

describe('a named connection', () => {
  it('is opened by its name, and used by it', async () => {
    expect(await anna.call('connect', { connectionName: 'staging' })).toMatchObject({ connectionId: 'staging' });
    expect(await anna.call('run', { ...all, connectionId: 'staging' })).toMatchObject({ documents: [{ of: 'second' }], connectionId: 'staging' });
    expect(await ben.call('run', { ...all, connectionId: 'staging' })).toMatchObject({ documents: [{ of: 'second' }] });
    expect(await anna.call('run', { ...all, connectionId: 'preconfigured' })).toMatchObject({ documents: [{ of: 'first' }] });
    const { error, next } = await anna.call('run', all);
    expect(error).toMatchObject({ code: 'bad_argument', message: 'There are several connections: preconfigured, staging, broken.' });
    expect(next).toContain('connectionId');
  });

  it('that cannot be reached says so, without its secret', async () => {
    const body = await anna.call('connect', { connectionName: 'broken' });
    expect(body.error).toMatchObject({ code: 'unreachable' });
    const { connections } = await anna.call('list-connections');
    expect(connections[2]).toMatchObject({ connectionId: 'broken', source: 'named', state: 'errored', lastError: expect.stringContaining('ECONNREFUSED') });
    expect(JSON.stringify([body, connections]) + http.stderr.join('\n')).not.toMatch(/s3cr3t-of/);
  }, 30_000);

  it('shows each principal its own operations, and lets it stop only those', async () => {
    const handle = await anna.call('run', { ...where, connectionId: 'staging', pipeline: sleeping(), waitMs: 0 });
    await eventually('the second database shows it', async () => (await taggedAs(second.client, handle.operationId)).length > 0);
    expect((await ben.call('kill', { id: handle.operationId })).verdict).not.toBe('stopped');
    for (const tool of ['status', 'result']) expect((await ben.call(tool, { id: handle.operationId })).error.code).toMatch(/not_found|unreachable/);
    expect((await ben.call('operations')).running).toEqual([]);
    expect((await anna.call('operations')).running).toMatchObject([{ operationId: handle.operationId, connectionId: 'staging' }]);
    expect(await taggedAs(second.client, handle.operationId)).toHaveLength(1);
    expect(await boss.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped', cause: 'administrator' });
    expect(await taggedAs(second.client, handle.operationId)).toEqual([]);
  }, 30_000);

  it('is not closed for all by one who is no administrator', async () => {
    const handle = await ben.call('run', { ...where, connectionId: 'staging', pipeline: sleeping(), waitMs: 0 });
    await eventually('the second database shows it', async () => (await taggedAs(second.client, handle.operationId)).length > 0);
    for (const connectionId of ['staging', 'preconfigured']) expect((await anna.call('disconnect', { connectionId })).error.code).toBe('refused_by_policy');
    expect(await taggedAs(second.client, handle.operationId)).toHaveLength(1);
    expect(await boss.call('disconnect', { connectionId: 'staging' })).toMatchObject({ outcome: 'disconnected', operations: [{ operationId: handle.operationId, verdict: 'stopped' }] });
    expect(await taggedAs(second.client, handle.operationId)).toEqual([]);
    expect(await anna.call('run', { ...all, connectionId: 'staging' })).toMatchObject({ outcome: 'succeeded' });
  });

  it('counts for its session: the end of the session kills what it started there', async () => {
    const handle = await ben.call('run', { ...where, connectionId: 'staging', pipeline: sleeping(), waitMs: 0 });
    await eventually('the second database shows it', async () => (await taggedAs(second.client, handle.operationId)).length > 0);
    await ben.endSession();
    await eventually('it is gone', async () => (await taggedAs(second.client, handle.operationId)).length === 0, 5_000);
  });

  it('is not needed for the server to be ready', async () => {
    expect((await fetch(http.at('/readyz'))).status).toBe(200);
    await boss.call('disconnect', { connectionId: 'preconfigured' });
    expect((await fetch(http.at('/readyz'))).status).toBe(200);
  });
});

it("another's operation that runs is answered in the words of one that is not there, also where a connection does not answer", async () => {
  const { operationId } = await anna.call('run', { ...where, connectionId: 'preconfigured', pipeline: sleeping(60_000), waitMs: 0 });
  await eventually('it runs', async () => (await taggedAs(first.client, operationId)).length > 0);
  const other = await connectModern(http.url, 'ben-token-0123456789');
  for (const tool of ['status', 'kill', 'result']) {
    const [its, none] = await Promise.all([operationId as string, newOperationId()].map(async (id) => await other.call(tool, { id })));
    expect([its.error.code, its.error.databaseState, its.next], tool).toEqual([none.error.code, none.error.databaseState, none.next]);
    expect(its, tool).not.toHaveProperty('node');
  }
  await other.close();
  expect(await anna.call('kill', { id: operationId })).toMatchObject({ verdict: 'stopped' });
});
