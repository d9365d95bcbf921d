/** A view may not show what its reader may not ask for itself; and names of collections are only names (cases D20, D22). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pipelineCases, pipelineJson } from '../support/cases.js';
import { type Checked, startChecked } from '../support/checked.js';
import { canonical, readCanonical } from '../support/exact.js';
import type { TestServer } from '../support/server.js';

let rig: Checked;
let internal: TestServer;
let javascript: TestServer;
const js = { $function: { body: 'function(){return 1}', args: [], lang: 'js' } };
const oplog = { $lookup: { from: { db: 'local', coll: 'oplog.rs' }, as: 'writes', pipeline: [{ $limit: 1 }] } };
type View = [name: string, on: string, pipeline: object[], switches: string[], place: string];
/** Views that hide something: what they read, and the switches that allow it. */
const hiding: View[] = [
  ['oplog', 'source', [oplog], ['--allow-internal'], 'the view app.oplog[0].$lookup.from'],
  ['code', 'source', [{ $set: { x: js } }], ['--allow-js'], 'the view app.code[0].$set.x.$function'],
  ['codeInMatch', 'source', [{ $match: { $expr: js } }], ['--allow-js'], 'the view app.codeInMatch[0].$match.$expr.$function'],
  ['codeInLookup', 'source', [{ $lookup: { as: 'd', pipeline: [{ $documents: [{ x: js }] }] } }], ['--allow-js'], 'the view app.codeInLookup[0].$lookup.pipeline[0].$documents[0].x.$function'],
  ['profile', 'system.profile', [], ['--allow-internal'], 'the view app.profile'],
  ['definitions', 'source', [{ $unionWith: 'system.views' }], ['--allow-internal'], 'the view app.definitions[0].$unionWith'],
  ['plans', 'source', [{ $planCacheStats: {} }], ['--allow-internal'], 'the view app.plans[0].$planCacheStats'],
  ['overCode', 'code', [], ['--allow-js'], 'the view app.code[0].$set.x.$function'],
  ['overOverCode', 'overCode', [{ $match: {} }], ['--allow-js'], 'the view app.code[0].$set.x.$function'],
  ['joinsOplog', 'source', [{ $lookup: { from: 'oplog', as: 'o', pipeline: [] } }], ['--allow-internal'], 'the view app.oplog[0].$lookup.from'],
];

beforeAll(async () => {
  rig = await startChecked();
  internal = await rig.another({ args: ['--allow-internal'] });
  javascript = await rig.another({ args: ['--allow-js'] });
  const db = rig.mongo.client.db('app');
  await db.collection<{ _id: number; a: number }>('source').insertMany([{ _id: 1, a: 1 }, { _id: 2, a: 2 }]);
  await db.createCollection('normal', { viewOn: 'source', pipeline: [{ $match: { a: { $gt: 1 } } }, { $set: { literal: { $literal: js } } }] });
  await db.createCollection('overNormal', { viewOn: 'normal', pipeline: [{ $project: { a: 1 } }] });
  for (const [name, viewOn, pipeline] of hiding) await db.createCollection(name, { viewOn, pipeline });
  await db.createCollection('series', { timeseries: { timeField: 'at' } });
  await db.collection('series').insertOne({ at: new Date(0), n: 1 });
});
afterAll(async () => {
  await rig.stop();
});

const run = (collection: string, pipeline: unknown = [], more: object = {}) => rig.server.call('run', { database: 'app', collection, pipeline, ...more });

