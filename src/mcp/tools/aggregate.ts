/** The tool `aggregate`: a pipeline on a collection, whose documents the call waits for. */

import { z } from 'zod';
import { defineTool } from '../tool.js';
import { answerArguments, collectionArguments, countArgument, limitArgument, operationArguments, pipelineArgument, queryOptions, readingHints } from './query-arguments.js';
import { answerPipeline } from './query-pipeline.js';

export const aggregateTool = defineTool({
  name: 'aggregate',
  title: 'Aggregate',
  description: 'Runs an aggregation on a collection and waits for its documents. For one that may take long use run.',
  input: z.strictObject({
    ...collectionArguments,
    pipeline: pipelineArgument.describe('Stages, as EJSON'),
    limit: limitArgument,
    count: countArgument.describe('Also count all: a second query'),
    ...queryOptions,
    ...operationArguments,
    ...answerArguments,
  }),
  scope: 'leash:read',
  annotations: readingHints,

  call: (args, notes, caller, deps) => answerPipeline({ tool: 'aggregate', args, on: { db: args.database, coll: args.collection }, countField: 'count' }, notes, caller, deps),
});
