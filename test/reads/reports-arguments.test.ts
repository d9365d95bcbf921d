/** What a call of any read tool says is what the database is asked, or an error that says what to send (cases D06, D13, D14, D17, D18, D20, D21, D24, D30). */
import { type Document, ObjectId } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { type Filtering, filtering, joining } from '../support/reads.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;
let strict: TestServer;
const hex = '507f1f77bcf86cd799439011';

beforeAll(async () => {
  mongo = await startMongo();
  server = await startServer({ uri: mongo.uri });
  strict = await startServer({ uri: mongo.uri, args: ['--max-time-ms', '1500', '--max-time-ms-ceiling', '2000', '--allow-writes', '--allow-internal', '--allow-js'] });
  await mongo.client.db('app').collection<Document>('docs').insertMany([
    { _id: new ObjectId(hex), name: 'acme', d: new Date('2024-06-01'), n: 1 },
    { _id: hex as unknown as ObjectId, name: '/acme/i', a: null, d: '2024-06-01T00:00:00Z' },
    { _id: 3 as unknown as ObjectId, name: 'Acorn', d: new Date('2020-01-01'), a: 1 },
  ]);
});
afterAll(async () => {
  await Promise.all([server.close(), strict.close()]);
  await mongo.stop();
});

const on = { database: 'app', collection: 'docs' };
const all: Filtering[] = [...filtering, joining('docs')];
const named = all.map((how) => [how.tool, how] as const);
const ask = (how: Filtering, filter: unknown, on_: TestServer = server) => on_.callRaw(how.tool, { ...on, ...how.args(filter) });
const found = async (how: Filtering, filter: unknown) => {
  const { isError, structuredContent } = await ask(how, filter);
  expect(isError, JSON.stringify(structuredContent)).not.toBe(true);
  return how.found(structuredContent);
};

/** How many commands under our tags the profiler saw: the witness for "before the database is asked". */
async function profiled(work: () => Promise<void>): Promise<Document[]> {
  const db = mongo.client.db('app');
  await db.command({ profile: 2 });
  await work();
  await db.command({ profile: 0 });
  const rows = await db.collection('system.profile').find({ 'command.comment': { $regex: '^mongo-leash\\.1\\.' } }).toArray();
  await db.collection('system.profile').drop();
  return rows;
}

