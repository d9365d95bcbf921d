/** What is read out of plans, in the forms in which servers give them; those of 6.0.5 are as it gave them. */
import { MaxKey, MinKey } from 'bson';
import { describe, expect, it } from 'vitest';
import { readPlan } from '../../src/domain/query-plan.js';

const planner = (winningPlan: object) => ({ queryPlanner: { namespace: 'app.a', winningPlan } });
const scan = { stage: 'COLLSCAN', direction: 'forward' };
const filteredScan = { ...scan, filter: { t: { $eq: 1 } } };
const index = { stage: 'FETCH', inputStage: { stage: 'IXSCAN', indexName: 'k_1' } };
const wholeIndex = { stage: 'IXSCAN', indexName: '_id_', isPartial: false, isSparse: false, indexBounds: { _id: ['[MinKey, MaxKey]'] } };
const cursor = (plan: object) => ({ $cursor: planner(plan) });

describe('a scan of a whole collection', () => {
  it.each([
    ['a scan', planner(scan)],
    ['a scan with a filter under a limit, which may read all', planner({ stage: 'LIMIT', inputStage: filteredScan })],
    ['a scan under a sort under a limit', planner({ stage: 'LIMIT', inputStage: { stage: 'SORT', inputStage: scan } })],
    ['a scan in one branch of an $or', planner({ stage: 'SUBPLAN', inputStage: { stage: 'FETCH', inputStage: { stage: 'OR', inputStages: [index, filteredScan] } } })],
    ['a scan in a plan of the newer engine', planner({ queryPlan: { stage: 'GROUP', inputStage: scan }, slotBasedPlan: {} })],
    ['a scan under the cursor of a pipeline', { stages: [cursor(scan), { $group: {} }] }],
    ['a scan under a limit that is none', planner({ stage: 'LIMIT', limitAmount: 1_001, inputStage: scan })],
    ['a scan that skips most of it', planner({ stage: 'LIMIT', limitAmount: 1, inputStage: { stage: 'SKIP', skipAmount: 1_000, inputStage: scan } })],
    ['an index read whole, for a sort', planner({ stage: 'LIMIT', limitAmount: 10, inputStage: { stage: 'FETCH', filter: { t: { $eq: 1 } }, inputStage: wholeIndex } })],
    ['an index read whole and backwards', planner({ stage: 'FETCH', inputStage: { ...wholeIndex, indexBounds: { _id: ['[MaxKey, MinKey]'] } } })],
    ['a count of a whole index', { stages: [cursor({ stage: 'COUNT_SCAN', indexBounds: { startKey: { _id: new MinKey() }, endKey: { _id: new MaxKey() } } }), { $group: {} }] }],
    ['a scan on one shard', planner({ stage: 'SHARD_MERGE', shards: [{ shardName: 'a', winningPlan: index }, { shardName: 'b', winningPlan: scan }] })],
    ['a scan of a pipeline on one shard', { shards: { a: { stages: [cursor(index)] }, b: { stages: [cursor(scan)] } } }],
  ])('is found: %s', (_what, explain) => {
    expect(readPlan(explain, 1_000)).toMatchObject({ scans: ['app.a'], readable: true });
  });

  it.each([
    ['in a joined collection', planner({ queryPlan: { stage: 'EQ_LOOKUP', strategy: 'HashJoin', foreignCollection: 'app.b', inputStage: index } })],
    ['for each document that is joined', planner({ queryPlan: { stage: 'EQ_LOOKUP', strategy: 'NestedLoopJoin', foreignCollection: 'app.b', inputStage: index } })],
    ['in a $unionWith within a $unionWith', { stages: [cursor(index), { $unionWith: { coll: 'c', pipeline: [cursor(index), { $unionWith: { coll: 'b', pipeline: [{ $cursor: { queryPlanner: { namespace: 'app.b', winningPlan: scan } } }] } }] } }] }],
  ])('is found %s', (_what, explain) => {
    expect(readPlan(explain)).toMatchObject({ scans: ['app.b'], readable: true });
  });

  it.each([
    ['an index', planner(index)],
    ['an index that a limit stops', planner({ stage: 'LIMIT', limitAmount: 10, inputStage: { stage: 'FETCH', inputStage: wholeIndex } })],
    ['a range of an index', planner({ stage: 'FETCH', filter: { t: { $eq: 1 } }, inputStage: { ...wholeIndex, indexBounds: { k: ['[1, 1]'], n: ['[MinKey, MaxKey]'] } } })],
    ['the whole of an index that holds some documents only', planner({ stage: 'FETCH', inputStage: { ...wholeIndex, isPartial: true } })],
    ['a count of a range', planner({ stage: 'COUNT_SCAN', indexBounds: { startKey: { k: 1 }, endKey: { k: 1 } } })],
    ['a scan that a limit stops', planner({ stage: 'LIMIT', inputStage: scan })],
    ['a scan that a limit stops, with a projection and a skip', planner({ stage: 'LIMIT', inputStage: { stage: 'PROJECTION_SIMPLE', inputStage: { stage: 'SKIP', inputStage: scan } } })],
    ['two indexes of an $or', planner({ stage: 'SUBPLAN', inputStage: { stage: 'FETCH', inputStage: { stage: 'OR', inputStages: [index, index] } } })],
    ['a collection that is not there', planner({ stage: 'EOF' })],
    ['a covered distinct', planner({ stage: 'PROJECTION_COVERED', inputStage: { stage: 'DISTINCT_SCAN', indexName: 'k_1' } })],
    ['the id', planner({ stage: 'IDHACK' })],
    ['a range of a clustered collection', planner({ stage: 'CLUSTERED_IXSCAN', minRecord: 1 })],
    ['a join by an index', planner({ queryPlan: { stage: 'EQ_LOOKUP', strategy: 'IndexedLoopJoin', foreignCollection: 'app.b', inputStage: index } })],
    ['a random sample', { stages: [cursor({ stage: 'MULTI_ITERATOR' }), { $sampleFromRandomCursor: { size: 5 } }] }],
    ['documents of the pipeline itself', { stages: [{ $queue: [{}] }, { $project: { stage: 'COLLSCAN' } }] }],
    ['data that looks like a plan', planner({ ...index, filter: { a: { stage: 'COLLSCAN' } } })],
    ['a plan that lost', { queryPlanner: { namespace: 'app.a', winningPlan: index, rejectedPlans: [scan] } }],
  ])('is not: %s', (_what, explain) => {
    expect(readPlan(explain, 1_000)).toEqual({ scans: [], unseen: [], readable: true });
  });
});

