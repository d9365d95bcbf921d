import { describe, expect, it } from 'vitest';
import { checkPipeline, type PolicySettings } from '../../src/domain/policy/pipeline-policy.js';

const readOnly: PolicySettings = { allowWrites: false, allowJs: false, allowInternal: false, extraStages: [] };
const writing: PolicySettings = { ...readOnly, allowWrites: true };
const on = { db: 'shop', coll: 'orders' };
const error = (fields: object) => expect.objectContaining(fields);

const writes: unknown[] = [
  { $out: 't' }, { $out: { db: 'other', coll: 't' } }, { $out: { coll: 't', db: 'other' } }, { $out: '' }, { $out: null },
  { $out: 0 }, { $out: false }, { $out: {} }, { $out: [] }, { $out: { s3: { bucket: 'b' } } },
  { $merge: 't' }, { $merge: { into: 't' } }, { $merge: { into: { db: 'other', coll: 't' }, on: '_id' } }, { $merge: '' }, { $merge: null },
  { $merge: { whenMatched: 'replace', into: 't' } }, { $merge: { into: { atlas: {} } } },
];
const places: [string, (stage: unknown) => unknown[]][] = [
  ['at the end', (stage) => [{ $match: {} }, stage]],
  ['alone', (stage) => [stage]],
  ['before the end', (stage) => [stage, { $match: {} }]],
  ['in $lookup', (stage) => [{ $lookup: { from: 'a', as: 'b', pipeline: [{ $match: {} }, stage] } }]],
  ['in $lookup before its from', (stage) => [{ $lookup: { pipeline: [stage], from: 'a', as: 'b' } }]],
  ['in $facet', (stage) => [{ $facet: { x: [], y: [stage] } }]],
  ['in $unionWith', (stage) => [{ $unionWith: { coll: 'a', pipeline: [stage] } }]],
  ['in $rankFusion', (stage) => [{ $rankFusion: { input: { pipelines: { p: [stage] } } } }]],
  ['in $scoreFusion', (stage) => [{ $scoreFusion: { input: { pipelines: { p: [stage] } } } }]],
  ['in $merge', (stage) => [{ $merge: { into: 't', whenMatched: [stage] } }]],
  ['three pipelines down', (stage) => [{ $facet: { x: [{ $lookup: { from: 'a', as: 'b', pipeline: [{ $unionWith: { coll: 'c', pipeline: [stage] } }] } }] } }]],
  ['first of two keys', (stage) => [{ ...(stage as object), $match: {} }]],
  ['second of two keys', (stage) => [{ $match: {}, ...(stage as object) }]],
  ['where no stage belongs', (stage) => [{ $search: { view: [stage] } }]],
];
const topLevel = new Set(['at the end', 'alone']);

describe('a read-only server', () => {
  for (const [where, build] of places) {
    it.each(writes)(`refuses the write stage %j ${where}`, (stage) => {
      expect(() => checkPipeline(build(stage), on, readOnly)).toThrow(
        error({ code: 'refused_by_policy', message: expect.stringContaining('writes to the database'), next: expect.stringContaining('--allow-writes') }),
      );
    });
  }

  it('lets fields and strings pass that are called like a write stage', () => {
    checkPipeline([{ $match: { out: 1, 'a.$out': 2 } }, { $set: { a: '$out', b: { $getField: '$merge' } } }], on, readOnly);
    checkPipeline([{ $set: { a: { $literal: { $out: 't' } }, b: { $mergeObjects: ['$a', '$c'] } } }], on, readOnly);
  });

  it('does not suggest a write stage for a misspelt one', () => {
    expect(() => checkPipeline([{ $mrge: 't' }], on, readOnly)).toThrow(error({ message: expect.not.stringContaining('did you mean') }));
    expect(() => checkPipeline([{ $mrge: 't' }], on, writing)).toThrow('did you mean $merge?');
  });

  it('is not talked into writes by the extra stages', () => {
    expect(() => checkPipeline([{ $out: 't' }], on, { ...readOnly, extraStages: ['$out'] })).toThrow(error({ code: 'refused_by_policy' }));
  });
});