describe.each(named)('%s', (_tool, how) => {
  it('reads an id and a date in Extended JSON as what they are (D13)', async () => {
    expect(await found(how, { _id: { $oid: hex } })).toBe(1);
    expect(await found(how, { d: { $gte: { $date: '2024-01-01T00:00:00Z' } } })).toBe(1);
    expect(await found(how, { $expr: { $lt: ['$d', { $date: '2021-01-01T00:00:00Z' }] }, a: 1 })).toBe(1);
  });

  it('sends an id and a date that come as text as text, and hints at what may be meant (D14)', async () => {
    for (const [filter, form] of [[{ _id: hex }, `{"$oid": "${hex}"}`], [{ d: { $gte: '2024-06-01T00:00:00Z' } }, '{"$date": "2024-06-01T00:00:00Z"}']] as const) {
      const { structuredContent: answer } = await ask(how, filter);
      expect(how.found(answer)).toBe(1);
      expect(answer.notes).toEqual([expect.stringContaining(form)]);
      expect(answer.notes[0]).toContain(how.path);
    }
  });

  it('takes null for null or missing, and undefined for nothing that can be asked (D17)', async () => {
    expect(await found(how, { a: null })).toBe(2);
    const { isError, structuredContent: answer } = await ask(how, { a: { $undefined: true } });
    expect(isError).toBe(true);
    expect(answer.error).toMatchObject({ code: 'bad_argument', path: `${how.path}.a`, databaseState: 'Nothing was sent to the database.' });
  });

  it('takes a regular expression in every spelling, one with slashes as it is written, and no flag that there is not (D18)', async () => {
    expect(await found(how, { name: { $regex: '^ac', $options: 'i' } })).toBe(2);
    expect(await found(how, { name: { $in: [{ $regularExpression: { pattern: '^ac', options: 'i' } }] } })).toBe(2);
    expect(await found(how, { name: { $not: { $regex: '^a' } } })).toBe(2);
    expect(await found(how, { $expr: { $regexMatch: { input: '$name', regex: '^ac', options: 'i' } } })).toBe(2);
    const { structuredContent: slashes } = await ask(how, { name: { $regex: '/acme/i' } });
    expect(how.found(slashes)).toBe(1);
    expect(slashes.notes).toEqual([expect.stringMatching(/slash/)]);
    const { structuredContent: flagged } = await ask(how, { name: { $regex: 'x', $options: 'g' } });
    expect(flagged.error).toMatchObject({ code: 'bad_argument', path: `${how.path}.name.$options`, message: expect.stringContaining('"g"') });
  });

  it('sends nothing that was left out, and nothing besides the tag, the limits and what was asked (D17)', async () => {
    const allowed: Record<string, string[]> = {
      find: ['filter', 'limit', 'batchSize'],
      aggregate: ['pipeline', 'cursor'],
      distinct: ['key', 'query'],
      explain: ['verbosity'],
    };
    const rows = await profiled(async () => { await ask(how, { a: 1 }); });
    expect(rows).toHaveLength(1);
    const command = Object.keys(rows[0]?.['command']).filter((key) => !['lsid', '$clusterTime', '$db', '$readPreference', 'comment', 'maxTimeMS'].includes(key));
    const [verb = '', ...rest] = command;
    expect(rest.filter((key) => !allowed[verb]?.includes(key))).toEqual([]);
  });

  it.each([0, -1, 1.5, 2_147_483_648, 'abc', '', null, true, [5], { $numberLong: '5000' }])('refuses a maxTimeMS of %j before anything is sent (D06)', async (maxTimeMS) => {
    let answer: any;
    expect(await profiled(async () => { answer = await server.callRaw(how.tool, { ...on, ...how.args({ a: 1 }), maxTimeMS }); })).toEqual([]);
    expect(answer.isError).toBe(true);
    expect(answer.structuredContent.error).toMatchObject({ code: 'bad_argument', path: 'maxTimeMS', databaseState: 'Nothing was sent to the database.' });
    expect(answer.structuredContent.error.message.length).toBeLessThan(150);
  });

  it('is given the operator\'s ceiling where it asks for more, and says so; as text a time limit is read (D06) (D24)', async () => {
    let answer: any;
    const rows = await profiled(async () => { answer = await strict.call(how.tool, { ...on, ...how.args({ a: 1 }), maxTimeMS: '60000' }); });
    expect(rows.map(({ command }) => command.maxTimeMS)).toEqual([2_000]);
    expect(answer.notes).toEqual(['maxTimeMS came as text and was read as the number 60000.', 'maxTimeMS was 60000; this server allows at most 2000, which was used.']);
    const plain = await profiled(async () => { await strict.call(how.tool, { ...on, ...how.args({ a: 1 }) }); });
    expect(plain.map(({ command }) => command.maxTimeMS)).toEqual([1_500]);
  });
});

describe('arguments sent as text (D24)', () => {
  it.each<[string, Record<string, unknown>, string[]]>([
    ['find', { filter: '{"a": 1}', projection: '{"a": 1}', sort: '{"a": 1}', hint: '{"_id": 1}', collation: '{"locale": "en"}', skip: '0', count: 'true' }, ['filter', 'projection', 'sort', 'hint', 'collation', 'skip', 'count']],
    ['aggregate', { pipeline: '[{"$match": {"a": 1}}]', limit: '10', canonical: 'true' }, ['pipeline', 'limit', 'canonical']],
    ['aggregate-db', { collection: undefined, pipeline: '[{"$documents": [{"a": 1}]}]', responseBytesLimit: '5000' }, ['pipeline', 'responseBytesLimit']],
    ['count', { query: '{"a": 1}', hint: '{"_id": 1}' }, ['query', 'hint']],
    ['distinct', { field: 'a', query: '{"a": 1}' }, ['query']],
    ['explain', { method: '[{"name": "find", "arguments": {"filter": {"a": 1}}}]' }, ['method']],
    ['explain', { method: [{ name: 'find', arguments: { filter: '{"a": 1}', limit: '3' } }] }, ['filter', 'limit']],
    ['export', { exportTarget: '[{"name": "find", "arguments": {"filter": {"a": 1}}}]' }, ['exportTarget']],
    ['collection-schema', { sampleSize: '2' }, ['sampleSize']],
    ['mongodb-logs', { database: undefined, collection: undefined, limit: '1' }, ['limit']],
  ])('are read by %s %j, which says so', async (tool, args, names) => {
    const { isError, structuredContent: answer } = await server.callRaw(tool, { ...on, ...args });
    expect(isError, JSON.stringify(answer)).not.toBe(true);
    expect(answer.notes.map((note: string) => note.split(' came as text')[0])).toEqual(expect.arrayContaining(names));
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['find', { filter: '{a: 1}' }, 'filter: the text is not JSON'],
    ['aggregate', { pipeline: 'db.docs.find()' }, 'pipeline: the text is not JSON'],
    ['count', { query: '[1]' }, 'query: must be an object.'],
    ['explain', { method: 'find' }, 'method: the text is not JSON'],
    ['explain', { method: [{ name: 'find', arguments: '{"filter": {}}' }] }, 'method[0].arguments: must be an object.'],
    ['export', { exportTarget: 'find' }, 'exportTarget: the text is not JSON'],
    ['find', { limit: 'ten' }, 'limit: '],
    ['aggregate', { pipeline: [{ $mach: {} }] }, 'pipeline[0].$mach: "$mach" is no stage that this server knows'],
    ['aggregate-db', { collection: undefined, pipeline: [{ $document: [] }] }, 'did you mean $documents?'],
    ['export', { exportTarget: [{ name: 'aggregate', arguments: { pipeline: [{ $grup: {} }] } }] }, 'did you mean $group?'],
    ['explain', { method: [{ name: 'aggregate', arguments: { pipeline: [{ $mach: {} }] } }] }, 'did you mean $match?'],
    ['collection-schema', { sampleSize: 'all' }, 'sampleSize: '],
    ['list-collections', { database: ['app'], collection: undefined }, 'database: '],
    ['disconnect', { database: undefined, collection: undefined, connectionId: 7 }, 'connectionId: '],
  ])('that cannot be read by %s %j are one short sentence', async (tool, args, message) => {
    const { isError, structuredContent: answer } = await server.callRaw(tool, { ...on, ...args });
    expect(isError).toBe(true);
    expect(answer.error.message).toContain(message);
    expect(answer.error.message.length).toBeLessThan(220);
    expect(answer.error.message).not.toContain('\n');
    expect(answer.error.databaseState).toBe('Nothing was sent to the database.');
  });
});

