import { BSONSymbol, Code } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkNamespace, checkPipeline, type PolicySettings } from '../../src/domain/policy/pipeline-policy.js';

const readOnly: PolicySettings = { allowWrites: false, allowJs: false, allowInternal: false, extraStages: [] };
const internal: PolicySettings = { ...readOnly, allowInternal: true };
const on = { db: 'shop', coll: 'orders' };
const error = (fields: object) => expect.objectContaining(fields);
const othersOf = (pipeline: unknown[], settings = readOnly) =>
  checkPipeline(pipeline, on, settings).namespaces.slice(1);

describe('the namespaces of a pipeline', () => {
  it('are listed with the place that names them, the one it runs on first', () => {
    const facts = checkPipeline(
      [
        { $lookup: { as: 'a', pipeline: [{ $unionWith: 'b' }], from: 'a' } },
        { $graphLookup: { from: 'c', startWith: '$a', connectFromField: 'a', connectToField: 'b', as: 'c' } },
        { $facet: { x: [{ $unionWith: { coll: 'd', pipeline: [] } }] } },
        { $rankFusion: { input: { pipelines: { 'p.1': [{ $lookup: { from: 'e', as: 'e' } }] } } } },
      ],
      on,
      readOnly,
    );
    expect(facts.namespaces).toEqual([
      { ns: on, path: 'collection' },
      { ns: { db: 'shop', coll: 'a' }, path: 'pipeline[0].$lookup.from' },
      { ns: { db: 'shop', coll: 'b' }, path: 'pipeline[0].$lookup.pipeline[0].$unionWith' },
      { ns: { db: 'shop', coll: 'c' }, path: 'pipeline[1].$graphLookup.from' },
      { ns: { db: 'shop', coll: 'd' }, path: 'pipeline[2].$facet.x[0].$unionWith' },
      { ns: { db: 'shop', coll: 'e' }, path: 'pipeline[3].$rankFusion.input.pipelines["p.1"][0].$lookup.from' },
    ]);
  });

  it('without a database belong to the database of the pipeline that names them', () => {
    const pipeline = [{ $unionWith: { db: 'other', coll: 'a', pipeline: [{ $lookup: { from: 'b', as: 'b' } }] } }];
    expect(othersOf(pipeline).map(({ ns }) => ns)).toEqual([{ db: 'other', coll: 'a' }, { db: 'other', coll: 'b' }]);
    const lookup = [{ $lookup: { from: { db: 'other', coll: 'a' }, as: 'a', pipeline: [{ $unionWith: 'b' }] } }];
    expect(othersOf(lookup).map(({ ns }) => ns)).toEqual([{ db: 'other', coll: 'a' }, { db: 'other', coll: 'b' }]);
  });

  it('are none where a pipeline brings its own documents', () => {
    const documents = [{ $documents: [{ a: 1 }] }];
    expect(othersOf([{ $lookup: { as: 'a', pipeline: documents } }, { $unionWith: { pipeline: documents } }])).toEqual([]);
  });

  const unreadable: [unknown, string][] = [
    [{ $lookup: 'a' }, 'pipeline[0].$lookup: it must be an object, not a string'],
    [{ $lookup: ['a'] }, 'not an array'],
    [{ $lookup: { from: 1 } }, 'pipeline[0].$lookup.from'],
    [{ $lookup: { from: null, pipeline: [] } }, 'not by null'],
    [{ $lookup: { from: ['a'] } }, 'not by an array'],
    [{ $lookup: { from: new BSONSymbol('system.users') } }, 'not by BSONSymbol'],
    [{ $lookup: { from: new Code('a') } }, 'not by Code'],
    [{ $lookup: { from: { db: 'a' } } }, 'pipeline[0].$lookup.from.coll'],
    [{ $lookup: { from: { db: 1, coll: 'a' } } }, 'pipeline[0].$lookup.from.db'],
    [{ $lookup: { from: { db: 'a', coll: 'b', ns: 'c' } } }, '"ns" is no option'],
    [{ $lookup: { from: 'a', _internalCollation: { locale: 'fr' } } }, '"_internalCollation" is no option'],
    [{ $lookup: { from: 'a', pipeline: { 0: { $match: {} } } } }, 'a pipeline is an array of stages, not an object'],
    [{ $lookup: { from: 'a', pipeline: null } }, 'a pipeline is an array of stages, not null'],
    [{ $graphLookup: { from: {} } }, 'pipeline[0].$graphLookup.from.coll'],
    [{ $unionWith: 3 }, 'not a number'],
    [{ $unionWith: { coll: { db: 'a', coll: 'b' } } }, 'pipeline[0].$unionWith.coll'],
    [{ $unionWith: { coll: 'a', collection: 'b' } }, '"collection" is no option'],
    [{ $unionWith: '' }, 'must not be empty'],
    [{ $facet: [] }, 'map names to pipelines'],
    [{ $facet: { a: { $match: {} } } }, 'a pipeline is an array of stages'],
    [{ $rankFusion: { input: [] } }, 'pipeline[0].$rankFusion.input'],
    [{ $scoreFusion: { input: {} } }, 'pipeline[0].$scoreFusion.input.pipelines'],
    [{ $rankFusion: { input: { pipelines: {}, from: 'a' } } }, '"from" is no option'],
  ];
  it.each(unreadable)('are an error where they cannot be read: %j', (stage, message) => {
    expect(() => othersOf([stage])).toThrow(error({ code: 'bad_argument', message: expect.stringContaining(message) }));
  });
});

