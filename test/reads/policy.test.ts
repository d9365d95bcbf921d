/** What the policy refuses is refused in every argument of the query tools, before anything is sent; and what is sent is what was written (cases D13, D14, D17, D18, D20, D24). */
import { type Document, ObjectId } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;
let writing: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  server = await startServer({ uri: mongo.uri });
  writing = await startServer({ uri: mongo.uri, args: ['--allow-writes'] });
  const db = mongo.client.db('app');
  const id = new ObjectId('507f1f77bcf86cd799439011');
  await db.collection<Document>('docs').insertMany([{ _id: id, name: 'acme', d: new Date('2024-06-01') }, { _id: '507f1f77bcf86cd799439011' as unknown as ObjectId, name: '/acme/i', a: null }, { _id: 3 as unknown as ObjectId, name: 'Acorn', d: new Date('2020-01-01'), a: 1 }]);
  await db.createCollection('hiding', { viewOn: 'docs', pipeline: [{ $lookup: { from: 'system.views', pipeline: [], as: 'r' } }] });
});
afterAll(async () => {
  await Promise.all([server.close(), writing.close()]);
  await mongo.stop();
});

const on = { database: 'app', collection: 'docs' };
const javascript = { $expr: { $function: { body: 'function(){return true}', args: [], lang: 'js' } } };
const where = { $where: 'true' };
const explain = (name: string, args: object) => ({ method: [{ name, arguments: args }], verbosity: 'executionStats' });

describe('refused by the policy, with its place, and nothing sent', () => {
  it.each([
    ['aggregate', { pipeline: [{ $match: where }] }, 'pipeline[0].$match.$where'],
    ['aggregate', { pipeline: [{ $out: 't' }] }, 'pipeline[0].$out'],
    ['aggregate', { pipeline: [{ $out: '' }] }, 'pipeline[0].$out'],
    ['aggregate', { pipeline: [{ $merge: { into: 't' } }] }, 'pipeline[0].$merge'],
    ['aggregate', { pipeline: [{ $match: {}, $out: 't' }] }, 'pipeline[0].$out'],
    ['aggregate', { pipeline: [{ $facet: { a: [{ $out: 't' }] } }] }, 'pipeline[0].$facet.a[0].$out'],
    ['aggregate', { pipeline: [{ $lookup: { from: { db: 'local', coll: 'oplog.rs' }, pipeline: [], as: 'r' } }] }, 'pipeline[0].$lookup.from'],
    ['aggregate', { pipeline: [], collation: { locale: 'en', x: javascript } }, 'collation.x.$expr.$function'],
    ['aggregate', { database: 'admin', pipeline: [] }, 'database'],
    ['aggregate', { collection: 'system.views', pipeline: [] }, 'collection'],
    ['aggregate', { collection: 'hiding', pipeline: [] }, undefined],
    ['aggregate-db', { collection: undefined, pipeline: [{ $documents: [{}] }, { $merge: 't' }] }, 'pipeline[1].$merge'],
    ['aggregate-db', { collection: undefined, database: 'admin', pipeline: [{ $currentOp: {} }] }, 'database'],
    ['aggregate-db', { collection: undefined, pipeline: [{ $listLocalSessions: {} }] }, 'pipeline[0].$listLocalSessions'],
    ['find', { filter: where }, 'filter.$where'],
    ['find', { filter: { $or: [javascript, { a: 1 }] } }, 'filter.$or[0].$expr.$function'],
    ['find', { projection: { x: javascript.$expr } }, 'projection.x.$function'],
    ['find', { sort: { a: { $meta: { $function: 1 } } } }, 'sort.a.$meta.$function'],
    ['find', { database: 'config', collection: 'transactions' }, 'database'],
    ['find', { database: 'local', collection: 'oplog.rs' }, 'database'],
    ['find', { collection: 'system.profile' }, 'collection'],
    ['find', { collection: 'hiding' }, undefined],
    ['count', { query: where }, 'query.$where'],
    ['count', { database: 'admin', collection: 'x' }, 'database'],
    ['count', { collection: 'hiding' }, undefined],
    ['distinct', { field: 'a', query: javascript }, 'query.$expr.$function'],
    ['distinct', { field: 'a', collection: 'system.views' }, 'collection'],
    ['distinct', { field: 'a', collection: 'hiding' }, undefined],
    ['explain', explain('aggregate', { pipeline: [{ $match: javascript }] }), 'pipeline[0].$match.$expr.$function'],
    ['explain', explain('aggregate', { pipeline: [{ $out: 't' }] }), 'pipeline[0].$out'],
    ['explain', explain('find', { filter: where }), 'filter.$where'],
    ['explain', explain('find', { projection: { x: javascript.$expr } }), 'projection.x.$function'],
    ['explain', explain('count', { query: where }), 'query.$where'],
    ['explain', explain('distinct', { field: 'a', query: where }), 'query.$where'],
    ['explain', { ...explain('find', {}), collection: 'hiding' }, undefined],
    ['explain', { ...explain('find', {}), database: 'admin' }, 'database'],
  ])('%s %j', async (tool, args, path) => {
    const answer = await server.callRaw(tool, { ...on, ...args });
    expect(answer).toMatchObject({ isError: true, structuredContent: { error: { code: 'refused_by_policy' } } });
    if (path !== undefined) expect(answer.structuredContent.error.path).toBe(path);
    expect(await mongo.client.db('app').listCollections({ name: 't' }).toArray()).toEqual([]);
  });
});

