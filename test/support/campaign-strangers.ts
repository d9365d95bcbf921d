/** Strangers beside a campaign: operations and a cursor without a tag of ours, which nothing may touch. */

import type { MongoClient } from 'mongodb';
import { counting } from './bench.js';
import { eventually, running } from './mongo.js';

export interface Strangers {
  /** Says which of them were touched, and ends them. */
  check(): Promise<string[]>;
}

export async function startStrangers(witness: MongoClient, seed: number): Promise<Strangers> {
  const comments = [`stranger ${seed} sleeps`, `stranger ${seed} copies a tag: mongo-leash.1.`];
  const things = witness.db('app').collection('one');
  const sleeping = { $match: { $expr: { $function: { body: 'function(){sleep(600000);return true}', args: [], lang: 'js' } } } };
  for (const comment of comments) things.aggregate([sleeping], { comment }).toArray().catch(() => undefined);
  const cursor = witness.db('app').collection('things').aggregate([{ $unionWith: 'things' }, ...counting.pipeline.slice(0, 2)], { comment: `stranger ${seed} reads`, batchSize: 2 });
  await cursor.next();
  const opids = async () => (await Promise.all(comments.map(async (comment) => (await running(witness, comment)).map((row) => row['opid'] as unknown)))).flat();
  const before = await eventually('the strangers run', async () => {
    const found = await opids();
    return found.length === comments.length && found;
  });
  return {
    async check() {
      const problems: string[] = [];
      const after = await opids();
      if (JSON.stringify(after) !== JSON.stringify(before)) problems.push(`a stranger was touched: ${JSON.stringify(before)} ran before, and ${JSON.stringify(after)} after`);
      await cursor.next().catch((error: unknown) => problems.push(`a stranger's cursor was touched: ${String(error)}`));
      await cursor.close();
      for (const opid of after) await witness.db('admin').command({ killOp: 1, op: opid });
      return problems;
    },
  };
}