describe('a server that may write', () => {
  it.each([
    [{ $out: 't' }, '$out', { db: 'shop', coll: 't' }, 'pipeline[1].$out'],
    [{ $out: { db: 'other', coll: 't' } }, '$out', { db: 'other', coll: 't' }, 'pipeline[1].$out'],
    [{ $out: { db: 'other', coll: 't', timeseries: { timeField: 'a' } } }, '$out', { db: 'other', coll: 't' }, 'pipeline[1].$out'],
    [{ $merge: 't' }, '$merge', { db: 'shop', coll: 't' }, 'pipeline[1].$merge'],
    [{ $merge: { into: 't' } }, '$merge', { db: 'shop', coll: 't' }, 'pipeline[1].$merge.into'],
    [{ $merge: { on: ['a', 'b'], into: { coll: 't' } } }, '$merge', { db: 'shop', coll: 't' }, 'pipeline[1].$merge.into'],
    [{ $merge: { into: { db: 'other', coll: 't' }, let: { n: '$$new' }, whenMatched: [{ $set: { a: '$$n' } }], whenNotMatched: 'discard' } }, '$merge', { db: 'other', coll: 't' }, 'pipeline[1].$merge.into'],
  ])('states what %j writes', (stage, name, target, path) => {
    const facts = checkPipeline([{ $match: {} }, stage], on, writing);
    expect(facts).toEqual({
      writes: { stage: name, target },
      namespaces: [{ ns: on, path: 'collection' }, { ns: target, path }],
    });
  });

  for (const [where, build] of places) {
    if (topLevel.has(where)) continue;
    it(`takes no write stage ${where}`, () => {
      expect(() => checkPipeline(build({ $out: 't' }), on, writing)).toThrow(error({ code: 'bad_argument' }));
      expect(() => checkPipeline(build({ $merge: { into: 't' } }), on, writing)).toThrow(error({ code: 'bad_argument' }));
    });
  }

  it.each([
    [{ $out: '' }, 'must not be empty'],
    [{ $out: null }, 'not null'],
    [{ $out: 0 }, 'not a number'],
    [{ $out: {} }, 'not undefined'],
    [{ $out: { coll: 't' } }, 'pipeline[0].$out.db'],
    [{ $out: { db: 'a', coll: ['t'] } }, 'pipeline[0].$out.coll'],
    [{ $out: 'a$b' }, 'contains "$"'],
    [{ $out: { db: 'a b', coll: 't' } }, 'contains " "'],
    [{ $merge: {} }, 'pipeline[0].$merge.into'],
    [{ $merge: { into: '' } }, 'must not be empty'],
    [{ $merge: { into: 't', unknown: 1 } }, '"unknown" is no option'],
    [{ $merge: { into: 't', whenMatched: { 0: { $set: {} } } } }, 'a pipeline is an array'],
    [{ $merge: [] }, 'not an array'],
  ])('takes no target that it cannot read: %j', (stage, message) => {
    expect(() => checkPipeline([stage], on, writing)).toThrow(error({ code: 'bad_argument', message: expect.stringContaining(message) }));
  });

  it.each([
    { $out: { s3: { bucket: 'b', filename: 'f', format: { name: 'json' } } } },
    { $out: { atlas: { clusterName: 'c', db: 'd', coll: 'c' } } },
    { $out: { db: 'd', coll: 'c', azure: {} } },
    { $merge: { into: { atlas: { clusterName: 'c', db: 'd', coll: 'c' } } } },
    { $out: 'system.views' },
    { $out: { db: 'admin', coll: 'system.users' } },
    { $merge: 'system.js' },
    { $merge: { into: { db: 'config', coll: 'x' } } },
    { $merge: { into: { db: 'LOCAL', coll: 'x' } } },
  ])('refuses the target of %j', (stage) => {
    expect(() => checkPipeline([stage], on, writing)).toThrow(error({ code: 'refused_by_policy' }));
  });

  it('still refuses JavaScript in what it writes', () => {
    const js = { $function: { body: 'function() {}', args: [], lang: 'js' } };
    for (const merge of [{ into: 't', whenMatched: [{ $set: { a: js } }] }, { into: 't', let: { a: js } }]) {
      expect(() => checkPipeline([{ $merge: merge }], on, writing)).toThrow(error({ code: 'refused_by_policy', message: expect.stringContaining('JavaScript') }));
    }
  });
});
