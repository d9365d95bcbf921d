/** Runs a query whose documents are waited for, and answers them under the stock server's names. */

import { BSON } from 'bson';
import type { RunAnswer } from '../../core/request.js';
import { messageOf } from '../../domain/errors.js';
import { withDocuments } from '../answer.js';
import { checkIndexes } from '../index-check.js';
import { endedAnswer, failureAnswer } from '../operation-answer.js';
import { runRead } from '../read.js';
import type { ToolAnswer, ToolCaller, ToolDeps, ToolLimits } from '../tool.js';
import type { Query } from './query.js';

export interface CallTerms {
  connectionId?: string | undefined;
  maxTimeMS?: number | undefined;
  comment?: string | undefined;
}

export interface DocumentsCall {
  tool: string;
  query: Query;
  terms: CallTerms & { responseBytesLimit?: number | undefined; canonical?: boolean | undefined };
  limit: DocumentsLimit;
  /** The stock server's name for the number of all documents. */
  countField: 'count' | 'aggResultsCount' | 'queryResultsCount';
  /** Counts them all, when that was asked for. */
  counting: Query | null;
  /** Documents that the query skips. */
  skip: number;
}

export interface DocumentsLimit {
  documents: number;
  /** Whether it is the operator's, and not the call's own. */
  isConfig: boolean;
}

/** What the call asked for, within the operator's ceiling; the operator's own, or the tool's, when it asked for nothing. */
export function documentsLimit(asked: number | undefined, otherwise: DocumentsLimit, { maxLimit }: ToolLimits): DocumentsLimit {
  const wanted = asked === undefined ? otherwise : { documents: asked, isConfig: false };
  return wanted.documents > maxLimit ? { documents: maxLimit, isConfig: true } : wanted;
}

/** The smallest answer that has room for more than its own frame, in bytes. */
const minAnswerBytes = 2_000;

/** As in the stock server, nothing and less than nothing means the operator's ceiling. */
export function answerBytes(asked: number | undefined, limits: ToolLimits, notes: string[]): { bytes: number; isConfig: boolean } {
  if (asked === undefined) return { bytes: limits.responseBytes, isConfig: false };
  if (asked <= 0 || asked > limits.maxResponseBytes) return { bytes: limits.maxResponseBytes, isConfig: true };
  if (asked < minAnswerBytes) notes.push(`responseBytesLimit was ${asked}; an answer has room for ${minAnswerBytes} bytes at least.`);
  return { bytes: Math.max(Math.floor(asked), minAnswerBytes), isConfig: false };
}

/**
 * Runs it, when the index check has nothing against it, and waits for its end.
 * @returns the answer of what ended otherwise than in success, in place of the operation
 */
export async function runQuery(tool: string, query: Query, terms: CallTerms, keep: { limit: number; canonical: boolean; responseBytes: number }, notes: string[], caller: ToolCaller, deps: ToolDeps): Promise<{ ended: RunAnswer } | { instead: ToolAnswer }> {
  const { on, namespaces, writes, command, explainable } = query;
  const { connectionId, maxTimeMS, comment } = terms;
  const refused = await checkIndexes({ tool, on, namespaces, explainable, connectionId, maxTimeMS, comment }, caller, deps);
  if (refused !== null) return { instead: refused };
  const answer = await runRead({ tool, on, namespaces, writes, command, connectionId, maxTimeMS, comment, notes, ...keep }, caller, deps);
  const failure = failureAnswer(answer, deps.limits);
  return failure === null ? { ended: answer } : { instead: failure };
}

export async function answerDocuments(call: DocumentsCall, notes: string[], caller: ToolCaller, deps: ToolDeps): Promise<ToolAnswer> {
  const { tool, query, terms, limit } = call;
  const { bytes: responseBytes, isConfig: bytesAreConfig } = answerBytes(terms.responseBytesLimit, deps.limits, notes);
  const form = { canonical: terms.canonical ?? false, responseBytes };
  const run = await runQuery(tool, query, terms, { limit: limit.documents, ...form }, notes, caller, deps);
  if ('instead' in run) return run.instead;
  const { record, documents } = run.ended;
  if (record.writes !== null) {
    const { body, ...rest } = endedAnswer(record, documents, form, deps.limits);
    return { ...rest, body: { ...body, appliedLimits: [] } };
  }
  const said = [...record.notes];
  const total = await countAll(call, run.ended, said, caller, deps);
  const wasFull = record.more === true;
  const byDocuments = wasFull && limit.isConfig && documents.length >= limit.documents ? ['config.maxDocumentsPerQuery'] : [];
  const byOwnBytes = wasFull && documents.length < limit.documents ? ['config.maxBytesPerQuery'] : [];
  const byAnswer = [bytesAreConfig ? 'config.maxBytesPerQuery' : 'tool.responseBytesLimit'];
  const limitsFor = (left: number) => [...byDocuments, ...(left > 0 ? byAnswer : byOwnBytes)];
  const head = { ...(total === null ? {} : { [call.countField]: total }), operationId: record.operationId, elapsedMs: record.elapsedMs, appliedLimits: limitsFor(1), ...(said.length === 0 ? {} : { notes: said }) };
  const part = { documents, more: record.more, offset: 0, canonical: form.canonical, responseBytesLimit: responseBytes };
  const { offset: _none, ...body } = withDocuments(head, part, ({ returned, left }) => {
    if (returned === 0 && left > 0) return 'The first document alone is larger than the answer: project fewer fields, or ask with a larger responseBytesLimit.';
    if (left > 0) return `${left} more were read and did not fit: call result with id "${record.operationId}" and offset ${returned}.`;
    return record.more === true ? 'There are more documents: raise limit, or narrow the query.' : 'Nothing: these are all.';
  });
  return { isError: false, body: { ...body, appliedLimits: limitsFor(documents.length - Number(body['returned'])) } };
}

/** Known for nothing when these are all; asked for in a second operation only when the call wants it. */
async function countAll({ tool, counting, terms, skip }: DocumentsCall, { record, documents }: RunAnswer, notes: string[], caller: ToolCaller, deps: ToolDeps): Promise<number | null> {
  if (record.more === false && (skip === 0 || documents.length > 0)) return skip + documents.length;
  if (counting === null) return null;
  try {
    const run = await runQuery(tool, counting, terms, { limit: 1, canonical: false, responseBytes: deps.limits.responseBytes }, [], caller, deps);
    if ('ended' in run) return countOf(run.ended);
    const { operationId, reason, error } = run.instead.body;
    notes.push(`They could not be counted (operation ${String(operationId)}): ${(error as { message?: string } | undefined)?.message ?? String(reason)}`);
  } catch (error) {
    // What was read is not lost because it could not be counted.
    notes.push(`They could not be counted: ${messageOf(error)}`);
  }
  return null;
}

/** What a counting pipeline, or the command `count`, has counted. */
export function countOf({ documents }: RunAnswer): number {
  const [found] = documents;
  return found === undefined ? 0 : Number((BSON.deserialize(found) as { n?: number }).n ?? 0);
}
