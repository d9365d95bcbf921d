/** The tool `aggregate-db`: a pipeline on a database, which begins with a stage that reads no collection. */

import { z } from 'zod';
import { defineTool } from '../tool.js';
import { answerArguments, countArgument, databaseArgument, jsonObject, limitArgument, operationArguments, queryOptions, readingHints } from './query-arguments.js';
import { answerPipeline } from './query-pipeline.js';

export const aggregateDbTool = defineTool({
  name: 'aggregate-db',
  title: 'Aggregate on a database',
  description: 'Runs an aggregation on a database: its first stage needs no collection ($documents; others as the server allows).',
  input: z.strictObject({
    ...databaseArgument,
    pipeline: z.array(jsonObject).min(1, 'must have a stage'),
    limit: limitArgument,
    count: countArgument,
    collation: queryOptions.collation,
    ...operationArguments,
    ...answerArguments,
  }),
  scope: 'leash:read',
  annotations: readingHints,

  call: (args, notes, caller, deps) => answerPipeline({ tool: 'aggregate-db', args, on: { db: args.database, coll: null }, countField: 'aggResultsCount' }, notes, caller, deps),
});
