import { Code } from 'bson';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { checkExpression, checkPipeline, type PolicySettings } from '../../src/domain/policy/pipeline-policy.js';

const readOnly: PolicySettings = { allowWrites: false, allowJs: false, allowInternal: false, extraStages: [] };
const on = { db: 'shop', coll: 'orders' };
const error = (fields: object) => expect.objectContaining(fields);

type Wrap = (inner: unknown) => unknown;
/** Applies the wraps from the inside out. */
const wrapped = (inner: unknown, wraps: Wrap[]): unknown => wraps.reduce((value, wrap) => wrap(value), inner);

const field = fc.constantFrom('a', 'b.c', '__proto__', 'constructor', 'literal', 'vars', 'let', 'output', 'é', '0');
const noise = fc.jsonValue({ maxDepth: 2, stringUnit: 'grapheme' });

/** Ways to put an expression inside a larger one. */
const expressionWrap: fc.Arbitrary<Wrap> = fc.oneof(
  fc.tuple(field, noise).map(([key, other]): Wrap => (inner) => Object.fromEntries([['other', other], [key, inner]])),
  fc.tuple(noise, noise).map(([before, after]): Wrap => (inner) => [before, inner, after]),
  fc.constantFrom('$add', '$concat', '$not', '$push', '$toString', '$mergeObjects').map((op): Wrap => (inner) => ({ [op]: inner })),
  fc.constant<Wrap>((inner) => ({ $cond: { if: true, then: inner, else: { $literal: 1 } } })),
  fc.constant<Wrap>((inner) => ({ $let: { vars: { v: inner }, in: '$$v' } })),
  fc.constant<Wrap>((inner) => ({ $switch: { branches: [{ case: true, then: inner }], default: 0 } })),
  noise.map((other): Wrap => (inner) => ({ $literal: inner, other })),
);

/** Ways to put an expression into a stage. */
const stageWrap: fc.Arbitrary<Wrap> = fc.constantFrom<Wrap[]>(
  (inner) => ({ $project: { a: inner } }),
  (inner) => ({ $match: { $expr: inner } }),
  (inner) => ({ $group: { _id: null, a: { $push: inner } } }),
  (inner) => ({ $bucket: { groupBy: inner, boundaries: [0, 1] } }),
  (inner) => ({ $setWindowFields: { output: { a: { $max: inner } } } }),
  (inner) => ({ $replaceWith: inner }),
  (inner) => ({ $redact: inner }),
  (inner) => ({ $documents: [inner] }),
  (inner) => ({ $lookup: { from: 'x', as: 'y', let: { v: inner }, pipeline: [] } }),
  (inner) => ({ $graphLookup: { from: 'x', startWith: inner, as: 'y' } }),
);

/** Ways to put a stage into the pipeline of another stage. */
const pipelineWrap: fc.Arbitrary<Wrap> = fc
  .tuple(
    fc.constantFrom<((pipeline: unknown[]) => unknown)[]>(
      (pipeline) => ({ $lookup: { from: 'x', as: 'y', pipeline } }),
      (pipeline) => ({ $lookup: { pipeline, as: 'y' } }),
      (pipeline) => ({ $unionWith: { coll: 'x', pipeline } }),
      (pipeline) => ({ $unionWith: { pipeline } }),
      (pipeline) => ({ $facet: { a: [], $literal: pipeline } }),
      (pipeline) => ({ $rankFusion: { input: { pipelines: { literal: pipeline } } } }),
      (pipeline) => ({ $scoreFusion: { input: { pipelines: { a: pipeline } } } }),
    ),
    fc.boolean(),
    fc.boolean(),
  )
  .map(([build, before, after]): Wrap => (stage) => {
    const pipeline = [...(before ? [{ $match: { a: 1 } }] : []), stage, ...(after ? [{ $limit: 1 }] : [])];
    return build(pipeline);
  });

const javascript = fc.constantFrom<unknown[]>(
  { $function: { body: 'function() {}', args: [], lang: 'js' } },
  { $accumulator: {} },
  { $where: 'true' },
  { $_internalJsEmit: {} },
  { $function: null, $literal: 1 },
  new Code('function() {}'),
);

