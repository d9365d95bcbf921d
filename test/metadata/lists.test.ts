/** The tools that list and measure: exact names, types without noise, and narrow rights that are enough for what they allow (cases D22, D23). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pipelineCases } from '../support/cases.js';
import { type Checked, startChecked } from '../support/checked.js';
import { tagged } from '../support/mongo.js';
import { connectModern, startHttpServer } from '../support/http-server.js';
import type { TestServer } from '../support/server.js';

let rig: Checked;
let narrow: TestServer;
const secret = 's3cr3t-Passw0rd';
const odd = pipelineCases().find(({ name }) => name.startsWith('17-'));

beforeAll(async () => {
  rig = await startChecked({}, { auth: true });
  const { client } = rig.mongo;
  for (const { collection, docs } of odd?.setup ?? []) await client.db('odd').collection(collection).insertMany(docs);
  const app = client.db('app');
  for (const collection of ['a', 'b']) await app.collection<{ _id: number; at?: Date; n: number }>(collection).insertOne({ _id: 1, n: 1 });
  await app.createCollection('view', { viewOn: 'a', pipeline: [] });
  await app.createCollection('series', { timeseries: { timeField: 't' } });
  await app.collection('a').createIndexes([
    { key: { n: 1, m: -1 }, unique: true, name: 'n and m' },
    { key: { at: 1 }, expireAfterSeconds: 60, sparse: true },
    { key: { n: 1 }, partialFilterExpression: { n: { $gt: 5 } }, collation: { locale: 'de' }, name: 'partial' },
    { key: { text: 'text' } },
  ]);
  const admin = client.db('admin');
  await admin.command({ createRole: 'onlyA', roles: [], privileges: [{ resource: { db: 'app', collection: 'a' }, actions: ['find'] }] });
  await admin.command({ createUser: 'narrow', pwd: secret, roles: ['onlyA'] });
  narrow = await rig.another({ uri: rig.mongo.uriFor('narrow', secret) });
});
afterAll(async () => {
  await rig.stop();
});

describe('odd names (D22)', () => {
  it('are all listed once and exactly, described, and counted', async () => {
    const names = (odd?.setup ?? []).map(({ collection }) => collection);
    const { collections, totalCount, operationId } = await rig.server.call('list-collections', { database: 'odd' });
    expect(operationId).toMatch(/^\w{26}$/);
    expect(totalCount).toBe(13);
    expect(collections.map(({ name }: { name: string }) => name).sort()).toEqual([...names].sort());
    for (const collection of names) {
      const { schema, sample } = await rig.server.call('collection-schema', { database: 'odd', collection });
      expect(sample).toEqual({ documents: 1, of: 1, method: 'all' });
      expect(schema.n.types).toEqual([{ bsonType: 'Int32', share: 1 }]);
      expect((await rig.server.call('collection-indexes', { database: 'odd', collection })).classicIndexes).toEqual([{ key: { _id: 1 }, name: '_id_' }]);
      expect((await rig.server.call('collection-storage-size', { database: 'odd', collection })).bytes).toBeGreaterThan(0);
    }
    const rows = await rig.server.call('run', { database: 'odd', collection: odd?.collection, pipeline: JSON.parse(JSON.stringify(odd?.pipeline)) });
    expect(rows.documents[0].rows).toBe(13);
  });
});

describe('a user who may find in one collection only (D23)', () => {
  it('is shown what it may see: its database, its collection, its schema', async () => {
    expect((await narrow.call('list-databases')).databases.map(({ name }: { name: string }) => name)).toEqual(['app']);
    expect(await narrow.call('list-collections', { database: 'app' })).toMatchObject({ collections: [{ name: 'a', type: 'collection' }], totalCount: 1 });
    expect((await narrow.call('collection-schema', { database: 'app', collection: 'a' })).schema).toMatchObject({ n: { share: 1 } });
  });

  it.each([
    ['collection-schema', { database: 'app', collection: 'b' }],
    ['list-collections', { database: 'elsewhere' }],
    ['collection-indexes', { database: 'app', collection: 'b' }],
    ['collection-storage-size', { database: 'app', collection: 'a' }],
    ['db-stats', { database: 'app' }],
    ['mongodb-logs', {}],
  ])('is told the reason of the server where %s needs more', async (tool, args) => {
    const { isError, structuredContent: body } = await narrow.callRaw(tool, args);
    expect(isError).toBe(true);
    expect(body).toMatchObject({ outcome: 'failed', error: { code: 'operation_failed', serverCode: 13, message: expect.stringMatching(/^not authorized on \w+ to execute command \w+$/) } });
  });
});

describe('what is listed and measured', () => {
  it('shows collections, views and time series as what they are, without the server\'s own', async () => {
    const { collections } = await rig.server.call('list-collections', { database: 'app' });
    expect([...collections].sort((a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1))).toEqual([{ name: 'a', type: 'collection' }, { name: 'b', type: 'collection' }, { name: 'series', type: 'timeseries' }, { name: 'view', type: 'view' }]);
    const all = await rig.another({ args: ['--allow-internal'] });
    const names = (await all.call('list-collections', { database: 'app' })).collections.map(({ name }: { name: string }) => name);
    expect(names).toEqual(expect.arrayContaining(['a', 'system.views', 'system.buckets.series']));
  });

  it('pages what did not fit by result', async () => {
    const db = rig.mongo.client.db('many');
    for (let i = 0; i < 60; i += 1) await db.createCollection(`collection number ${i}`);
    const small = await rig.another({ args: ['--response-bytes', '2000'] });
    const { collections, totalCount, next, operationId } = await small.call('list-collections', { database: 'many' });
    expect(totalCount).toBe(60);
    expect(collections.length).toBeLessThan(60);
    expect(next).toBe(`${60 - collections.length} more were read and did not fit: call result with id "${operationId}" and offset ${collections.length}.`);
    const rest = await small.call('result', { id: operationId, offset: collections.length, responseBytesLimit: 100_000 });
    const names = [...collections, ...rest.documents].map(({ name }: { name: string }) => name);
    expect(new Set(names).size).toBe(60);
    await db.dropDatabase();
  });

  it('lists the databases with their sizes', async () => {
    const { databases, totalCount } = await rig.server.call('list-databases');
    expect(totalCount).toBe(databases.length);
    const actual = await rig.mongo.client.db('admin').admin().listDatabases();
    expect(databases).toEqual(actual.databases.map(({ name }) => ({ name, size: expect.any(Number) })));
  });

  it('gives the options of each index', async () => {
    const answer = await rig.server.call('collection-indexes', { database: 'app', collection: 'a' });
    expect(answer).toMatchObject({ classicIndexesCount: 5, searchIndexes: [], searchIndexesCount: 0 });
    const byName = Object.fromEntries(answer.classicIndexes.map((index: { name: string }) => [index.name, index]));
    expect(byName['n and m']).toEqual({ key: { n: 1, m: -1 }, name: 'n and m', unique: true });
    expect(byName['at_1']).toEqual({ key: { at: 1 }, name: 'at_1', expireAfterSeconds: 60, sparse: true });
    expect(byName['partial']).toMatchObject({ partialFilterExpression: { n: { $gt: 5 } }, collation: { locale: 'de' } });
    expect(byName['text_text']).toMatchObject({ weights: { text: 1 }, default_language: 'english' });
    // A server that does not know search indexes is asked for them once.
    const asked = (await rig.server.call('operations')).ended.filter(({ outcome }: { outcome: string }) => outcome === 'failed').length;
    await rig.server.call('collection-indexes', { database: 'app', collection: 'b' });
    expect((await rig.server.call('operations')).ended.filter(({ outcome }: { outcome: string }) => outcome === 'failed')).toHaveLength(asked);
  });

  it.each([
    ['collection-indexes', 'view', 166, /A view has no indexes/],
    ['collection-indexes', 'nope', 26, /list-collections/],
    ['collection-storage-size', 'view', 166, /A view holds no data/],
    ['collection-storage-size', 'nope', 26, /list-collections/],
  ])('says why %s has nothing of %s', async (tool, collection, serverCode, next) => {
    const { isError, structuredContent: body } = await rig.server.callRaw(tool, { database: 'app', collection });
    expect(isError).toBe(true);
    expect(body.error.serverCode).toBe(serverCode);
    expect(body.next).toMatch(next);
  });

  it('measures a collection in units of 1024', async () => {
    await rig.mongo.client.db('app').collection('big').insertMany(Array.from({ length: 100 }, () => ({ pad: 'x'.repeat(1_000) })));
    const [stats] = await rig.mongo.client.db('app').collection('big').aggregate([{ $collStats: { storageStats: {} } }]).toArray();
    const answer = await rig.server.call('collection-storage-size', { database: 'app', collection: 'big' });
    expect(answer).toMatchObject({ units: 'KB', size: stats?.['storageStats'].size / 1024, bytes: stats?.['storageStats'].size, indexBytes: stats?.['storageStats'].totalIndexSize });
    expect(await rig.server.call('collection-storage-size', { database: 'app', collection: 'series' })).toMatchObject({ size: 0, units: 'bytes' });
  });

  it('counts a database', async () => {
    const { stats } = await rig.server.call('db-stats', { database: 'odd' });
    expect(stats).toMatchObject({ db: 'odd', collections: 13, objects: 13 });
    expect(Object.keys(stats)).not.toContain('$clusterTime');
  });

  it('refuses the server\'s own databases like every other tool', async () => {
    for (const tool of ['list-collections', 'db-stats']) expect((await rig.server.call(tool, { database: 'admin' })).error.code).toBe('refused_by_policy');
  });

  it('leaves nothing behind', async () => {
    expect(await tagged(rig.mongo.client)).toEqual([]);
  });
});

describe('mongodb-logs', () => {
  it('shows the newest lines, oldest first, and no secret of a connection string in them', async () => {
    const marker = `marker${process.pid}`;
    const db = rig.mongo.client.db('app');
    // Every command is slow from now on, and so in the log.
    await db.command({ profile: 0, slowms: -1 });
    await db.collection('a').findOne({}, { comment: `${marker} mongodb://somebody:their-secret@elsewhere/` });
    await db.command({ profile: 0, slowms: 100 });
    const { logs, totalLinesWritten, shownCount } = await rig.server.call('mongodb-logs', { limit: 20 });
    expect(totalLinesWritten).toBeGreaterThanOrEqual(20);
    expect(shownCount).toBe(20);
    const times = logs.map((line: string) => Date.parse(JSON.parse(line).t.$date));
    expect(times).toEqual([...times].sort((a, b) => a - b));
    const found = logs.filter((line: string) => line.includes(marker));
    expect(found.join('\n')).toContain('mongodb://<credentials>@elsewhere/');
    expect(logs.join('\n')).not.toContain('their-secret');
    expect((await rig.server.call('mongodb-logs', { type: 'startupWarnings' })).logs).toEqual(expect.any(Array));
  });

  it('is for administrators only over HTTP', async () => {
    const tokens = ['reader leash:kill reader-token-0123456789', 'boss leash:admin admin-token-0123456789'].join(';');
    const http = await startHttpServer({ uri: rig.mongo.uri, env: { MONGO_LEASH_TOKENS: tokens } });
    try {
      const reader = await connectModern(http.url, 'reader-token-0123456789');
      await expect(reader.call('mongodb-logs')).rejects.toThrow();
      const boss = await connectModern(http.url, 'admin-token-0123456789');
      expect((await boss.call('mongodb-logs', { limit: 1 })).logs).toHaveLength(1);
      await reader.close();
      await boss.close();
    } finally {
      await http.stop();
    }
  });
});
