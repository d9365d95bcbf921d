/** With --index-check nothing runs that would scan a whole collection, and what uses an index runs: the profiler of the database is the judge. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { slowDocuments, slowExpression } from '../support/reads.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  server = await startServer({ uri: mongo.uri, args: ['--index-check', '--allow-writes'] });
  const db = mongo.client.db('app');
  for (const name of ['a', 'plain', 'indexed']) await db.collection<{ _id: number }>(name).insertMany(slowDocuments.slice(0, 200));
  await db.collection('a').createIndexes([{ key: { k: 1 } }, { key: { n: 1 } }]);
  await db.collection('indexed').createIndex({ k: 1 });
  await db.createCollection('joining', { viewOn: 'a', pipeline: [{ $match: { k: 1 } }, { $lookup: { from: 'plain', localField: 'k', foreignField: 'k', as: 'r' } }] });
  await db.command({ profile: 2 });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

const on = { database: 'app', collection: 'a' };
const indexed = { $match: { k: 1 } };
const by = (from: string) => ({ $lookup: { from, localField: 'k', foreignField: 'k', as: 'r' } });
const byPipeline = (from: string) => ({ $lookup: { from, let: { k: '$k' }, pipeline: [{ $match: { $expr: { $eq: ['$k', '$$k'] } } }], as: 'r' } });

/** What the profiler has of this operation but explains: empty when it never ran. */
async function profiled(requestId: string | number): Promise<unknown[]> {
  const own = { $regex: `^mongo-leash\\.1\\..*\\.[rw]\\.n:${requestId} checked$` };
  return await mongo.client.db('app').collection('system.profile').find({ 'command.comment': own, 'command.explain': { $exists: false } }).toArray();
}

describe('what would scan a whole collection is refused, and has not run:', () => {
  it.each([
    ['find', { filter: { t: 1 } }, 'app.a'],
    ['find', { sort: { t: 1 } }, 'app.a'],
    ['find', { filter: { $or: [{ k: 1 }, { t: 1 }] } }, 'app.a'],
    ['count', {}, 'app.a'],
    ['count', { query: { t: 1 } }, 'app.a'],
    ['distinct', { field: 't' }, 'app.a'],
    ['aggregate', { pipeline: [{ $group: { _id: '$t' } }] }, 'app.a'],
    ['aggregate', { pipeline: [indexed, by('plain')] }, 'app.plain'],
    ['aggregate', { pipeline: [indexed, byPipeline('plain')] }, 'app.plain'],
    ['aggregate', { pipeline: [indexed, { $facet: { x: [by('plain')] } }] }, 'app.plain'],
    ['aggregate', { pipeline: [indexed, { $unionWith: 'plain' }, { $group: { _id: '$t' } }] }, 'app.plain'],
    ['aggregate', { pipeline: [indexed, { $graphLookup: { from: 'plain', startWith: '$k', connectFromField: 'k', connectToField: 'n', as: 'r' } }] }, 'app.plain'],
    ['aggregate', { pipeline: [indexed, { $lookup: { from: 'indexed', let: { k: '$k' }, pipeline: [{ $match: { $expr: { $eq: ['$k', '$$k'] } } }, byPipeline('plain')], as: 'r' } }] }, 'app.plain'],
    ['aggregate', { pipeline: [{ $match: { t: 1 } }, { $merge: 'target' }] }, 'app.a'],
    ['aggregate', { collection: 'joining', pipeline: [] }, 'app.plain'],
    ['aggregate-db', { collection: undefined, pipeline: [{ $documents: [{ k: 1 }] }, by('plain')] }, 'app.plain'],
    ['run', { pipeline: [{ $match: { t: 1 } }] }, 'app.a'],
    ['find', { filter: { t: 1 }, sort: { _id: 1 } }, 'app.a'],
    ['find', { filter: { t: 1 }, hint: 'k_1' }, 'app.a'],
    ['find', { skip: 1_000_000, limit: 1 }, 'app.a'],
    ['count', { hint: { _id: 1 } }, 'app.a'],
    ['aggregate', { pipeline: [{ $limit: 1_000_000 }, { $match: { t: 1 } }] }, 'app.a'],
    ['aggregate', { pipeline: [indexed, { $lookup: { from: 'plain', pipeline: [{ $sort: { _id: 1 } }, { $match: { t: 1 } }], as: 'r' } }] }, 'app.plain'],
    ['explain', { method: [{ name: 'find', arguments: { filter: { t: 1 } } }], verbosity: 'executionStats' }, 'app.a'],
    ['export', { exportTarget: [{ name: 'find', arguments: {} }] }, 'app.a'],
  ] as const)('%s %j', async (tool, args, scanned) => {
    const answer = await server.callRaw(tool, { ...on, ...args, comment: 'checked' });
    const requestId = server.lastRequestId();
    expect(answer).toMatchObject({ isError: true, structuredContent: { error: { code: 'refused_by_policy', databaseState: 'Only its plan was asked for: it has not run.' } } });
    expect(answer.structuredContent.error.message).toContain(`would scan the whole of ${scanned}`);
    expect(await profiled(requestId)).toEqual([]);
    expect(await mongo.client.db('app').listCollections({ name: 'target' }).toArray()).toEqual([]);
  });
});

