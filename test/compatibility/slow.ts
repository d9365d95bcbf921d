/** The calls that can be slow, each for half a minute and more, and what an independent connection sees of them. */

import type { Document, MongoClient } from 'mongodb';
import { tagged } from '../support/mongo.js';
import { slowDocuments, slowExpression, slowInVain } from '../support/reads.js';

export interface SlowCall {
  title: string;
  tool: string;
  args: Record<string, unknown>;
  /** Not a call of the stock server. */
  onlyOurs?: true;
}

const on = { database: 'slow', collection: 'events' };
const pipeline = [{ $match: slowExpression }, { $group: { _id: '$k', n: { $sum: 1 } } }];
/** Millions of small documents, as fast as they are read. */
const stream = [{ $project: { v: { $range: [0, 100_000] } } }, { $unwind: '$v' }];
const exporting = (stages: object[]) => ({ ...on, exportTitle: 'slow', exportTarget: [{ name: 'aggregate', arguments: { pipeline: stages } }] });

export const explained: Record<string, Record<string, unknown>> = { aggregate: { pipeline }, find: { filter: slowInVain }, count: { query: slowExpression }, distinct: { field: 'k', query: slowExpression } };
const explains = ['executionStats', 'allPlansExecution'].flatMap((verbosity) =>
  Object.entries(explained).map(([name, args]): SlowCall => ({ title: `explain of ${name}, ${verbosity}`, tool: 'explain', args: { ...on, method: [{ name, arguments: args }], verbosity }, ...(name === 'distinct' ? { onlyOurs: true } : {}) })));

export const slowCalls: readonly SlowCall[] = [
  { title: 'aggregate', tool: 'aggregate', args: { ...on, pipeline } },
  { title: 'aggregate-db', tool: 'aggregate-db', args: { database: 'slow', pipeline: [{ $documents: [{ _id: 1 }] }, { $lookup: { from: 'events', pipeline: [{ $match: slowExpression }], as: 'all' } }] } },
  { title: 'find', tool: 'find', args: { ...on, filter: slowInVain } },
  { title: 'count', tool: 'count', args: { ...on, query: slowExpression } },
  { title: 'distinct', tool: 'distinct', args: { ...on, field: 'k', query: slowExpression }, onlyOurs: true },
  ...explains,
  { title: 'collection-schema of a slow view', tool: 'collection-schema', args: { database: 'slow', collection: 'view' } },
  { title: 'export of a slow aggregation', tool: 'export', args: exporting(pipeline) },
  { title: 'export of a long stream', tool: 'export', args: exporting(stream) },
];

export async function loadSlow(client: MongoClient): Promise<void> {
  const slow = client.db('slow');
  await slow.collection<{ _id: number }>('events').insertMany(slowDocuments);
  await slow.createCollection('view', { viewOn: 'events', pipeline: [{ $match: slowInVain }] });
}

/** What works, or holds a cursor, for the stock server: known by its name on the connection, or, where the database shows none, by the cursor's want of a tag. */
export async function ofStock(client: MongoClient): Promise<Document[]> {
  const works = { active: true, appName: /^MongoDB MCP/, 'command.hello': { $exists: false }, 'command.isMaster': { $exists: false }, 'command.ismaster': { $exists: false } };
  const cursors = { type: 'idleCursor', ns: /^slow\./, 'cursor.originatingCommand.comment': { $exists: false } };
  return await client.db('admin').aggregate([{ $currentOp: { allUsers: true, idleCursors: true } }, { $match: { $or: [works, cursors] } }]).toArray();
}

export const ofOurs = (client: MongoClient) => tagged(client);

/** @param rows of $currentOp */
export async function kill(client: MongoClient, rows: readonly Document[]): Promise<void> {
  for (const { type, opid, ns, cursor } of rows) {
    const [database, ...collection] = String(ns).split('.');
    if (type === 'idleCursor') await client.db(database).command({ killCursors: collection.join('.'), cursors: [cursor.cursorId] });
    else await client.db('admin').command({ killOp: 1, op: opid });
  }
}