describe("the server's own namespaces", () => {
  const own: [string, string | null][] = [
    ['admin', null], ['admin', 'system.users'], ['local', 'oplog.rs'], ['local', 'startup_log'], ['config', 'system.sessions'],
    ['Admin', 'x'], ['LOCAL', 'x'], ['config', 'x'], ['shop', 'system.views'], ['shop', 'system.js'], ['shop', 'system.'],
    ['shop', 'system.buckets.weather'], ['shop', 'system.profile'], ['shop', 'enxcol_.people.esc'],
  ];
  it.each(own)('are refused, unless internals are allowed: %s %s', (db, coll) => {
    const refusal = error({ code: 'refused_by_policy', path: 'p', next: expect.stringContaining('--allow-internal') });
    expect(() => checkNamespace({ db, coll }, readOnly, 'p')).toThrow(refusal);
    checkNamespace({ db, coll }, internal, 'p');
    // Whichever of the two arguments is at fault is the one that is named.
    expect(() => checkPipeline([], { db, coll }, readOnly)).toThrow(error({ path: db === 'shop' ? 'collection' : 'database' }));
  });

  const oplog = { db: 'local', coll: 'oplog.rs' };
  const reaching: [unknown, string][] = [
    [{ $lookup: { from: oplog, pipeline: [], as: 'o' } }, 'pipeline[0].$lookup.from'],
    [{ $lookup: { from: 'system.users', pipeline: [], as: 'o' } }, 'pipeline[0].$lookup.from'],
    [{ $graphLookup: { from: oplog, startWith: 1, connectFromField: 'a', connectToField: 'b', as: 'o' } }, 'pipeline[0].$graphLookup.from'],
    [{ $graphLookup: { from: 'system.views', startWith: 1, connectFromField: 'a', connectToField: 'b', as: 'o' } }, 'pipeline[0].$graphLookup.from'],
    [{ $unionWith: 'system.views' }, 'pipeline[0].$unionWith'],
    [{ $unionWith: { coll: 'system.views' } }, 'pipeline[0].$unionWith'],
    [{ $unionWith: { coll: 'oplog.rs', db: 'local' } }, 'pipeline[0].$unionWith'],
    [{ $unionWith: { db: 'local', pipeline: [] } }, 'pipeline[0].$unionWith'],
    [{ $facet: { a: [{ $unionWith: 'system.views' }] } }, 'pipeline[0].$facet.a[0].$unionWith'],
    [{ $rankFusion: { input: { pipelines: { a: [{ $unionWith: 'system.views' }] } } } }, 'pipeline[0].$rankFusion.input.pipelines.a[0].$unionWith'],
    [{ $unionWith: { coll: 'a', pipeline: [{ $lookup: { from: oplog, as: 'o' } }] } }, 'pipeline[0].$unionWith.pipeline[0].$lookup.from'],
    [{ $lookup: { pipeline: [{ $documents: [] }, { $lookup: { from: oplog, as: 'o' } }], as: 'x' } }, 'pipeline[0].$lookup.pipeline[1].$lookup.from'],
  ];
  it.each(reaching)('are not reached through %j', (stage, path) => {
    expect(() => othersOf([stage])).toThrow(error({ code: 'refused_by_policy', path }));
    othersOf([stage], internal);
  });

  it.each(['x.system.y', 'System.views', 'system', 'systems.a', 'enxcol', 'admin', 'local', 'a.enxcol_.b'])(
    "are not meant by a user's collection that resembles one: %s",
    (coll) => checkNamespace({ db: 'shop', coll }, readOnly, 'p'),
  );

  it('are not meant by the fields and variables of a pipeline', () => {
    othersOf([{ $project: { from: 'system.users', coll: 'system.js', into: 'local' } }]);
  });
});

