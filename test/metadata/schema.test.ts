/** collection-schema: a guess that says what it is worth, and that never makes the database read a large collection (case D27). */
import { Code, Decimal128, type Document, Double, Int32, Long, ObjectId } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestMongo, eventually, startMongo, tagged } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo({ args: ['--setParameter', 'internalQueryExecYieldIterations=10'] });
  const db = mongo.client.db('app');
  await db.collection('d27').insertMany(Array.from({ length: 1_000 }, (_, i) => ({
    _id: i as never,
    a: i % 2 === 0 ? new Int32(i) : `text ${i}`,
    ...(i % 50 === 0 ? { rare: true } : {}),
    orders: [{ sku: 'x', lines: [{ n: new Int32(1) }, { n: new Double(1.5), note: null }] }],
  })));
  await db.createCollection('empty');
  await db.collection('large').insertMany(Array.from({ length: 20_000 }, (_, i) => ({ _id: i as never, v: i })));
  await db.collection('middle').insertMany(Array.from({ length: 6_000 }, (_, i) => ({ _id: i as never, v: i })));
  await db.createCollection('view', { viewOn: 'large', pipeline: [{ $set: { w: '$v' } }] });
  await db.createCollection('slowView', { viewOn: 'large', pipeline: [{ $set: { w: { $sum: { $map: { input: { $range: [0, 20_000] }, in: { $multiply: ['$$this', '$v'] } } } } } }, { $match: { w: -1 } }] });
  await db.createCollection('series', { timeseries: { timeField: 't', metaField: 'm' } });
  await db.collection('series').insertMany(Array.from({ length: 100 }, (_, i) => ({ t: new Date(1.7e12 + i * 1_000), m: i % 3, v: i })));
  await db.collection<Document>('kinds').insertMany([{ _id: new ObjectId(), int: new Int32(1), double: new Double(1), long: Long.fromNumber(1), decimal: Decimal128.fromString('1'), date: new Date(0), none: null, regex: /a/i, list: [], code: new Code('f'), scoped: new Code('f', { x: 1 }), 'with.dot': 1 }]);
  // A driver does not send such a field, and a database holds it all the same.
  await db.aggregate([{ $documents: [{ _id: 1 }] }, { $set: { odd: { $arrayToObject: [[['_bsontype', 'Int32']]] } } }, { $merge: 'odd' }]).toArray();
  await db.collection('wide').insertOne({ map: Object.fromEntries(Array.from({ length: 3_000 }, (_, i) => [`k${i}`, i])) });
  server = await startServer({ uri: mongo.uri });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

const schemaOf = (collection: string, more: Record<string, unknown> = {}) => server.call('collection-schema', { database: 'app', collection, ...more });
/** Which stages the last aggregation on a collection had, and how many documents it read, by the profiler. */
async function profiled(act: () => Promise<unknown>): Promise<{ plan: string; examined: number }[]> {
  const db = mongo.client.db('app');
  await db.command({ profile: 2 });
  await act();
  await db.command({ profile: 0 });
  const rows = await db.collection('system.profile').find({ 'command.comment': { $regex: '^mongo-leash' }, 'command.aggregate': { $exists: true } }).toArray();
  await db.collection('system.profile').drop();
  return rows.map((row) => ({ plan: String(row['planSummary']), examined: Number(row['docsExamined'] ?? 0) }));
}

