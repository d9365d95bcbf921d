/** A server that only reads, runs no JavaScript and shows nobody else's work, unless its operator says so (cases D20, D21, D30). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pipelineCases, pipelineJson } from '../support/cases.js';
import { type Checked, startChecked } from '../support/checked.js';
import { canonical, readCanonical } from '../support/exact.js';
import type { TestServer } from '../support/server.js';

let rig: Checked;
let writing: TestServer;
let internal: TestServer;
let javascript: TestServer;
const js = { $function: { body: 'function(){return true}', args: [], lang: 'js' } };
const accumulator = { $accumulator: { init: 'function(){return 0}', accumulate: 'function(a){return a+1}', accumulateArgs: [], merge: 'function(a,b){return a+b}', lang: 'js' } };
type Row = { _id: number; [field: string]: unknown };

beforeAll(async () => {
  rig = await startChecked();
  writing = await rig.another({ args: ['--allow-writes'] });
  internal = await rig.another({ args: ['--allow-internal'] });
  javascript = await rig.another({ args: ['--allow-js'] });
  const db = rig.mongo.client.db('app');
  await db.collection<Row>('source').insertMany([{ _id: 1, a: 1 }, { _id: 2, a: 2 }]);
  await db.command({ create: 'profiled' });
});
afterAll(async () => {
  await rig.stop();
});

const on = (collection: string | undefined, pipeline: unknown, more: object = {}) => ({ database: 'app', ...(collection === undefined ? {} : { collection }), pipeline, ...more });
const collectionsOf = async (database: string) => (await rig.mongo.client.db(database).listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name).sort();

/** Checks that the call is refused, and that the database saw nothing of it in the database that is profiled. */
async function expectRefused(server: TestServer, args: Record<string, unknown>, code: string, path?: string): Promise<any> {
  const db = rig.mongo.client.db('app');
  await db.command({ profile: 2 });
  const { isError, structuredContent: body } = await server.callRaw('run', args);
  await db.command({ profile: 0 });
  const seen = await db.collection('system.profile').countDocuments({ 'command.comment': { $regex: '^mongo-leash\\.1\\.' } });
  await db.collection('system.profile').drop();
  expect(isError).toBe(true);
  expect(body.error, JSON.stringify(body)).toMatchObject({ code, databaseState: 'Nothing was sent to the database.', ...(path === undefined ? {} : { path }) });
  expect(seen).toBe(0);
  return body;
}

describe('a server that only reads', () => {
  it.each([
    ['$out to a name', [{ $out: 't' }], 'pipeline[0].$out'],
    ['$out to another database', [{ $out: { db: 'other', coll: 't' } }], 'pipeline[0].$out'],
    ['$out to nothing', [{ $out: '' }], 'pipeline[0].$out'],
    ['$out of null', [{ $out: null }], 'pipeline[0].$out'],
    ['$merge', [{ $merge: { into: 't' } }], 'pipeline[0].$merge'],
    ['$merge to a name', [{ $match: {} }, { $merge: 't' }], 'pipeline[1].$merge'],
    ['$merge to another database', [{ $merge: { into: { db: 'other', coll: 't' } } }], 'pipeline[0].$merge'],
    ['$merge in $lookup', [{ $lookup: { from: 'source', pipeline: [{ $merge: { into: 't' } }], as: 'x' } }], 'pipeline[0].$lookup.pipeline[0].$merge'],
    ['$out in $facet', [{ $facet: { a: [{ $match: {} }, { $out: 't' }] } }], 'pipeline[0].$facet.a[1].$out'],
    ['$merge in $unionWith', [{ $unionWith: { coll: 'source', pipeline: [{ $merge: 't' }] } }], 'pipeline[0].$unionWith.pipeline[0].$merge'],
    ['$out in the middle', [{ $out: 't' }, { $match: {} }], 'pipeline[0].$out'],
    ['$out as the second key', [{ $match: {}, $out: 't' }], 'pipeline[0].$out'],
    ['$merge as the first key', [{ $merge: 't', $match: {} }], 'pipeline[0].$merge'],
  ])('refuses a write before the database is asked: %s (D20)', async (_what, pipeline, path) => {
    const body = await expectRefused(rig.server, on('source', pipeline), 'refused_by_policy', path);
    expect(body.next).toContain('--allow-writes');
    expect(await collectionsOf('app')).not.toContain('t');
    expect(await collectionsOf('other')).toEqual([]);
  });

  it.each([
    ['a stage that nobody knows', [{ $archive: { into: 't' } }]],
    ['an internal stage', [{ $_internalInhibitOptimization: {} }]],
    ['an internal stage that writes', [{ $_internalOutToDifferentDB: { db: 'other', coll: 't' } }]],
    ['a stage as text in a text pipeline', '[{"$out": "t"}]'],
    ['one stage without its array', { $out: 't' }],
  ])('refuses what could be a write: %s (D20)', async (_what, pipeline) => {
    await expectRefused(rig.server, on('source', pipeline), 'refused_by_policy');
    expect(await collectionsOf('app')).not.toContain('t');
  });
});