describe('names', () => {
  it.each(['', 'a/b', 'a\\b', 'a.b', 'a b', 'a"b', 'a$b', 'a*b', 'a<b', 'a>b', 'a:b', 'a|b', 'a?b', 'a\0b', 'x'.repeat(64), 'é'.repeat(32)])(
    'of databases that no server takes are a bad argument: %j',
    (db) => {
      expect(() => checkNamespace({ db, coll: null }, readOnly, 'database')).toThrow(error({ code: 'bad_argument', path: 'database' }));
    },
  );

  it.each(['a', 'x'.repeat(63), 'é'.repeat(31), 'shop-2', 'sh_op', 'магазин', "o'clock", 'a;b', 'adminn'])('of databases may be %s', (db) => {
    checkNamespace({ db, coll: null }, readOnly, 'p');
  });

  it.each(['', '$cmd', '$cmd.aggregate', 'a$b', 'oplog.$main', 'a\0b', '.a', '..', '../a'])('of collections that none can have are a bad argument: %j', (coll) => {
    expect(() => checkNamespace({ db: 'shop', coll }, readOnly, 'p')).toThrow(error({ code: 'bad_argument' }));
  });

  it.each(['a.b.c', 'a b', ' ', '-x', '--help', "it's", '"', 'a\\b', 'a/b', '😀', 'commandes_é', '集合', 'a\nb', '*', '__proto__', 'constructor', '[0]', 'a..b', '{"db":"local"}'])(
    'of collections may be odd: %j',
    (coll) => {
      expect(checkPipeline([], { db: 'shop', coll }, readOnly).namespaces[0]?.ns.coll).toBe(coll);
      expect(othersOf([{ $lookup: { from: coll, as: 'x' } }])[0]?.ns.coll).toBe(coll);
    },
  );

  it('of collections pass when they are legal, whatever their characters', () => {
    const legal = fc
      .string({ unit: 'binary', minLength: 1, maxLength: 120 })
      .filter((name) => !/[$\0]|^system\.|^enxcol_\./.test(name));
    fc.assert(
      fc.property(legal, (coll) => {
        const stages = [{ $lookup: { from: coll, as: 'x' } }, { $unionWith: coll }, { $unionWith: { coll } }, { $lookup: { from: { db: 'd', coll }, as: 'x' } }];
        expect(othersOf(stages).map(({ ns }) => ns.coll)).toEqual([coll, coll, coll, coll]);
      }),
    );
  });

  it('are shown cut and escaped in errors', () => {
    expect(() => checkNamespace({ db: 'shop', coll: `$\n${'x'.repeat(5000)}` }, readOnly, 'p')).toThrow(/^p: "\$\\nx{57}…" is no name/);
  });
});