describe('with writes allowed', () => {
  it('aggregate and aggregate-db write, and say what', async () => {
    const out = await writing.call('aggregate', { ...on, pipeline: [{ $out: 'copy' }] });
    expect(out).toMatchObject({ documents: [], appliedLimits: [], outcome: 'succeeded', writes: { stage: '$out', target: 'app.copy', effects: expect.any(String) } });
    expect(await mongo.client.db('app').collection('copy').countDocuments()).toBe(3);
    const merged = await writing.call('aggregate-db', { database: 'app', pipeline: [{ $documents: [{ _id: 9 }] }, { $merge: 'copy' }] });
    expect(merged).toMatchObject({ documents: [], writes: { stage: '$merge', target: 'app.copy' } });
    expect(await mongo.client.db('app').collection('copy').countDocuments()).toBe(4);
    expect(await writing.call('aggregate', { ...on, pipeline: [{ $out: 'copy' }], count: true })).toMatchObject({ error: { code: 'bad_argument', path: 'count' } });
  });

  it('an explain of what writes writes nothing', async () => {
    expect(await writing.call('explain', { ...on, ...explain('aggregate', { pipeline: [{ $out: 'explained' }] }) })).toHaveProperty('explainResult');
    expect(await mongo.client.db('app').listCollections({ name: 'explained' }).toArray()).toEqual([]);
  });

  it('the list says that these two may write, and without it that they only read', async () => {
    const hints = async (of: TestServer) => Object.fromEntries((await of.client.listTools()).tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint]));
    expect(await hints(writing)).toMatchObject({ aggregate: false, 'aggregate-db': false, find: true });
    expect(await hints(server)).toMatchObject({ aggregate: true, 'aggregate-db': true, find: true, count: true, distinct: true, explain: true });
  });
});

describe('an argument that says what cannot be sent, or what nobody means, is an error that says what to send:', () => {
  it.each([
    ['find', { limit: 0 }, 'limit: must be at least 1.'],
    ['find', { limit: -3 }, 'limit: must be at least 1.'],
    ['find', { limit: 1.5 }, 'limit: must be a whole number.'],
    ['find', { skip: -1 }, 'skip: must be at least 0.'],
    ['find', { sort: { a: 0 } }, 'sort: the direction of "a" must be 1, -1'],
    ['find', { sort: { a: 1, '2': 1 } }, 'sort: the order of keys is lost here'],
    ['find', { hint: { a: 1, '2': 1 } }, 'hint: the order of keys is lost here'],
    ['find', { filter: { _id: { $oid: 'nonsense' } } }, 'filter._id'],
    ['find', { filter: { n: 9007199254740993 } }, 'filter.n'],
    ['find', { filter: { a: { $undefined: true } } }, 'filter.a'],
    ['find', { filter: { name: { $regex: 'x', $options: 'g' } } }, 'filter.name.$options'],
    ['find', { filter: [] }, 'filter: must be an object.'],
    ['find', { query: {} }, 'find has no argument "query". It takes connectionId, database, collection, filter'],
    ['find', { maxTimeMS: 0 }, 'maxTimeMS: must be at least 1.'],
    ['find', { maxTimeMS: 'soon' }, 'maxTimeMS:'],
    ['aggregate', { pipeline: [], limit: 0 }, 'limit: must be at least 1.'],
    ['aggregate', {}, 'aggregate needs the argument pipeline.'],
    ['aggregate', { pipeline: '[{' }, 'pipeline: the text is not JSON'],
    ['aggregate', { pipeline: [{ $mach: {} }] }, 'pipeline[0].$mach'],
    ['aggregate-db', { collection: undefined, pipeline: [] }, 'pipeline: must have a stage.'],
    ['count', { query: { n: { $numberLong: '99999999999999999999' } } }, 'query.n'],
    ['distinct', {}, 'distinct needs the argument field.'],
    ['distinct', { field: '' }, 'field: must not be empty.'],
    ['explain', { method: [] }, 'method: send one of aggregate, find, count, distinct'],
    ['explain', { method: [{ name: 'find', arguments: {} }, { name: 'count', arguments: {} }] }, 'method: send one of'],
    ['explain', { method: [{ name: 'update', arguments: {} }] }, 'method[0].name'],
    ['explain', { method: [{ name: 'find', arguments: { filterr: {} } }] }, 'explain of find has no argument "filterr"'],
    ['explain', { ...explain('find', {}), verbosity: 'all' }, 'verbosity'],
  ])('%s %j', async (tool, args, message) => {
    const answer = await server.callRaw(tool, { ...on, ...args });
    expect(answer).toMatchObject({ isError: true, structuredContent: { error: { code: expect.stringMatching(/^(bad_argument|refused_by_policy)$/), databaseState: 'Nothing was sent to the database.' } } });
    expect(answer.structuredContent.error.message).toContain(message);
  });

  it('a time limit over the ceiling is taken as the ceiling, and said', async () => {
    const low = await startServer({ uri: mongo.uri, args: ['--max-time-ms', '1000', '--max-time-ms-ceiling', '2000'] });
    expect(await low.call('count', { ...on, maxTimeMS: 5_000 })).toMatchObject({ count: 3, notes: ['maxTimeMS was 5000; this server allows at most 2000, which was used.'] });
    await low.close();
  });
});

