/** The tool `count`: exactly how many documents of a collection a query finds. */

import { z } from 'zod';
import { defineTool } from '../tool.js';
import { countQuery } from './query.js';
import { countOf, runQuery } from './query-answer.js';
import { collectionArguments, filterArgument, operationArguments, queryOptions, readingHints } from './query-arguments.js';

export const countArguments = { query: filterArgument, ...queryOptions };

export const countTool = defineTool({
  name: 'count',
  title: 'Count',
  description: 'Counts the documents of a collection that match query, exactly: without an index it reads them all. db-stats has an estimate.',
  input: z.strictObject({ ...collectionArguments, ...countArguments, ...operationArguments }),
  scope: 'leash:read',
  annotations: readingHints,

  async call(args, notes, caller, deps) {
    const { limits, policy } = deps;
    const { query: filter, hint, collation } = args;
    const query = countQuery({ filter, hint, collation }, { on: { db: args.database, coll: args.collection }, policy, limits, notes });
    const run = await runQuery('count', query, args, { limit: 1, canonical: false, responseBytes: limits.responseBytes }, notes, caller, deps);
    if ('instead' in run) return run.instead;
    const { record } = run.ended;
    return { isError: false, body: { count: countOf(run.ended), operationId: record.operationId, elapsedMs: record.elapsedMs, ...(record.notes.length === 0 ? {} : { notes: record.notes }) } };
  },
});