describe('JavaScript', () => {
  it('is refused wherever it is planted outside of $literal', () => {
    fc.assert(
      fc.property(javascript, fc.array(expressionWrap, { maxLength: 6 }), stageWrap, fc.array(pipelineWrap, { maxLength: 3 }), (planted, expressions, stage, pipelines) => {
        const pipeline = [{ $match: {} }, wrapped(planted, [...expressions, stage, ...pipelines])];
        expect(() => checkPipeline(pipeline, on, readOnly)).toThrow(error({ code: 'refused_by_policy' }));
        expect(() => checkExpression({ q: wrapped(planted, expressions) }, readOnly, 'let')).toThrow(error({ code: 'refused_by_policy' }));
        checkPipeline(pipeline, on, { ...readOnly, allowJs: true });
      }),
      { numRuns: 1000 },
    );
  });

  it('is data wherever a $literal that is an expression holds it', () => {
    const operators = expressionWrap.filter((wrap) => !('let' in Object(wrap(0)) || 'vars' in Object(wrap(0)) || 'output' in Object(wrap(0))));
    fc.assert(
      fc.property(javascript, fc.array(expressionWrap, { maxLength: 3 }), fc.array(operators, { maxLength: 4 }), stageWrap, (planted, inside, outside, stage) => {
        const literal = { $literal: wrapped(planted, inside) };
        checkPipeline([wrapped(literal, [...outside, stage])], on, readOnly);
      }),
    );
  });
});

describe('a write stage', () => {
  const write = fc
    .tuple(fc.constantFrom('$out', '$merge'), fc.oneof(noise, fc.constantFrom<unknown[]>('t', '', null, undefined, { db: 'o', coll: 't' }, { into: 't' })))
    .map(([name, spec]) => ({ [name]: spec }));

  it('is refused wherever it is planted, at the end of the pipeline or in nested ones', () => {
    fc.assert(
      fc.property(write, fc.array(pipelineWrap, { maxLength: 5 }), (stage, pipelines) => {
        expect(() => checkPipeline([wrapped(stage, pipelines)], on, readOnly)).toThrow(error({ code: 'refused_by_policy' }));
      }),
      { numRuns: 500 },
    );
  });

  it('is refused in nested pipelines even when writes are allowed', () => {
    fc.assert(
      fc.property(write, fc.array(pipelineWrap, { minLength: 1, maxLength: 5 }), (stage, pipelines) => {
        expect(() => checkPipeline([wrapped(stage, pipelines)], on, { ...readOnly, allowWrites: true })).toThrow(error({ code: 'bad_argument' }));
      }),
    );
  });

  it('is refused where it hides in what another stage holds', () => {
    fc.assert(
      fc.property(write, fc.array(expressionWrap, { maxLength: 4 }), stageWrap, (stage, expressions, holder) => {
        expect(() => checkPipeline([wrapped(stage, [...expressions, holder])], on, readOnly)).toThrow(error({ code: 'refused_by_policy' }));
      }),
    );
  });
});

describe('any value at all', () => {
  it('passes or throws one of the two errors of the policy, and is left unchanged', () => {
    const any = fc.anything({ withBigInt: true, withDate: true, withNullPrototype: true, withMap: true, withTypedArray: true });
    const stage = fc.oneof(any, fc.tuple(fc.constantFrom('$match', '$lookup', '$facet', '$unionWith', '$merge', '$out', '$rankFusion'), any).map(([name, spec]) => ({ [name]: spec })));
    fc.assert(
      fc.property(fc.array(stage), fc.boolean(), (pipeline, allowWrites) => {
        const before = fc.stringify(pipeline);
        try {
          checkPipeline(pipeline, on, { ...readOnly, allowWrites });
        } catch (caught) {
          expect(caught).toEqual(error({ name: 'LeashError', code: expect.stringMatching(/^(bad_argument|refused_by_policy)$/) }));
        }
        expect(fc.stringify(pipeline)).toBe(before);
      }),
    );
  });
});
