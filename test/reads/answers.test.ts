/** What the query tools answer is what the database holds: the driver's own answer to the same question is the judge. */
import { type Document, EJSON } from 'bson';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PipelineCase, pipelineCases, pipelineJson } from '../support/cases.js';
import { canonical, readCanonical } from '../support/exact.js';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;
const cases = pipelineCases();
const databaseOf = ({ name }: PipelineCase) => `case_${name.slice(0, 2)}`;
const oddNames = cases.find(({ name }) => name.startsWith('17'))?.setup.map(({ collection }) => collection) ?? [];

beforeAll(async () => {
  mongo = await startMongo();
  server = await startServer({ uri: mongo.uri, args: ['--allow-js', '--max-limit', '400'] });
  for (const each of cases) {
    const db = mongo.client.db(databaseOf(each));
    for (const { collection, docs, indexes = [] } of each.setup) {
      await db.collection(collection).insertMany(docs);
      for (const { key, options } of indexes) await db.collection(collection).createIndex(key, options ?? {});
    }
    for (const command of each.commands ?? []) await db.command(command);
  }
  const app = mongo.client.db('app');
  await app.collection<{ _id: number }>('many').insertMany(Array.from({ length: 500 }, (_, i) => ({ _id: i, k: i % 7, a: [i % 3, i % 5], '2': i, s: `text ${i}` })));
  await app.createCollection('view', { viewOn: 'many', pipeline: [{ $match: { k: 3 } }, { $project: { s: 0 } }] });
  await app.createCollection('series', { timeseries: { timeField: 't', metaField: 'm' } });
  await app.collection('series').insertMany(Array.from({ length: 60 }, (_, i) => ({ t: new Date(1.7e12 + i * 60_000), m: { sensor: i % 4 }, v: i / 2 })));
  await app.collection('places').insertMany([{ _id: 1, at: [1, 1] }, { _id: 2, at: [50, 50] }] as unknown as Document[]);
  await app.collection('places').createIndex({ at: '2d' });
  await app.createCollection('empty');
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

/** Documents, with their types, as an answer in canonical form gives them back. */
const read = (documents: unknown[]) => canonical(readCanonical(documents));
const driver = { promoteValues: false, bsonRegExp: true };
const whole = { responseBytesLimit: 1_048_576, canonical: true };

describe('aggregate and aggregate-db', () => {
  it.each(cases.map((each) => [each.name, each] as const))('give the exact documents of a pipeline from the field: %s', async (_name, each) => {
    const { pipeline, collation } = pipelineJson(each.name);
    const args = { database: databaseOf(each), pipeline, ...whole, ...(collation === undefined ? {} : { collation }) };
    const answer = each.collection === null ? await server.call('aggregate-db', args) : await server.call('aggregate', { ...args, collection: each.collection });
    expect(answer).toMatchObject({ more: false, appliedLimits: [], elapsedMs: expect.any(Number), operationId: expect.stringMatching(/^[0-9a-z]{26}$/) });
    expect(answer[each.collection === null ? 'aggResultsCount' : 'count']).toBe(each.expected.length);
    expect(read(answer.documents)).toEqual(canonical(each.expected));
  });

  it('say that there is more, and name the limit of documents that cut them, in place of counting in secret', async () => {
    const answer = await server.call('aggregate', { database: 'app', collection: 'many', pipeline: [{ $project: { _id: 1 } }] });
    expect(answer).toMatchObject({ returned: 100, more: true, appliedLimits: ['config.maxDocumentsPerQuery'] });
    expect(answer).not.toHaveProperty('count');
  });

  it('count all documents in a second operation, and only when that was asked for', async () => {
    const args = { database: 'app', collection: 'many', pipeline: [{ $match: { k: { $lt: 5 } } }], limit: 2 };
    const exact = await mongo.client.db('app').collection('many').countDocuments({ k: { $lt: 5 } });
    const operationsOf = async (call: object) => {
      const answer = await server.call('aggregate', { ...args, ...call });
      const requestId = server.lastRequestId();
      return { answer, operations: (await server.call('operations')).ended.filter((each: { requestId: unknown }) => each.requestId === requestId).length };
    };
    const plain = await operationsOf({});
    expect(plain).toMatchObject({ answer: { returned: 2, more: true, appliedLimits: [] }, operations: 1 });
    expect(plain.answer).not.toHaveProperty('count');
    expect(await operationsOf({ count: true })).toMatchObject({ answer: { count: exact, returned: 2, more: true, appliedLimits: [] }, operations: 2 });
    expect(await operationsOf({ count: true, pipeline: [{ $limit: 2 }] })).toMatchObject({ answer: { count: 2, more: false }, operations: 1 });
  });

  it('give all documents up to the ceiling when the call asks for more than it, and name the ceiling', async () => {
    const answer = await server.call('aggregate', { database: 'app', collection: 'many', pipeline: [{ $project: { _id: 1 } }], limit: 1_000 });
    expect(answer).toMatchObject({ returned: 400, more: true, appliedLimits: ['config.maxDocumentsPerQuery'] });
  });

  it('keep the answer within responseBytesLimit, name it, and leave the rest to result', async () => {
    const args = { database: 'app', collection: 'many', pipeline: [{ $limit: 90 }], responseBytesLimit: 3_000 };
    const raw = await server.callRaw('aggregate', args);
    expect(Buffer.byteLength(raw.content[0].text)).toBeLessThanOrEqual(3_000);
    const { documents, operationId, returned, appliedLimits, truncated } = raw.structuredContent;
    expect({ appliedLimits, truncated }).toEqual({ appliedLimits: ['tool.responseBytesLimit'], truncated: true });
    const rest = await server.call('result', { id: operationId, offset: returned, responseBytesLimit: 1_048_576 });
    expect([...documents, ...rest.documents].map(({ _id }) => _id)).toEqual(Array.from({ length: 90 }, (_, i) => i));
  });

  it.each([0, -5])('take a responseBytesLimit of %i for the most that there is, as the stock server does', async (responseBytesLimit) => {
    const answer = await server.call('aggregate', { database: 'app', collection: 'many', pipeline: [{ $set: { pad: 'x'.repeat(500) } }], responseBytesLimit });
    expect(answer).toMatchObject({ returned: 100, truncated: false });
  });

  it('read a view, a time series, an empty collection and one that is not there', async () => {
    const of = async (collection: string) => await server.call('aggregate', { database: 'app', collection, pipeline: [{ $sort: { _id: 1, t: 1 } }, { $unset: 'a' }], ...whole });
    const exact = async (collection: string) => canonical(await mongo.client.db('app').collection(collection).aggregate([{ $sort: { _id: 1, t: 1 } }, { $unset: 'a' }], driver).toArray());
    for (const collection of ['view', 'series']) expect(read((await of(collection)).documents)).toEqual(await exact(collection));
    expect(await of('view')).toMatchObject({ count: 71 });
    for (const collection of ['empty', 'nowhere']) expect(await of(collection)).toMatchObject({ documents: [], count: 0, more: false });
  });

  it('give the error of the database with its code', async () => {
    const answer = await server.callRaw('aggregate', { database: 'app', collection: 'many', pipeline: [{ $match: { k: { $bad: 1 } } }] });
    expect(answer).toMatchObject({ isError: true, structuredContent: { outcome: 'failed', error: { code: 'operation_failed', serverCode: 2, message: 'unknown operator: $bad' } } });
    expect(await server.call('aggregate-db', { database: 'app', pipeline: [{ $match: {} }] })).toMatchObject({ error: { serverCode: 73 } });
  });
});

describe('find', () => {
  it.each(oddNames)('reads the collection %j', async (collection) => {
    const answer = await server.call('find', { database: 'case_17', collection, ...whole });
    expect(read(answer.documents)).toEqual(canonical(await mongo.client.db('case_17').collection(collection).find({}, driver).toArray()));
    expect(answer).toMatchObject({ queryResultsCount: answer.documents.length });
  });

  it('gives every type as it is stored, and finds each by the value that it showed', async () => {
    const on = { database: 'case_16', collection: 'types' };
    const answer = await server.call('find', { ...on, sort: { _id: 1 }, limit: 100, ...whole });
    expect(read(answer.documents)).toEqual(canonical(await mongo.client.db('case_16').collection('types').find({}, driver).sort({ _id: 1 }).toArray()));
    for (const { _id, v } of answer.documents) {
      const found = await server.call('find', { ...on, filter: { _id, v: { $eq: v } } });
      expect(found.documents, JSON.stringify(v)).toHaveLength(1);
    }
  });

  it('takes filter, projection, sort, limit, skip, hint and collation as the driver does', async () => {
    const filter = { k: { $in: [1, 2, 3] }, _id: { $gt: 40 } };
    const options = { projection: { k: 1, s: 1 }, sort: { k: -1, _id: 1 }, skip: 5, limit: 7 } as const;
    const answer = await server.call('find', { database: 'app', collection: 'many', filter, ...options, hint: { _id: 1 }, collation: { locale: 'en', strength: 2 }, canonical: true });
    const exact = await mongo.client.db('app').collection('many').find(filter as Document, { ...options, ...driver }).toArray();
    expect(read(answer.documents)).toEqual(canonical(exact));
    const words = await server.call('find', { database: 'app', collection: 'many', filter, ...options, sort: { k: 'desc', _id: 'ascending' }, canonical: true });
    expect(words.documents).toEqual(answer.documents);
    const text = await server.call('find', { database: 'app', collection: 'many', filter: { s: 'TEXT 7' }, collation: { locale: 'en', strength: 2 } });
    expect(text.documents).toMatchObject([{ _id: 7 }]);
  });

  it('gives 10 documents when no limit is named, counts for nothing where it has all, and by a second operation where it has not', async () => {
    const of = (more: object) => server.call('find', { database: 'app', collection: 'many', ...more });
    expect(await of({})).toMatchObject({ returned: 10, more: true, appliedLimits: [] });
    expect(await of({})).not.toHaveProperty('queryResultsCount');
    expect(await of({ filter: { _id: { $lt: 4 } } })).toMatchObject({ queryResultsCount: 4, more: false });
    expect(await of({ skip: 496, limit: 100 })).toMatchObject({ queryResultsCount: 500, returned: 4 });
    expect(await of({ count: true })).toMatchObject({ queryResultsCount: 500, returned: 10 });
    expect(await of({ count: true, limit: 1_000 })).toMatchObject({ queryResultsCount: 500, returned: 400, appliedLimits: ['config.maxDocumentsPerQuery'] });
  });

  it('keeps $where and $near, which no aggregation takes, also where it counts', async () => {
    expect(await server.call('find', { database: 'app', collection: 'many', filter: { $where: 'this.k === 2' }, limit: 1, count: true })).toMatchObject({ returned: 1, queryResultsCount: 72 });
    expect(await server.call('find', { database: 'app', collection: 'places', filter: { at: { $near: [49, 49] } }, limit: 1, count: true })).toMatchObject({ documents: [{ _id: 2 }], queryResultsCount: 2 });
  });

  it('keeps documents that no answer has room for out of it, shows how the first begins, and says what to do (D19)', async () => {
    await mongo.client.db('app').collection<{ _id: number }>('heavy').insertMany([1, 2, 3].map((_id) => ({ _id, pad: 'x'.repeat(900_000) })));
    const raw = await server.callRaw('find', { database: 'app', collection: 'heavy' });
    expect(Buffer.byteLength(raw.content[0].text)).toBeLessThanOrEqual(40_000);
    expect(raw.structuredContent).toMatchObject({ documents: [], returned: 0, more: true, truncated: true, appliedLimits: ['tool.responseBytesLimit'], queryResultsCount: 3, partialDocument: { position: 0, json: expect.stringContaining('{"_id":1') } });
    const larger = await server.call('find', { database: 'app', collection: 'heavy', responseBytesLimit: 1_048_576 });
    expect(larger).toMatchObject({ documents: [{ _id: 1 }], returned: 1, truncated: true });
  });

  it('reads views and time series', async () => {
    for (const collection of ['view', 'series']) {
      const answer = await server.call('find', { database: 'app', collection, limit: 100, sort: collection === 'view' ? { _id: 1 } : { t: 1 }, ...whole });
      const exact = await mongo.client.db('app').collection(collection).find({}, { sort: collection === 'view' ? { _id: 1 } : { t: 1 }, ...driver }).toArray();
      expect(read(answer.documents)).toEqual(canonical(exact));
    }
  });
});

describe('count', () => {
  it.each([
    ['many', undefined],
    ['many', { k: 3 }],
    ['many', { _id: { $lt: 17 } }],
    ['view', undefined],
    ['view', { _id: { $gt: 200 } }],
    ['series', { 'm.sensor': 2 }],
    ['empty', undefined],
    ['nowhere', { k: 1 }],
  ])('is exact on %s for %j', async (collection, query) => {
    const answer = await server.call('count', { database: 'app', collection, ...(query === undefined ? {} : { query }) });
    expect(answer).toEqual({ count: await mongo.client.db('app').collection(collection).countDocuments((query ?? {}) as Document), operationId: expect.any(String), elapsedMs: expect.any(Number) });
  });

  it.each(oddNames)('counts %j', async (collection) => {
    expect(await server.call('count', { database: 'case_17', collection })).toMatchObject({ count: await mongo.client.db('case_17').collection(collection).countDocuments() });
  });
});

describe('distinct', () => {
  it.each([['many', 'k', undefined], ['many', 'a', { k: 1 }], ['view', 'a', undefined], ['series', 'm.sensor', undefined], ['nowhere', 'k', undefined]])('gives the values of %s.%s for %j', async (collection, field, query) => {
    const answer = await server.call('distinct', { database: 'app', collection, field, ...(query === undefined ? {} : { query }) });
    const exact = await mongo.client.db('app').collection(collection).distinct(field, (query ?? {}) as Document);
    expect([...answer.values].sort()).toEqual([...exact].sort());
    expect(answer).toMatchObject({ count: exact.length, more: false, appliedLimits: [] });
  });

  it('gives values of all types as they are', async () => {
    const { values } = await server.call('distinct', { database: 'case_16', collection: 'types', field: 'v', ...whole });
    const reply = await mongo.client.db('case_16').command({ distinct: 'types', key: 'v' }, driver);
    expect(read(values.map((v: unknown) => ({ v })))).toEqual(canonical((reply['values'] as unknown[]).map((v) => ({ v }))));
  });

  it('shows as many as fit, says that there are more, and how many there are', async () => {
    const raw = await server.callRaw('distinct', { database: 'app', collection: 'many', field: 's', responseBytesLimit: 2_500 });
    expect(Buffer.byteLength(raw.content[0].text)).toBeLessThanOrEqual(2_500);
    const { values, more, count, appliedLimits, next } = raw.structuredContent;
    expect(values.length).toBeGreaterThan(50);
    expect({ more, count, appliedLimits }).toEqual({ more: true, count: 500, appliedLimits: ['tool.responseBytesLimit'] });
    expect(next).toContain('{"$group": {"_id": "$s"}}');
  });

  it('tells of values that are together over 16 MB as an error, and the way out', async () => {
    const large = mongo.client.db('app').collection('large');
    await large.insertMany(Array.from({ length: 18 }, (_, i) => ({ v: `${i} ${'x'.repeat(1_000_000)}` })));
    const answer = await server.callRaw('distinct', { database: 'app', collection: 'large', field: 'v' });
    expect(answer).toMatchObject({ isError: true, structuredContent: { outcome: 'failed', error: { serverCode: 17217 } } });
    expect(answer.structuredContent.next).toContain('$group');
  });
});

describe('explain', () => {
  const on = { database: 'app', collection: 'many' };
  const methods = [
    ['aggregate', { pipeline: [{ $match: { _id: { $gt: 490 } } }] }, { aggregate: 'many', pipeline: [{ $match: { _id: { $gt: 490 } } }], cursor: {} }],
    ['find', { filter: { _id: { $gt: 490 } }, sort: { _id: -1 } }, { find: 'many', filter: { _id: { $gt: 490 } }, sort: { _id: -1 }, limit: 10 }],
    ['count', { query: { _id: { $gt: 490 } } }, { aggregate: 'many', pipeline: [{ $match: { _id: { $gt: 490 } } }, { $count: 'n' }], cursor: {} }],
    ['distinct', { field: 'k', query: { _id: { $gt: 490 } } }, { distinct: 'many', key: 'k', query: { _id: { $gt: 490 } } }],
  ] as const;
  /** Figures that two runs of the same do not share. */
  const steady = (value: unknown): unknown => JSON.parse(JSON.stringify(value), (key, each: unknown) => (/millis|saveState|restoreState/i.test(key) ? undefined : each)) as unknown;

  it.each(methods.flatMap(([name, args, command]) => (['queryPlanner', 'executionStats', 'allPlansExecution'] as const).map((verbosity) => [name, verbosity, args, command] as const)))('of %s with %s is what the database says, without what concerns the wire', async (name, verbosity, args, command) => {
    const answer = await server.call('explain', { ...on, method: [{ name, arguments: args }], verbosity });
    const { $clusterTime, operationTime, ...exact } = await mongo.client.db('app').command({ explain: command, verbosity });
    expect([$clusterTime, operationTime]).not.toContain(undefined);
    expect(answer).toMatchObject({ method: name, verbosity, operationId: expect.any(String) });
    expect(steady(answer.explainResult)).toEqual(steady(JSON.parse(EJSON.stringify(exact, { relaxed: true }))));
  });

  it('takes the method without its array, and as text', async () => {
    const method = { name: 'find', arguments: { filter: { _id: 1 } } };
    const [array, object, text] = [await server.call('explain', { ...on, method: [method] }), await server.call('explain', { ...on, method }), await server.call('explain', { ...on, method: JSON.stringify([method]) })];
    expect(array.explainResult.queryPlanner.winningPlan).toBeDefined();
    expect(object.explainResult).toEqual(array.explainResult);
    expect(text).toMatchObject({ explainResult: array.explainResult, notes: ['method came as text and was read as JSON.'] });
  });

  it('shows values of the plan as Extended JSON', async () => {
    const filter = { _id: { $oid: '507f1f77bcf86cd799439011' }, d: { $date: '2024-01-31T09:30:00Z' }, n: { $numberLong: '9007199254740993' } };
    const answer = await server.call('explain', { ...on, method: [{ name: 'find', arguments: { filter } }] });
    expect(answer.explainResult.command.filter).toEqual(filter);
  });

  it('is cut to the size of the answer, and says how to get the whole', async () => {
    const raw = await server.callRaw('explain', { ...on, method: [{ name: 'find', arguments: { filter: { s: { $in: Array.from({ length: 300 }, (_, i) => `"é${i}"`) } } } }], responseBytesLimit: 2_000 });
    expect(Buffer.byteLength(raw.content[0].text)).toBeLessThanOrEqual(2_000);
    expect(raw.structuredContent).toMatchObject({ explainResult: null, partialDocument: { json: expect.stringContaining('queryPlanner') }, next: expect.stringContaining('responseBytesLimit') });
  });
});
