/** The query tools as the tests call them: in the middle of their work, and on data that makes any of them slow. */

import type { Document, MongoClient } from 'mongodb';
import { eventually } from './mongo.js';
import type { TestServer } from './server.js';

/** Some ten milliseconds of work in each document: slow over a collection, and stopped between two documents. */
const work = { $size: { $range: [0, { $add: [150_000, '$_id'] }] } };
export const slowExpression = { $expr: { $gte: [work, 0] } };
/** The same, and it finds nothing: a find goes through all. */
export const slowInVain = { $expr: { $lt: [work, 0] } };
/** So many of them take half a minute and more. */
export const slowDocuments = Array.from({ length: 4_000 }, (_, i) => ({ _id: i, k: i % 10 }));

export interface StartedCall {
  /** The operation id in the tag that the database showed. */
  id: string;
  row: Document;
  requestId: string | number;
  cancel(): void;
  /** Settles when the client has given the call up. */
  cancelled: Promise<unknown>;
  /** Whether the server has sent an answer to the call. */
  answered(): boolean;
}

/**
 * Starts a call of any tool, and comes back when the witness sees its operation, found by the call's own comment.
 * @param isMeant tells apart the operations of a call that needs several
 */
export async function startCall(server: TestServer, witness: MongoClient, tool: string, args: Record<string, unknown>, comment: string, isMeant: (row: Document) => boolean = () => true): Promise<StartedCall> {
  const abort = new AbortController();
  const call = server.call(tool, { ...args, comment }, abort.signal);
  const cancelled = call.then((answer: unknown) => { throw new Error(`it was answered: ${JSON.stringify(answer)}`); }, (error: unknown) => error);
  cancelled.catch(() => undefined);
  const requestId = server.lastRequestId();
  const own = { $regex: `^mongo-leash\\.1\\..* ${comment}$` };
  const row = await eventually(`the database shows the ${tool} with the comment ${comment}`, async () => {
    const rows = await witness.db('admin').aggregate([{ $currentOp: { allUsers: true } }, { $match: { 'command.comment': own } }]).toArray();
    return rows.find(isMeant);
  });
  return {
    id: String(row['command'].comment).split('.')[3] ?? '',
    row,
    requestId,
    cancel: () => { abort.abort(); },
    cancelled,
    answered: () => server.stdout.some((line) => (JSON.parse(line) as { id?: unknown }).id === requestId),
  };
}

/** One way to ask for the documents that a filter finds, and how many an answer says there are. */
export interface Filtering {
  tool: string;
  args(filter: unknown): Record<string, unknown>;
  /** Where a place within the filter is named, in errors and hints. */
  path: string;
  found(answer: any): number;
}

/** Every tool that takes a filter or a `$match`, on a collection. */
export const filtering: Filtering[] = [
  { tool: 'find', args: (filter) => ({ filter }), path: 'filter', found: ({ documents }) => documents.length },
  { tool: 'aggregate', args: (filter) => ({ pipeline: [{ $match: filter }] }), path: 'pipeline[0].$match', found: ({ documents }) => documents.length },
  { tool: 'count', args: (query) => ({ query }), path: 'query', found: ({ count }) => count },
  { tool: 'distinct', args: (query) => ({ field: '_id', query }), path: 'query', found: ({ values }) => values.length },
  { tool: 'explain', args: (filter) => ({ method: [{ name: 'find', arguments: { filter } }], verbosity: 'executionStats' }), path: 'filter', found: ({ explainResult }) => explainResult.executionStats.nReturned },
  { tool: 'export', args: (filter) => ({ exportTarget: [{ name: 'find', arguments: { filter } }] }), path: 'filter', found: ({ documents }) => documents },
];

/** The same for a server that joins: the pipeline begins on the database. */
export const joining = (from: string): Filtering => ({
  tool: 'aggregate-db',
  args: (filter) => ({ collection: undefined, pipeline: [{ $documents: [{}] }, { $lookup: { from, pipeline: [{ $match: filter }], as: 'r' } }, { $unwind: '$r' }] }),
  path: 'pipeline[1].$lookup.pipeline[0].$match',
  found: ({ documents }) => documents.length,
});
