import { Int32, DBRef } from 'bson';
import { describe, expect, it } from 'vitest';
import { checkPipeline, type PolicySettings } from '../../src/domain/policy/pipeline-policy.js';

const readOnly: PolicySettings = { allowWrites: false, allowJs: false, allowInternal: false, extraStages: [] };
const on = { db: 'shop', coll: 'orders' };
const check = (pipeline: readonly unknown[], settings: Partial<PolicySettings> = {}) =>
  checkPipeline(pipeline, on, { ...readOnly, ...settings });
const error = (fields: object) => expect.objectContaining(fields);

describe('a stage', () => {
  const malformed: [unknown, RegExp][] = [
    ['[{"$match":{}}]', /pipeline\[0\]: a stage is an object.*not a string/],
    [null, /not null/],
    [undefined, /not undefined/],
    [3, /not a number/],
    [[{ $match: {} }], /not an array/],
    [new Int32(1), /not Int32/],
    [new DBRef('orders', new Int32(1) as never), /not DBRef/],
    [new Map([['$match', {}]]), /not an object/],
    [{}, /has none/],
    [{ $match: {}, $limit: 1 }, /has 2 \("\$match", "\$limit"\)/],
    [JSON.parse('{"__proto__": {"$match": {}}}'), /"__proto__" does not/],
    [JSON.parse('{"__proto__": {}, "$match": {}}'), /has 2/],
    [{ '': {} }, /"" does not/],
    [{ match: {} }, /"match" does not \(did you mean \$match\?\)/],
    [{ '$match\0': {} }, /NUL/],
    [{ _bsontype: 'Code' }, /_bsontype/],
  ];
  it.each(malformed)('that is no object with one key is a bad argument: %j', (stage, message) => {
    expect(() => check([stage])).toThrow(error({ code: 'bad_argument', message: expect.stringMatching(message) }));
  });

  it('is named by its place in the error', () => {
    expect(() => check([{ $match: {} }, { $limit: 1, $skip: 1 }])).toThrow(error({ path: 'pipeline[1]' }));
    const inner = { $lookup: { from: 'a', pipeline: [{ $match: {} }, 7] } };
    expect(() => check([inner])).toThrow(error({ path: 'pipeline[0].$lookup.pipeline[1]' }));
    expect(() => checkPipeline([7], on, readOnly, 'view "v"')).toThrow(error({ path: 'view "v"[0]' }));
  });

  it.each([
    ['$mach', '$match'],
    ['$Match', '$match'],
    ['$grop', '$group'],
    ['$lookUp', '$lookup'],
    ['$unionwith', '$unionWith'],
    ['$projcet', '$project'],
    ['$agg', null],
    ['$nothingLikeIt', null],
  ])('with the unknown name %s is refused, and %s is suggested', (name, meant) => {
    const message = meant ? expect.stringContaining(`(did you mean ${meant}?)`) : expect.not.stringContaining('did you mean');
    const next = expect.stringContaining('--allow-stage');
    const code = meant ? 'bad_argument' : 'refused_by_policy';
    expect(() => check([{ [name]: {} }])).toThrow(error({ code, message, next, path: `pipeline[0].${name}` }));
    expect(() => check([{ [name]: {} }])).toThrow('only known read stages are allowed');
  });

  it('that a future version may write with does not pass', () => {
    for (const name of ['$internalOutToDifferentDB', '$insert', '$outTo', '$writeInto', '$OUT', '$Merge', '$emit']) {
      expect(() => check([{ [name]: 't' }])).toThrow(error({ code: 'refused_by_policy' }));
    }
  });

  it('whose name the operator added passes, and only by its exact name', () => {
    const settings = { extraStages: ['$rerank', 'bare'] };
    expect(check([{ $rerank: { query: { text: 'x' } } }], settings).writes).toBeNull();
    expect(() => check([{ $rerankAll: {} }], settings)).toThrow(error({ code: 'refused_by_policy' }));
    expect(() => check([{ $rernk: {} }], settings)).toThrow('did you mean $rerank?');
    expect(() => check([{ bare: {} }], settings)).toThrow(error({ code: 'bad_argument' }));
  });

  it('that the operator added can hold no JavaScript and no stages, not even as a literal', () => {
    const settings = { extraStages: ['$future'], allowWrites: true };
    const held = [{ $function: {} }, { $out: 't' }, { $lookup: { from: 'x' } }, { $currentOp: {} }, { $_internalX: 1 }];
    for (const value of held) {
      expect(() => check([{ $future: { pipeline: [value] } }], settings)).toThrow(error({ name: 'LeashError' }));
      expect(() => check([{ $future: { a: { $literal: value } } }], settings)).toThrow(error({ name: 'LeashError' }));
    }
  });
});