describe('collection-schema', () => {
  it('gives the share of each field and type when it reads all documents (D27)', async () => {
    const { schema, fieldsCount, sample, summary } = await schemaOf('d27', { sampleSize: 1_000 });
    expect(fieldsCount).toBe(4);
    expect(sample).toEqual({ documents: 1_000, of: 1_000, method: 'all' });
    expect(summary).toContain('All 1000 documents');
    expect(schema.rare).toEqual({ types: [{ bsonType: 'Boolean', share: 1 }], share: 0.02, optional: true });
    expect(schema.a).toEqual({ types: expect.arrayContaining([{ bsonType: 'Int32', share: 0.5 }, { bsonType: 'String', share: 0.5 }]), share: 1, mixed: true });
    expect(schema._id).toEqual({ types: [{ bsonType: 'Int32', share: 1 }], share: 1 });
    expect(schema.orders.types).toEqual([{
      bsonType: 'Array', share: 1,
      types: [{
        bsonType: 'Document', share: 1,
        fields: {
          sku: { types: [{ bsonType: 'String', share: 1 }], share: 1 },
          lines: {
            share: 1,
            types: [{
              bsonType: 'Array', share: 1,
              types: [{
                bsonType: 'Document', share: 1,
                fields: {
                  n: { types: [{ bsonType: 'Int32', share: 0.5 }, { bsonType: 'Double', share: 0.5 }], share: 1, mixed: true },
                  note: { types: [{ bsonType: 'Null', share: 1 }], share: 0.5, optional: true },
                },
              }],
            }],
          },
        },
      }],
    }]);
  });

  it('says of a sample that it is a guess from so many of so many documents (D27)', async () => {
    const { schema, sample, summary, operationId } = await schemaOf('d27');
    expect(operationId).toMatch(/^\w{26}$/);
    expect(sample).toEqual({ documents: 50, of: 1_000, method: 'random' });
    expect(summary).toMatch(/guess from a sample of 50 of about 1000 documents, drawn at random/);
    expect(schema.a.mixed).toBe(true);
  });

  it('tells an empty collection from one that is not there (D27)', async () => {
    expect(await schemaOf('empty')).toMatchObject({ schema: {}, fieldsCount: 0, summary: 'app.empty is empty.' });
    expect((await schemaOf('nope')).summary).toMatch(/There is no app\.nope/);
  });

  it('names the types as the server has them', async () => {
    const { schema } = await schemaOf('kinds');
    const types = Object.fromEntries(Object.entries(schema).map(([name, field]: [string, any]) => [name, field.types[0].bsonType]));
    expect(types).toEqual({ _id: 'ObjectId', int: 'Int32', double: 'Double', long: 'Long', decimal: 'Decimal128', date: 'Date', none: 'Null', regex: 'RegExp', list: 'Array', code: 'Code', scoped: 'CodeWScope', 'with.dot': 'Int32' });
    const { schema: odd } = await schemaOf('odd');
    expect(odd.odd.types[0]).toEqual({ bsonType: 'Document', share: 1, fields: { _bsontype: { types: [{ bsonType: 'String', share: 1 }], share: 1 } } });
  });

  it('draws from a large collection at random, and never reads it as a whole', async () => {
    for (const [collection, sampleSize, drawn] of [['large', 50, 50], ['large', 5_000, 1_000], ['middle', 301, 300]] as const) {
      let answer: any;
      const rows = await profiled(async () => { answer = await schemaOf(collection, { sampleSize }); });
      expect(answer.sample).toMatchObject({ documents: drawn, method: 'random' });
      expect(JSON.stringify(answer.notes ?? '').includes('were drawn')).toBe(drawn < sampleSize);
      expect(rows).toHaveLength(1);
      for (const { examined } of rows) expect(examined).toBeLessThanOrEqual(drawn * 2);
    }
  });

  it.each([['view', 'w'], ['series', 'm']])('takes the first documents of a %s, and says so', async (collection, field) => {
    let answer: any;
    const rows = await profiled(async () => { answer = await schemaOf(collection); });
    expect(answer.sample).toEqual({ documents: 50, of: null, method: 'first' });
    expect(answer.summary).toMatch(/of an unknown number of documents, the first ones that came/);
    expect(answer.schema[field].share).toBe(1);
    for (const { examined } of rows) expect(examined).toBeLessThan(200);
  });

  it('keeps to the size of the answer, and says what it left out', async () => {
    const answer = await schemaOf('wide', { responseBytesLimit: 2_000 });
    expect(answer.schema.map.types[0]).toMatchObject({ bsonType: 'Document', fieldsCount: 1_000 });
    expect(answer.notes).toEqual([expect.stringContaining('names seem to be data')]);
    expect(JSON.stringify(answer).length).toBeLessThan(3_000);
  });

  it.each([[{ sampleSize: 0 }, /sampleSize: must be at least 1/], [{ sampleSize: 1.5 }, /whole number/], [{ collection: 'system.users' }, /refused/], [{ database: 'a.b' }, /no name of a database/]])('refuses %j', async (more, message) => {
    const { error } = await server.call('collection-schema', { database: 'app', collection: 'd27', ...more });
    expect(error.message).toMatch(message);
  });

  it('is killed in the database when the call is cancelled while a slow view is read', async () => {
    const abort = new AbortController();
    const call = schemaOf2(abort.signal).catch((error: unknown) => error);
    const row = await eventually('the view is read', async () => (await tagged(mongo.client)).find((each) => each['command']?.aggregate === 'slowView'));
    const requestId = server.lastRequestId();
    const cancelledAt = performance.now();
    abort.abort();
    await eventually('it is gone', async () => !(await tagged(mongo.client)).some(({ opid }) => opid === row['opid']), 3_000);
    expect(performance.now() - cancelledAt).toBeLessThan(2_000);
    await call;
    const status = await eventually('its end is known', async () => {
      const found = await server.call('status', { requestId });
      return found.outcome === null ? null : found;
    });
    expect(status).toMatchObject({ outcome: 'killed', cause: 'client_cancelled' });
  });
});

const schemaOf2 = (signal: AbortSignal) => server.call('collection-schema', { database: 'app', collection: 'slowView' }, signal);