describe('a server that may write', () => {
  it('runs $out and $merge, and says what was written (D20)', async () => {
    const { client } = rig.mongo;
    const out = await writing.call('run', on('source', [{ $set: { b: 1 } }, { $out: { db: 'other', coll: 't' } }]));
    expect(out).toMatchObject({ outcome: 'succeeded', documents: [], writes: { stage: '$out', target: 'other.t', effects: 'other.t holds the result now.' }, next: 'other.t holds the result now.' });
    expect(await client.db('other').collection('t').find().sort({ _id: 1 }).toArray()).toEqual([{ _id: 1, a: 1, b: 1 }, { _id: 2, a: 2, b: 1 }]);
    const merge = await writing.call('run', on('source', [{ $match: { _id: 1 } }, { $merge: { into: 'merged', whenMatched: 'replace' } }]));
    expect(merge).toMatchObject({ outcome: 'succeeded', writes: { stage: '$merge', target: 'app.merged', effects: expect.stringContaining('merged into app.merged') } });
    expect(await client.db('app').collection('merged').find().toArray()).toEqual([{ _id: 1, a: 1 }]);
    await client.db('other').dropDatabase();
    await client.db('app').collection('merged').drop();
  });

  it.each([
    ['within a stage', [{ $lookup: { from: 'source', pipeline: [{ $merge: 't' }], as: 'x' } }], 'bad_argument'],
    ['before the end', [{ $out: 't' }, { $match: {} }], 'bad_argument'],
    ['to a database of the server', [{ $out: { db: 'admin', coll: 't' } }], 'refused_by_policy'],
    ['to a collection of the server', [{ $merge: { into: 'system.views' } }], 'refused_by_policy'],
    ['to nothing', [{ $out: '' }], 'bad_argument'],
    ['beside another stage', [{ $match: {}, $out: 't' }], 'bad_argument'],
    ['to a bucket outside', [{ $out: { s3: { bucket: 'b', filename: 'f' } } }], 'refused_by_policy'],
    ['with JavaScript in whenMatched', [{ $merge: { into: 't', whenMatched: [{ $set: { x: js } }] } }], 'refused_by_policy'],
    ['with JavaScript in let', [{ $merge: { into: 't', let: { x: js }, whenMatched: [] } }], 'refused_by_policy'],
  ])('still refuses one %s (D20)', async (_what, pipeline, code) => {
    await expectRefused(writing, on('source', pipeline), code);
    expect(await collectionsOf('app')).not.toContain('t');
  });
});

