/** The tool `find`: the documents of a collection that a filter finds. */

import { z } from 'zod';
import { defineTool } from '../tool.js';
import { countQuery, findQuery } from './query.js';
import { answerDocuments, documentsLimit } from './query-answer.js';
import { answerArguments, collectionArguments, countArgument, filterArgument, jsonObject, limitArgument, operationArguments, queryOptions, readingHints, skipArgument } from './query-arguments.js';

/** As in the stock server. */
export const defaultFindLimit = 10;

export const findArguments = {
  filter: filterArgument,
  projection: jsonObject.optional(),
  sort: jsonObject.optional(),
  limit: limitArgument,
  skip: skipArgument,
  ...queryOptions,
};

export const findTool = defineTool({
  name: 'find',
  title: 'Find',
  description: 'Finds documents of a collection. For computing over them use aggregate, for their number count.',
  input: z.strictObject({
    ...collectionArguments,
    ...findArguments,
    filter: filterArgument.describe('As EJSON'),
    limit: limitArgument.describe(`Default ${defaultFindLimit}`),
    count: countArgument.describe('Also count all: a second query'),
    ...operationArguments,
    ...answerArguments,
  }),
  scope: 'leash:read',
  annotations: readingHints,

  async call(args, notes, caller, deps) {
    const { limits, policy } = deps;
    const limit = documentsLimit(args.limit, { documents: defaultFindLimit, isConfig: false }, limits);
    const context = { on: { db: args.database, coll: args.collection }, policy, limits, notes };
    const query = findQuery(args, context, limit.documents);
    const { filter, hint, collation } = args;
    const counting = args.count === true ? countQuery({ filter, hint, collation }, { ...context, notes: [] }, 'filter') : null;
    return await answerDocuments({ tool: 'find', query, terms: args, limit, countField: 'queryResultsCount', counting, skip: args.skip ?? 0 }, notes, caller, deps);
  },
});
