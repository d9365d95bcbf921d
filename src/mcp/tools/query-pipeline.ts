/** What `aggregate` and `aggregate-db` share: a pipeline, under the operator's limit of documents. */

import { LeashError } from '../../domain/errors.js';
import type { Namespace } from '../../domain/policy/pipeline-policy.js';
import type { ToolAnswer, ToolCaller, ToolDeps } from '../tool.js';
import { type PipelineArguments, aggregateQuery, countPipeline } from './query.js';
import { type DocumentsCall, answerDocuments, documentsLimit } from './query-answer.js';

export interface PipelineCall extends Pick<DocumentsCall, 'tool' | 'countField'> {
  args: PipelineArguments & DocumentsCall['terms'] & { limit?: number | undefined; count?: boolean | undefined };
  on: Namespace;
}

/** @throws LeashError bad_argument, refused_by_policy, and what the engine throws when nothing was sent */
export async function answerPipeline({ tool, args, on, countField }: PipelineCall, notes: string[], caller: ToolCaller, deps: ToolDeps): Promise<ToolAnswer> {
  const { limits, policy } = deps;
  const limit = documentsLimit(args.limit, { documents: limits.limit, isConfig: true }, limits);
  const query = aggregateQuery(args, { on, policy, limits, notes }, limit.documents);
  const counts = args.count === true;
  if (counts && query.writes !== null) throw new LeashError('bad_argument', `count: a pipeline that ends in ${query.writes.stage} has no documents to count.`, { path: 'count' });
  return await answerDocuments({ tool, query, terms: args, limit, countField, counting: counts ? countPipeline(query) : null, skip: 0 }, notes, caller, deps);
}