describe('pipelines of the tools that read', () => {
  const pipelined = (pipeline: object[]): [string, Record<string, unknown>][] => [
    ['aggregate', { pipeline }],
    ['explain', { method: [{ name: 'aggregate', arguments: { pipeline } }] }],
    ['export', { exportTarget: [{ name: 'aggregate', arguments: { pipeline } }] }],
    ['aggregate-db', { collection: undefined, pipeline: [{ $documents: [{}] }, ...pipeline] }],
  ];
  const writing = [[{ $out: 't' }], [{ $out: { db: 'other', coll: 't' } }], [{ $out: '' }], [{ $merge: { into: 't' } }], [{ $facet: { a: [{ $out: 't' }] } }], [{ $lookup: { from: 'docs', pipeline: [{ $merge: 't' }], as: 'r' } }], [{ $unionWith: { coll: 'docs', pipeline: [{ $out: 't' }] } }], [{ $match: {}, $out: 't' }]];

  it.each(writing.flatMap(pipelined))('write nothing: %s %j (D20)', async (tool, args) => {
    const rows = await profiled(async () => {
      const { isError, structuredContent: answer } = await server.callRaw(tool, { ...on, ...args });
      expect(isError).toBe(true);
      expect(answer.error).toMatchObject({ code: 'refused_by_policy', databaseState: 'Nothing was sent to the database.' });
    });
    expect(rows).toEqual([]);
    for (const name of ['app', 'other']) expect(await mongo.client.db(name).listCollections({ name: 't' }).toArray()).toEqual([]);
  });

  it('write nothing as an export where writes are allowed, either (D20)', async () => {
    expect(await strict.call('export', { ...on, exportTarget: [{ name: 'aggregate', arguments: { pipeline: [{ $out: 't' }] } }] })).toMatchObject({ error: { code: 'refused_by_policy' } });
    expect(await mongo.client.db('app').listCollections({ name: 't' }).toArray()).toEqual([]);
  });

  it.each(pipelined([{ $changeStream: {} }]))('have an end, whatever the operator allows: %s %j (D30)', async (tool, args) => {
    const pipeline = tool === 'aggregate-db' ? { pipeline: [{ $changeStream: {} }] } : {};
    const answer = await strict.call(tool, { ...on, ...args, ...pipeline });
    expect(answer.error).toMatchObject({ code: 'refused_by_policy', message: expect.stringContaining('never ends'), databaseState: 'Nothing was sent to the database.' });
    expect(answer.next).toContain('no option');
  });

  it('on a database that cannot give what they ask get the reason of the server (D21)', async () => {
    expect(await strict.call('aggregate-db', { database: 'app', pipeline: [{ $currentOp: {} }] })).toMatchObject({ outcome: 'failed', error: { serverCode: 73, message: expect.stringContaining('$currentOp must be run against the \'admin\' database') } });
    expect(await strict.call('aggregate', { ...on, pipeline: [{ $documents: [{}] }] })).toMatchObject({ outcome: 'failed', error: { serverCode: 73 } });
    expect((await strict.call('aggregate-db', { database: 'admin', pipeline: [{ $currentOp: {} }] })).documents.length).toBeGreaterThan(0);
  });
});