describe('the read stages', () => {
  const stages = [
    { $addFields: { a: 1 } }, { $bucket: { groupBy: '$a', boundaries: [0, 1], output: { n: { $sum: 1 } } } },
    { $bucketAuto: { groupBy: '$a', buckets: 2 } }, { $collStats: { count: {} } }, { $count: 'n' },
    { $densify: { field: 'a', range: { step: 1, bounds: 'full' } } }, { $documents: [{ a: 1 }] },
    { $facet: { a: [{ $match: {} }] } }, { $fill: { output: { a: { value: 0 } } } },
    { $geoNear: { near: [0, 0], distanceField: 'd', query: { a: 1 } } },
    { $graphLookup: { from: 'b', startWith: '$a', connectFromField: 'a', connectToField: 'b', as: 'c', maxDepth: 2, depthField: 'd', restrictSearchWithMatch: { a: 1 } } },
    { $group: { _id: '$a', n: { $sum: 1 } } }, { $indexStats: {} }, { $limit: new Int32(5) },
    { $listSearchIndexes: {} }, { $lookup: { from: 'b', localField: 'a', foreignField: 'b', as: 'c', let: { x: '$a' }, pipeline: [] } },
    { $match: { a: { $gt: 1 } } }, { $project: { a: 1 } }, { $redact: '$$KEEP' }, { $replaceRoot: { newRoot: '$a' } },
    { $rankFusion: { input: { pipelines: { a: [{ $sort: { a: 1 } }] } }, combination: { weights: { a: 1 } }, scoreDetails: true } },
    { $scoreFusion: { input: { pipelines: { a: [{ $score: { score: 1 } }] }, normalization: 'none' }, combination: { method: 'avg' } } },
    { $replaceWith: '$a' }, { $sample: { size: 1 } }, { $score: { score: 1 } }, { $search: { text: { query: 'x', path: 'a' } } },
    { $searchBeta: {} }, { $searchMeta: { count: {} } }, { $set: { a: 1 } }, { $setWindowFields: { output: { a: { $sum: 1 } } } },
    { $skip: 1 }, { $sort: { a: -1 } }, { $sortByCount: '$a' }, { $unionWith: 'b' }, { $unset: ['a'] }, { $unwind: '$a' },
    { $vectorSearch: { index: 'v', path: 'a', queryVector: [1], limit: 1, numCandidates: 10 } },
  ];
  it.each(stages.map((stage) => [Object.keys(stage)[0], stage]))('let %s pass', (_name, stage) => {
    expect(check([stage]).writes).toBeNull();
  });

  it('pass on a database, where no collection is named', () => {
    const facts = checkPipeline([{ $documents: [{ a: 1 }] }], { db: 'shop', coll: null }, readOnly);
    expect(facts).toEqual({ writes: null, namespaces: [{ ns: { db: 'shop', coll: null }, path: 'collection' }] });
  });

  it('may be none: an empty pipeline reads the collection', () => {
    expect(check([]).namespaces).toEqual([{ ns: on, path: 'collection' }]);
  });
});