describe('a join that the plan tells nothing of', () => {
  it('is named with what finds its documents, in a $facet too', () => {
    const lookup = { $lookup: { from: 'b', let: { k: '$k' }, localField: 'a', foreignField: 'f', pipeline: [{ $match: { x: 1 } }], as: 'r' } };
    const graph = { $graphLookup: { from: 'c', startWith: '$k', connectFromField: 'k', connectToField: 'n', restrictSearchWithMatch: { y: 2 }, as: 'r' } };
    expect(readPlan({ stages: [cursor(index), { $facet: { x: [lookup], y: [graph] } }] }).unseen).toEqual([
      { stage: '$lookup', from: { db: null, coll: 'b' }, pipeline: [{ $match: { f: { $eq: 1 } } }, { $match: { x: 1 } }], variables: ['k'] },
      { stage: '$graphLookup', from: { db: null, coll: 'c' }, pipeline: [{ $match: { $and: [{ n: { $eq: 1 } }, { y: 2 }] } }], variables: [] },
    ]);
  });

  it('is none when it begins with $documents', () => {
    expect(readPlan({ stages: [cursor(index), { $lookup: { pipeline: [{ $documents: [{}] }], as: 'r' } }] }).unseen).toEqual([]);
  });
});

it.each([[{}], [null], [{ ok: 1 }], [{ queryPlanner: {} }], [{ shards: {} }]])('%j holds no plan that could be read', (explain) => {
  expect(readPlan(explain)).toMatchObject({ readable: false, scans: [] });
});
