import { BSONRegExp, Code, DBRef, EJSON, Long } from 'bson';
import { describe, expect, it } from 'vitest';
import { checkExpression, checkPipeline, type PolicySettings } from '../../src/domain/policy/pipeline-policy.js';

const readOnly: PolicySettings = { allowWrites: false, allowJs: false, allowInternal: false, extraStages: [] };
const withJs: PolicySettings = { ...readOnly, allowJs: true };
const on = { db: 'shop', coll: 'orders' };
const js = { $function: { body: 'function() { return 1 }', args: [], lang: 'js' } };
const error = (fields: object) => expect.objectContaining(fields);
const refusal = error({ code: 'refused_by_policy', message: expect.stringContaining('server-side JavaScript'), next: expect.stringContaining('--allow-js') });

const stages: [string, unknown][] = [
  ['$project', { $project: { a: js } }],
  ['an array in $project', { $project: { a: [1, [js]] } }],
  ['a nested field', { $set: { a: { b: { c: js } } } }],
  ['$match with $expr', { $match: { $expr: { $eq: [1, js] } } }],
  ['$where', { $match: { $where: 'true' } }],
  ['$where as code', { $match: { $where: new Code('true') } }],
  ['$where in $and', { $match: { $and: [{ a: 1 }, { $or: [{ $where: 'true' }] }] } }],
  ['$group keys', { $group: { _id: js } }],
  ['$group with $accumulator', { $group: { _id: 1, a: { $accumulator: { init: 'f' } } } }],
  ['$group with $_internalJsReduce', { $group: { _id: 1, a: { $_internalJsReduce: { data: 1, eval: 'f' } } } }],
  ['$_internalJsEmit', { $project: { a: { $_internalJsEmit: { eval: 'f', this: '$$ROOT' } } } }],
  ['$bucket', { $bucket: { groupBy: '$a', boundaries: [1, js], output: { a: { $accumulator: {} } } } }],
  ['$bucketAuto', { $bucketAuto: { groupBy: js, buckets: 1 } }],
  ['$setWindowFields partitions', { $setWindowFields: { partitionBy: js, output: {} } }],
  ['$setWindowFields outputs', { $setWindowFields: { output: { a: { $push: js } } } }],
  ['$fill', { $fill: { output: { a: { value: js } } } }],
  ['$redact', { $redact: js }],
  ['$replaceRoot', { $replaceRoot: { newRoot: js } }],
  ['$replaceWith', { $replaceWith: js }],
  ['$sortByCount', { $sortByCount: js }],
  ['$documents', { $documents: [{ a: js }] }],
  ['$sort', { $sort: { a: js } }],
  ['$geoNear', { $geoNear: { near: [0, 0], query: { $where: '1' } } }],
  ['$lookup.let', { $lookup: { from: 'a', as: 'b', let: { q: js }, pipeline: [] } }],
  ['$lookup.pipeline', { $lookup: { from: 'a', as: 'b', pipeline: [{ $set: { a: js } }] } }],
  ['$unionWith', { $unionWith: { coll: 'a', pipeline: [{ $set: { a: js } }] } }],
  ['$facet', { $facet: { x: [{ $set: { a: js } }] } }],
  ['$graphLookup.startWith', { $graphLookup: { from: 'a', startWith: js, as: 'b' } }],
  ['$graphLookup.restrictSearchWithMatch', { $graphLookup: { from: 'a', startWith: 1, restrictSearchWithMatch: { $expr: js } } }],
  ['$rankFusion', { $rankFusion: { input: { pipelines: { a: [{ $match: { $expr: js } }] } } } }],
  ['$scoreFusion', { $scoreFusion: { input: { pipelines: {} }, combination: { expression: js } } }],
  ['$score', { $score: { score: js } }],
  ['$let', { $set: { a: { $let: { vars: { q: js }, in: '$$q' } } } }],
  ['$map', { $set: { a: { $map: { input: [1], in: js } } } }],
  ['$switch', { $set: { a: { $switch: { branches: [{ case: true, then: js }] } } } }],
  ['a BSON Code value', { $set: { a: new Code('function() {}') } }],
  ['a BSON Code value with a scope', { $set: { a: [new Code('f', { x: 1 })] } }],
  ['a DBRef', { $match: { a: new DBRef('c', js as never) } }],
  ['the fields of a DBRef', { $match: { a: new DBRef('c', 1 as never, undefined, { x: js }) } }],
  ['an own __proto__ key', { $set: JSON.parse('{"__proto__": {"$function": {}}}') }],
];

describe('server-side JavaScript in a pipeline', () => {
  it.each(stages)('is refused in %s, and passes when it is allowed', (_where, stage) => {
    expect(() => checkPipeline([{ $match: {} }, stage], on, readOnly)).toThrow(refusal);
    checkPipeline([{ $match: {} }, stage], on, withJs);
  });

  it('is refused with its place', () => {
    const pipeline = [{ $set: { a: { $cond: [1, js, 2] } } }];
    expect(() => checkPipeline(pipeline, on, readOnly)).toThrow(error({ path: 'pipeline[0].$set.a.$cond[1].$function' }));
  });

  it('is refused as it comes from extended JSON', () => {
    const stage: unknown = EJSON.parse('{"$match": {"a": {"$code": "function() {}"}}}');
    expect(() => checkPipeline([stage], on, readOnly)).toThrow(refusal);
  });
});

