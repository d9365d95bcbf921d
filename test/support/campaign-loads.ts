/** The runs of a campaign: what each kind of life asks the database for, and what a success of it has to bring. */

import type { MongoClient } from 'mongodb';
import type { Life } from './campaign-plan.js';
import type { RunSpec } from './engine.js';

export interface Load {
  spec: RunSpec;
  /** Documents that a success has read. */
  documents: number;
  /** The collection that it writes, and how many documents a success leaves there. */
  target: { name: string; documents: number } | null;
}

const thingsCount = 20;

export async function seedLoads(witness: MongoClient): Promise<void> {
  const db = witness.db('app');
  await db.collection('many').insertMany(Array.from({ length: 2_000 }, (_, i) => ({ _id: i as never, n: i % 97 })));
}

const js = (body: string) => ({ $function: { body: `function(){${body}}`, args: [], lang: 'js' } });
/** Multiplies the documents by `count`. */
const times = (name: string, count: number) => [{ $set: { [name]: { $range: [0, count] } } }, { $unwind: `$${name}` }];

export function loadOf({ kind, workMs, maxTimeMS, waitMs, index }: Life, wave: number): Load {
  const base = { maxTimeMS, waitMs };
  const reads = (spec: RunSpec, documents: number): Load => ({ spec: { ...base, ...spec }, documents, target: null });
  const sleepEach = { $match: { $expr: js(`sleep(${Math.ceil(workMs / thingsCount)});return true`) } };
  const name = `w${wave}_${index}`;
  const writes = (stage: object): Load => ({ spec: { ...base, collection: 'things', pipeline: [sleepEach, stage], writesTo: `app.${name}` }, documents: 0, target: { name, documents: thingsCount } });
  switch (kind) {
    case 'quick':
      return reads({ collection: 'things', pipeline: [{ $match: {} }] }, thingsCount);
    case 'scan':
    case 'limited':
      // About 2,000 documents in a millisecond, and a place to stop after each.
      return reads({ collection: 'things', pipeline: [...times('a', 1_000), ...times('b', Math.ceil(workMs / 10)), { $group: { _id: null, count: { $sum: 1 } } }] }, 1);
    case 'stubborn':
      // Additions for up to a second, all in one document: no kill is heeded before they are done.
      return reads({ collection: 'one', pipeline: [{ $project: { n: additions([Math.ceil(workMs / 300), 1_000, 1_000]) } }] }, 1);
    case 'overdue':
      // JavaScript does not heed the server's time limit: only our own deadline ends it.
      return reads({ collection: 'one', pipeline: [{ $match: { $expr: js('sleep(10000);return true') } }] }, 1);
    case 'sleep':
      return reads({ collection: 'one', pipeline: [{ $match: { $expr: js(`sleep(${workMs});return true`) } }] }, 1);
    case 'busy':
      return reads({ collection: 'one', pipeline: [{ $match: { $expr: js(`var end=Date.now()+${workMs};while(Date.now()<end){};return true`) } }] }, 1);
    case 'lookup':
      return reads({ collection: 'things', pipeline: [{ $lookup: { from: 'many', let: { id: '$_id' }, pipeline: [...times('c', Math.ceil(workMs / 100)), { $match: { $expr: { $lt: ['$n', '$$id'] } } }, { $count: 'n' }], as: 'found' } }] }, thingsCount);
    case 'batches':
      return reads({ collection: 'things', pipeline: [{ $project: { _id: 1 } }, ...times('a', 250), sleepSome(workMs)], limit: 10_000 }, thingsCount * 250);
    case 'merge':
      return writes({ $merge: { into: name } });
    case 'out':
      return writes({ $out: name });
  }
}

/** Nested `$reduce`, which adds one at a time. */
function additions([count, ...inner]: number[]): object {
  return { $reduce: { input: { $range: [0, count] }, initialValue: 0, in: { $add: ['$$value', inner.length === 0 ? 1 : additions(inner)] } } };
}

/** Sleeps a little for each of the things, so that every batch takes its share of the time. */
function sleepSome(workMs: number): object {
  return { $match: { $expr: { $cond: [{ $eq: ['$a', 100] }, js(`sleep(${Math.ceil(workMs / thingsCount)});return true`), true] } } };
}