describe('what is written is what is sent', () => {
  const found = async (filter: unknown) => (await server.call('find', { ...on, filter })).documents.map(({ name }: { name: string }) => name);

  it('an ObjectId, a date, a regular expression in every spelling (D13, D18)', async () => {
    expect(await found({ _id: { $oid: '507f1f77bcf86cd799439011' } })).toEqual(['acme']);
    expect(await found({ d: { $gte: { $date: '2024-01-01T00:00:00Z' } } })).toEqual(['acme']);
    expect(await found({ name: { $regex: '^ac', $options: 'i' } })).toEqual(['acme', 'Acorn']);
    expect(await found({ name: { $in: [{ $regularExpression: { pattern: '^ac', options: 'i' } }] } })).toEqual(['acme', 'Acorn']);
    expect(await found({ name: { $not: { $regex: '^a' } } })).toEqual(['/acme/i', 'Acorn']);
    expect(await found({ $expr: { $regexMatch: { input: '$name', regex: '^ac', options: 'i' } } })).toEqual(['acme', 'Acorn']);
    expect(await server.call('distinct', { ...on, field: 'name', query: { _id: { $oid: '507f1f77bcf86cd799439011' } } })).toMatchObject({ values: ['acme'] });
    expect(await server.call('count', { ...on, query: { d: { $gte: { $date: '2024-01-01T00:00:00Z' } } } })).toMatchObject({ count: 1 });
  });

  it('an id as text finds what has it as text, with a hint (D14)', async () => {
    const answer = await server.call('find', { ...on, filter: { _id: '507f1f77bcf86cd799439011' } });
    expect(answer.documents).toMatchObject([{ name: '/acme/i' }]);
    expect(answer.notes).toEqual([expect.stringContaining('{"$oid": "507f1f77bcf86cd799439011"}')]);
    expect((await server.call('count', { ...on, query: { _id: '507f1f77bcf86cd799439011' } })).notes).toHaveLength(1);
  });

  it('null is null or missing, and what is left out is no condition (D17)', async () => {
    expect(await found({ a: null })).toEqual(['acme', '/acme/i']);
    expect(await found(undefined)).toHaveLength(3);
  });

  it('text that holds JSON, a number or a truth value is read, and said (D24)', async () => {
    expect(await server.call('find', { ...on, filter: '{"a": 1}', projection: '{"name": 1}', sort: '{"name": 1}', limit: '10', canonical: 'false' })).toMatchObject({
      documents: [{ _id: 3, name: 'Acorn' }],
      notes: ['filter came as text and was read as JSON.', 'projection came as text and was read as JSON.', 'sort came as text and was read as JSON.', 'limit came as text and was read as the number 10.', 'canonical came as text and was read as false.'],
    });
    expect(await server.call('count', { ...on, query: '{"a": 1}' })).toMatchObject({ count: 1 });
    expect(await server.call('aggregate', { ...on, pipeline: { $match: { a: 1 } } })).toMatchObject({ count: 1, notes: ['pipeline came as one stage and was read as a pipeline of that stage.'] });
  });

  it('each tool sends the command that it says, with the tag and the time limit, and nothing else', async () => {
    const db = mongo.client.db('app');
    await db.command({ profile: 2 });
    const calls = [
      ['aggregate', { pipeline: [{ $match: { a: 1 } }] }, ['aggregate']],
      ['aggregate', { pipeline: [], limit: 1, count: true }, ['aggregate', 'aggregate']],
      ['find', { filter: { a: 1 } }, ['find']],
      ['count', { query: { a: 1 } }, ['aggregate']],
      ['distinct', { field: 'a' }, ['distinct']],
      ['explain', explain('find', {}), ['explain']],
    ] as const;
    for (const [tool, args, commands] of calls) {
      await server.call(tool, { ...on, ...args, comment: 'mine', maxTimeMS: 4_321 });
      const own = { $regex: `\\.n:${server.lastRequestId()} mine$` };
      const rows = await db.collection('system.profile').find({ 'command.comment': own }).sort({ ts: 1 }).toArray();
      expect(rows.map(({ command }) => [Object.keys(command)[0], command.maxTimeMS])).toEqual(commands.map((name) => [name, 4_321]));
    }
    await db.command({ profile: 0 });
  });
});