describe('a view', () => {
  it.each(hiding)('that hides what its reader may not ask for is refused: %s', async (name, _on, _pipeline, switches, place) => {
    const body = await run(name);
    expect(body.error).toMatchObject({ code: 'refused_by_policy', path: place, databaseState: 'Nothing was sent to the database.' });
    expect(body.next).toContain(switches[0]);
  });

  it.each([
    ['$lookup', [{ $lookup: { from: 'code', as: 'x', pipeline: [] } }]],
    ['$lookup by fields', [{ $lookup: { from: 'code', as: 'x', localField: 'a', foreignField: 'a' } }]],
    ['$unionWith', [{ $unionWith: 'overCode' }]],
    ['$graphLookup', [{ $graphLookup: { from: 'overOverCode', startWith: '$a', connectFromField: 'a', connectToField: 'a', as: 'x' } }]],
    ['$facet', [{ $facet: { f: [{ $lookup: { from: 'code', as: 'x', pipeline: [] } }] } }]],
    ['a nested pipeline', [{ $unionWith: { coll: 'normal', pipeline: [{ $lookup: { from: 'code', as: 'x', pipeline: [] } }] } }]],
  ])('that hides JavaScript is refused behind %s as well', async (_where, pipeline) => {
    expect((await run('source', pipeline)).error).toMatchObject({ code: 'refused_by_policy', path: 'the view app.code[0].$set.x.$function' });
  });

  it('that reads no more than its reader may is read, over other views too', async () => {
    expect(await run('normal')).toMatchObject({ outcome: 'succeeded', documents: [{ _id: 2, a: 2, literal: js }] });
    expect(await run('overNormal')).toMatchObject({ outcome: 'succeeded', documents: [{ _id: 2, a: 2 }] });
    expect(await run('source', [{ $unionWith: 'overNormal' }, { $count: 'n' }])).toMatchObject({ documents: [{ n: 3 }] });
    expect(await run('series', [{ $project: { _id: 0 } }])).toMatchObject({ documents: [{ at: { $date: '1970-01-01T00:00:00Z' }, n: 1 }] });
  });

  it.each(hiding)('is read where the operator allows what it holds, and only there: %s', async (name, _on, _pipeline, switches) => {
    const [allowed, other] = switches[0] === '--allow-js' ? [javascript, internal] : [internal, javascript];
    expect(await allowed.call('run', { database: 'app', collection: name, pipeline: [] })).toMatchObject({ outcome: 'succeeded' });
    expect((await other.call('run', { database: 'app', collection: name, pipeline: [] })).error.code).toBe('refused_by_policy');
  });

  it('that changes is judged by what it is now', async () => {
    const db = rig.mongo.client.db('app');
    await db.createCollection('changing', { viewOn: 'source', pipeline: [] });
    expect(await run('changing')).toMatchObject({ outcome: 'succeeded', returned: 2 });
    await db.command({ collMod: 'changing', viewOn: 'source', pipeline: [{ $set: { x: js } }] });
    expect((await run('changing')).error.code).toBe('refused_by_policy');
  });
});

describe('names of collections', () => {
  const odd = pipelineCases().find(({ name }) => name.startsWith('17'));
  if (odd === undefined) throw new Error('no case 17');

  it('of any script and punctuation are read and joined, thirteen of them (D22)', async () => {
    const db = rig.mongo.client.db('odd');
    for (const { collection, docs } of odd.setup) await db.collection(collection).insertMany(docs);
    for (const { collection, docs } of odd.setup) {
      const answer = await rig.server.call('run', { database: 'odd', collection, pipeline: [], canonical: true });
      expect(answer).toMatchObject({ outcome: 'succeeded', database: 'odd', collection, returned: 1 });
      expect(canonical(readCanonical(answer.documents))).toEqual(canonical(docs));
    }
    const all = await rig.server.call('run', { database: 'odd', collection: odd.collection, pipeline: pipelineJson(odd.name).pipeline, canonical: true });
    expect(canonical(readCanonical(all.documents))).toEqual(canonical(odd.expected));
    expect(all.documents[0].rows).toEqual({ $numberInt: '13' });
  });

  it.each([
    ['odd', 'pay$load', 'collection'],
    ['odd', 'a\0b', 'collection'],
    ['a.b', 'c', 'database'],
    ['a b', 'c', 'database'],
    ['$external', 'c', 'database'],
    ['d'.repeat(64), 'c', 'database'],
  ])('that no database can have are refused by their place: %s %s', async (database, collection, path) => {
    expect((await rig.server.call('run', { database, collection, pipeline: [] })).error).toMatchObject({ code: 'bad_argument', path });
  });

  it('that nothing has are empty and not an error, as in MongoDB', async () => {
    expect(await run('nothing here')).toMatchObject({ outcome: 'succeeded', documents: [], more: false });
    expect(await rig.server.call('run', { database: 'no such database', collection: 'x', pipeline: [] })).toMatchObject({ error: { code: 'bad_argument' } });
    expect(await rig.server.call('run', { database: 'nosuchdatabase', collection: 'x', pipeline: [] })).toMatchObject({ outcome: 'succeeded', documents: [] });
  });
});