describe("the server's own collections", () => {
  const own: [string, Record<string, unknown>, string][] = [
    ['the database admin', { database: 'admin', collection: 'system.users', pipeline: [] }, 'database'],
    ['the database local', { database: 'local', collection: 'oplog.rs', pipeline: [] }, 'database'],
    ['the database config', { database: 'config', collection: 'transactions', pipeline: [] }, 'database'],
    ['a database spelt otherwise', { database: 'Local', collection: 'oplog.rs', pipeline: [] }, 'database'],
    ['system.profile', on('system.profile', []), 'collection'],
    ['$unionWith of system.views', on('source', [{ $unionWith: 'system.views' }]), 'pipeline[0].$unionWith'],
    ['$unionWith of system.views with a pipeline', on('source', [{ $unionWith: { coll: 'system.views', pipeline: [] } }]), 'pipeline[0].$unionWith'],
    ['$lookup of system.views', on('source', [{ $lookup: { from: 'system.views', as: 'x', pipeline: [] } }]), 'pipeline[0].$lookup.from'],
    ['$lookup of the oplog', on('source', [{ $lookup: { from: { db: 'local', coll: 'oplog.rs' }, as: 'x', pipeline: [] } }]), 'pipeline[0].$lookup.from'],
    ['$graphLookup of system.views', on('source', [{ $graphLookup: { from: 'system.views', startWith: '$a', connectFromField: 'a', connectToField: 'a', as: 'x' } }]), 'pipeline[0].$graphLookup.from'],
    ['$lookup within $facet', on('source', [{ $facet: { a: [{ $lookup: { from: { db: 'config', coll: 'x' }, as: 'x', pipeline: [] } }] } }]), 'pipeline[0].$facet.a[0].$lookup.from'],
  ];
  const others: [string, Record<string, unknown>, string][] = [
    ['$currentOp', { database: 'admin', pipeline: [{ $currentOp: {} }] }, 'database'],
    ['$currentOp elsewhere', on(undefined, [{ $currentOp: { allUsers: true } }]), 'pipeline[0].$currentOp'],
    ['$listLocalSessions', on(undefined, [{ $listLocalSessions: { allUsers: true } }]), 'pipeline[0].$listLocalSessions'],
    ['$listSessions', { database: 'config', collection: 'system.sessions', pipeline: [{ $listSessions: { allUsers: true } }] }, 'database'],
    ['$planCacheStats', on('source', [{ $planCacheStats: {} }]), 'pipeline[0].$planCacheStats'],
    ['$planCacheStats within $unionWith', on('source', [{ $unionWith: { coll: 'source', pipeline: [{ $planCacheStats: {} }] } }]), 'pipeline[0].$unionWith.pipeline[0].$planCacheStats'],
    ['$listCatalog', on('source', [{ $listCatalog: {} }]), 'pipeline[0].$listCatalog'],
  ];

  it.each([...own, ...others])('and what shows the work of others are refused: %s (D21)', async (_what, args, path) => {
    const body = await expectRefused(rig.server, args, 'refused_by_policy', path);
    expect(body.next).toContain('--allow-internal');
  });

  it.each([...own.slice(1, 2), ...own.slice(3), ...others.slice(0, 1), ...others.slice(2, 5)])('are open where the operator allows it: %s (D21)', async (_what, args) => {
    const answer = await internal.call('run', args);
    // A database that is spelt otherwise is another one, which the server does not have.
    expect(['succeeded', 'failed']).toContain(answer.outcome);
    if (answer.outcome === 'failed') expect(answer.error).toMatchObject({ code: 'operation_failed', serverCode: expect.any(Number) });
    else expect(answer.documents).toBeInstanceOf(Array);
  });

  it('show the oplog and the operations of others only with --allow-internal', async () => {
    const oplog = await internal.call('run', { database: 'local', collection: 'oplog.rs', pipeline: [{ $match: { ns: 'app.source' } }, { $limit: 1 }] });
    expect(oplog).toMatchObject({ outcome: 'succeeded', returned: 1 });
    const current = await internal.call('run', { database: 'admin', pipeline: [{ $currentOp: {} }] });
    expect(current.documents.some((row: any) => String(row.command?.comment).includes(current.operationId))).toBe(true);
    // Writes and JavaScript are other switches.
    await expectRefused(internal, on('source', [{ $out: 't' }]), 'refused_by_policy');
    await expectRefused(internal, on('source', [{ $match: { $expr: js } }]), 'refused_by_policy');
    await expectRefused(internal, on('source', [{ $_internalInhibitOptimization: {} }]), 'refused_by_policy');
  });
});