describe('what only looks like JavaScript', () => {
  it.each([
    { $set: { a: { $literal: js } } },
    { $set: { a: [{ $literal: { $where: 'x' } }, { $add: [{ $literal: new Code('f') }] }] } },
    { $project: { a: { b: { $literal: { c: [js] } } } } },
    { $group: { _id: { $literal: js } } },
    { $replaceWith: { $literal: js } },
    { $replaceRoot: { newRoot: { $literal: js } } },
    { $sortByCount: { $literal: js } },
    { $documents: { $literal: [js] } },
    { $graphLookup: { from: 'a', startWith: { $literal: js } } },
    { $match: { $expr: { $eq: ['$a', { $literal: js }] } } },
    { $lookup: { from: 'a', as: 'b', let: { q: { $literal: js } }, pipeline: [] } },
    { $set: { a: { $let: { vars: { q: { $literal: js } }, in: 1 } } } },
    { $setWindowFields: { output: { a: { $push: { $literal: js } } } } },
    { $set: { a: { $getField: '$function' }, b: { $getField: { $literal: '$where' } }, c: '$function' } },
    { $match: { 'a.$function': 1, function: 2, $expr: { $eq: ['$where', '$$ROOT.$accumulator'] } } },
    { $match: { a: new BSONRegExp('$function'), b: Long.fromNumber(1), c: new Date(0), d: /x/, e: new Uint8Array(1), f: null } },
    { $set: { $functionX: 1, 'x$function': 2, $Function: 3 } },
  ])('is data and passes: %j', (stage) => {
    checkPipeline([stage], on, readOnly);
  });

  it.each([
    ['with a second key', { $set: { a: { $literal: js, b: 1 } } }],
    ['before a second key', { $set: { a: { b: 1, $literal: js } } }],
    ['as the name of a field in $project', { $project: { $literal: js } }],
    ['as the name of a field in $set', { $set: { $literal: { a: js } } }],
    ['as the name of an output', { $setWindowFields: { output: { $literal: js } } }],
    ['as the name of a bucket output', { $bucket: { output: { $literal: { $push: js } } } }],
    ['as the name of a filled field', { $fill: { output: { $literal: { value: js } } } }],
    ['as an accumulator in $group', { $group: { $literal: js } }],
    ['as an operator in $match', { $match: { $literal: { $where: '1' } } }],
    ['as the name of a variable of $lookup', { $lookup: { from: 'a', let: { $literal: js }, pipeline: [] } }],
    ['as the name of a variable of $let', { $set: { a: { $let: { vars: { $literal: js }, in: 1 } } } }],
    ['as an option of $replaceRoot', { $replaceRoot: { $literal: { newRoot: js } } }],
    ['as the name of a facet', { $facet: { $literal: [{ $set: { a: js } }] } }],
    ['as the name of an input', { $rankFusion: { input: { pipelines: { $literal: [{ $set: { a: js } }] } } } }],
    ['under its undocumented name', { $set: { a: { $const: js } } }],
    ['outside of itself', { $set: { a: { $add: [{ $literal: 1 }, js] } } }],
    ['inside of JavaScript', { $set: { a: { $function: { $literal: {} } } } }],
  ])('is refused when $literal stands %s', (_where, stage) => {
    expect(() => checkPipeline([stage], on, readOnly)).toThrow(refusal);
  });
});

describe('an argument besides the pipeline', () => {
  const holders: [string, unknown][] = [
    ['let', { q: js }],
    ['let by a name like an operator', { $literal: js }],
    ['filter', { $where: 'true' }],
    ['filter', { a: 1, $nor: [{ $expr: js }] }],
    ['filter', { a: new Code('f') }],
    ['projection', { a: js }],
    ['projection', { $literal: { a: js } }],
    ['sort', { a: js }],
    ['update', [{ $set: { a: js } }]],
    ['update', [{ $set: { $literal: js } }]],
    ['update', [{ $literal: js }]],
    ['arrayFilters', [{ 'e.x': { $where: '1' } }]],
  ];
  it.each(holders)('%s can hold no JavaScript: %j', (path, value) => {
    expect(() => checkExpression(value, readOnly, path)).toThrow(refusal);
    expect(() => checkExpression(value, readOnly, path)).toThrow(error({ path: expect.stringMatching(`^${path}`) }));
    checkExpression(value, withJs, path);
  });

  it('can hold nothing that is internal to the server', () => {
    const everything = { allowWrites: true, allowJs: true, allowInternal: true, extraStages: [] };
    expect(() => checkExpression({ a: { $_internalKeyStringValue: {} } }, everything, 'filter')).toThrow(error({ code: 'refused_by_policy' }));
  });

  it('can be nothing that BSON does not know', () => {
    for (const value of [new Map([['$where', 1]]), () => 1, Symbol('a'), new (class Own {})(), Object.create({ $where: 1 })]) {
      expect(() => checkExpression({ a: value }, readOnly, 'filter')).toThrow(error({ code: 'bad_argument', path: 'filter.a' }));
    }
  });

  it('can have no keys that would be cut on their way, or that the driver takes for its own', () => {
    expect(() => checkExpression({ '$where\0x': 1 }, readOnly, 'filter')).toThrow(error({ code: 'bad_argument' }));
    expect(() => checkExpression({ a: { _bsontype: 'Code', code: 'f' } }, readOnly, 'filter')).toThrow(error({ code: 'bad_argument' }));
  });

  it('passes when it is missing, plain or data', () => {
    for (const value of [undefined, null, 'text', 5, 1n, {}, [], { a: { $gt: Long.ONE } }, { a: { $literal: js } }, { $set: { out: '$out' } }]) {
      checkExpression(value, readOnly, 'filter');
    }
  });
});