describe('what uses an index, or reads no more than its limit, runs:', () => {
  it.each([
    ['find', { filter: { k: 1 } }],
    ['find', {}],
    ['find', { skip: 5, limit: 3, projection: { k: 1 } }],
    ['find', { filter: { $or: [{ k: 1 }, { n: 2 }] } }],
    ['find', { filter: { _id: 7 } }],
    ['find', { collection: 'nowhere', filter: { t: 1 } }],
    ['find', { filter: { k: 1 }, limit: 2, count: true }],
    ['count', { query: { k: 1 } }],
    ['distinct', { field: 'k' }],
    ['aggregate', { pipeline: [indexed, { $group: { _id: '$n' } }] }],
    ['aggregate', { pipeline: [indexed, by('indexed')] }],
    ['aggregate', { pipeline: [indexed, byPipeline('indexed')] }],
    ['aggregate', { pipeline: [indexed, { $unionWith: { coll: 'indexed', pipeline: [indexed] } }] }],
    ['aggregate', { pipeline: [indexed, { $graphLookup: { from: 'indexed', startWith: '$k', connectFromField: 'n', connectToField: '_id', as: 'r' } }] }],
    ['aggregate-db', { collection: undefined, pipeline: [{ $documents: [{ k: 1 }] }, by('indexed')] }],
    ['run', { pipeline: [indexed] }],
    ['find', { sort: { _id: 1 } }],
    ['export', { exportTarget: [{ name: 'find', arguments: { limit: 10 } }] }],
  ] as const)('%s %j', async (tool, args) => {
    const answer = await server.callRaw(tool, { ...on, ...args, comment: 'checked' });
    const requestId = server.lastRequestId();
    expect(answer.isError, JSON.stringify(answer.structuredContent)).toBe(false);
    expect((await profiled(requestId)).length).toBeGreaterThan(0);
  });

  it('a count that would scan leaves the documents that were read, and says why there is no number', async () => {
    const answer = await server.call('find', { ...on, count: true });
    expect(answer).toMatchObject({ returned: 10, more: true, notes: [expect.stringMatching(/could not be counted.*would scan the whole of app\.a/)] });
    expect(answer).not.toHaveProperty('queryResultsCount');
  });
});

it('the schema of a view that would scan is refused, and that of one that uses an index is shown', async () => {
  const db = mongo.client.db('app');
  await db.createCollection('grouping', { viewOn: 'a', pipeline: [{ $group: { _id: '$t' } }] });
  await db.createCollection('narrow', { viewOn: 'a', pipeline: [indexed] });
  expect(await server.call('collection-schema', { ...on, collection: 'grouping' })).toMatchObject({ error: { code: 'refused_by_policy', message: expect.stringContaining('would scan the whole of app.a') } });
  expect(await server.call('collection-schema', { ...on, collection: 'narrow' })).toMatchObject({ fieldsCount: expect.any(Number) });
});

it('an explain that runs nothing is answered, also of a scan', async () => {
  expect(await server.call('explain', { ...on, method: [{ name: 'find', arguments: { filter: { t: 1 } } }] })).toMatchObject({ explainResult: { queryPlanner: { winningPlan: { inputStage: { stage: 'COLLSCAN' } } } } });
});

it('a call whose plan cannot be had is answered with the error of the database, and has not run', async () => {
  const answer = await server.callRaw('find', { ...on, filter: { k: { $bad: 1 } }, comment: 'checked' });
  const requestId = server.lastRequestId();
  expect(answer).toMatchObject({ isError: true, structuredContent: { outcome: 'failed', error: { serverCode: 2, message: 'unknown operator: $bad' }, notes: ['This is the explain of the index check: find itself was not sent.'] } });
  expect(await profiled(requestId)).toEqual([]);
});

it('without the option a scan runs', async () => {
  const other = await startServer({ uri: mongo.uri });
  expect(await other.call('count', { ...on, query: slowExpression })).toMatchObject({ count: 200 });
  await other.close();
});