describe("stages that show other users' work, or the server's", () => {
  const liftable = [
    '$currentOp', '$listSessions', '$listLocalSessions', '$listCachedAndActiveUsers', '$planCacheStats',
    '$listSampledQueries', '$queryStats', '$querySettings', '$shardedDataDistribution', '$listCatalog', '$listClusterCatalog',
  ];
  const never = [
    '$operationMetrics', '$queue', '$mergeCursors', '$backupCursor', '$backupCursorExtend', '$setVariableFromSubPipeline',
    '$changeStream', '$changeStreamSplitLargeEvent', '$_internalInhibitOptimization', '$_internalSearchMongotRemote',
    '$_internalSplitPipeline', '_internalInhibitOptimization', '$_internalOfALaterVersion', '$_internalJsEmit',
  ];
  it.each(liftable)('%s is refused with the reason, on a database too, unless internals are allowed', (name) => {
    const refusal = error({ code: 'refused_by_policy', message: expect.stringContaining(' is refused: it shows '), next: expect.stringContaining('--allow-internal') });
    expect(() => check([{ [name]: {} }])).toThrow(refusal);
    expect(() => checkPipeline([{ [name]: {} }], { db: 'test', coll: null }, readOnly)).toThrow(refusal);
    expect(() => check([{ $facet: { a: [{ [name]: {} }] } }])).toThrow(refusal);
    expect(() => check([{ [name]: {} }], { extraStages: [name] })).toThrow(refusal);
    expect(check([{ [name]: {} }], { allowInternal: true }).writes).toBeNull();
  });

  it.each(never)('%s is refused whatever is allowed', (name) => {
    const everything = { allowWrites: true, allowJs: true, allowInternal: true, extraStages: [name] };
    for (const settings of [{}, everything]) {
      expect(() => check([{ [name]: {} }], settings)).toThrow(
        error({ code: 'refused_by_policy', message: expect.stringMatching(/ is refused: \w+/) }),
      );
    }
  });

  it('name the reason that a change stream is refused for: it never ends', () => {
    expect(() => check([{ $changeStream: {} }])).toThrow('never ends');
    expect(() => check([{ $changeStream: { fullDocument: 'updateLookup' } }, { $match: {} }])).toThrow('never ends');
  });

  it('do not pass in a place where no stage is expected', () => {
    expect(() => check([{ $search: { view: { pipeline: [{ $currentOp: {} }] } } }])).toThrow(error({ code: 'refused_by_policy' }));
    expect(() => check([{ $search: { view: { pipeline: [{ $lookup: { from: 'system.users' } }] } } }])).toThrow(error({ code: 'bad_argument' }));
  });

  it('are nothing to a field whose name only resembles theirs', () => {
    check([{ $match: { _internalId: 1, currentOp: 2, 'a.$currentOp': 3 } }, { $set: { b: '$currentOp' } }]);
  });
});

describe('depth', () => {
  const nested = (levels: number): unknown => Array.from({ length: levels }).reduce<unknown>((inner) => ({ a: inner }), 1);
  const lookups = (levels: number): unknown =>
    Array.from({ length: levels }).reduce<unknown>((inner) => ({ $unionWith: { coll: 'c', pipeline: [inner] } }), { $match: {} });

  it('of a hundred levels passes', () => {
    check([{ $match: nested(98) }]);
  });

  it.each([
    ['objects', { $match: nested(99) }],
    ['a great many objects', { $match: nested(100_000) }],
    ['literals', { $project: { a: { $literal: nested(100_000) } } }],
    ['pipelines', lookups(10_000)],
    ['arrays', { $match: { a: Array.from({ length: 50_000 }).reduce<unknown>((inner) => [inner], 1) } }],
  ])('beyond that is a bad argument and no stack overflow: %s', (_what, stage) => {
    expect(() => check([stage])).toThrow(error({ code: 'bad_argument', message: expect.stringContaining('more than 100 levels') }));
  });

  it('leaves the message of the error short', () => {
    const key = 'k'.repeat(100_000);
    expect.assertions(1);
    try {
      check([{ $match: Array.from({ length: 200 }).reduce<unknown>((inner) => ({ [key]: inner }), 1) }]);
    } catch (caught) {
      expect((caught as Error).message.length).toBeLessThan(400);
    }
  });
});