describe('JavaScript in the database', () => {
  const places: [string, Record<string, unknown>, string][] = [
    ['$match', on('source', [{ $match: { $expr: js } }]), 'pipeline[0].$match.$expr.$function'],
    ['$where', on('source', [{ $match: { $where: 'true' } }]), 'pipeline[0].$match.$where'],
    ['$where below $or', on('source', [{ $match: { $or: [{ a: 1 }, { $where: 'true' }] } }]), 'pipeline[0].$match.$or[1].$where'],
    ['$where below $not', on('source', [{ $match: { $nor: [{ $and: [{ $where: 'true' }] }] } }]), 'pipeline[0].$match.$nor[0].$and[0].$where'],
    ['$project', on('source', [{ $project: { x: { $cond: [true, js, 1] } } }]), 'pipeline[0].$project.x.$cond[1].$function'],
    ['$group', on('source', [{ $group: { _id: null, n: accumulator } }]), 'pipeline[0].$group.n.$accumulator'],
    ['$facet', on('source', [{ $facet: { a: [{ $set: { x: js } }] } }]), 'pipeline[0].$facet.a[0].$set.x.$function'],
    ['$lookup', on('source', [{ $lookup: { from: 'source', let: { x: js }, pipeline: [], as: 'x' } }]), 'pipeline[0].$lookup.let.x.$function'],
    ['$graphLookup', on('source', [{ $graphLookup: { from: 'source', startWith: '$a', connectFromField: 'a', connectToField: 'a', as: 'x', restrictSearchWithMatch: { $expr: js } } }]), 'pipeline[0].$graphLookup.restrictSearchWithMatch.$expr.$function'],
    ['let', on('source', [{ $match: { $expr: { $eq: ['$$q', true] } } }], { let: { q: js } }), 'let.q.$function'],
    ['$documents', on(undefined, [{ $documents: [{ x: js }] }]), 'pipeline[0].$documents[0].x.$function'],
    ['a Code value', on('source', [{ $match: { a: { $code: 'function(){}' } } }]), 'pipeline[0].$match.a'],
  ];

  it.each(places)('is refused in %s', async (_where, args, path) => {
    const body = await expectRefused(rig.server, args, 'refused_by_policy', path);
    expect(body.next).toContain('--allow-js');
  });

  it.each(places)('in %s is left to the database where the operator allows it', async (where, args) => {
    const answer = await javascript.call('run', args);
    // No aggregation of any version takes $where; the server says so itself.
    if (where.startsWith('$where')) expect(answer.error).toMatchObject({ code: 'operation_failed', message: expect.stringContaining('$where is not allowed') });
    else expect(answer.outcome).toBe('succeeded');
  });

  it('is not what is only named so: fields and literals are data', async () => {
    const { documents } = await rig.server.call('run', on('source', [{ $limit: 1 }, { $project: { _id: 0, function: '$a', where: { $literal: js } } }]));
    expect(documents).toEqual([{ function: 1, where: js }]);
  });
});

describe('a pipeline on the database', () => {
  it('gives the rows that it makes itself (D21)', async () => {
    const found = pipelineCases().find(({ name }) => name.startsWith('18'));
    const answer = await rig.server.call('run', { ...on(undefined, pipelineJson(found?.name ?? '').pipeline), canonical: true });
    expect(answer.returned).toBe(3);
    expect(canonical(readCanonical(answer.documents))).toEqual(canonical(found?.expected));
  });

  it("in the wrong place is answered with the server's own reason (D21)", async () => {
    expect((await rig.server.call('run', on('source', [{ $documents: [{ a: 1 }] }]))).error).toMatchObject({ code: 'operation_failed', serverCode: 73, message: expect.stringContaining('$documents') });
    expect((await internal.call('run', on(undefined, [{ $currentOp: {} }]))).error).toMatchObject({ code: 'operation_failed', serverCode: 73, message: expect.stringContaining('$currentOp') });
  });
});
