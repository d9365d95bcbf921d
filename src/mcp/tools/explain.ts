/** The tool `explain`: the plan of a query, and with executionStats what running it takes. */

import { z } from 'zod';
import { documentsToJson } from '../../domain/ejson-out.js';
import { LeashError } from '../../domain/errors.js';
import { untrustedPlan } from '../answer.js';
import { readArguments } from '../arguments.js';
import { checkIndexes } from '../index-check.js';
import { failureAnswer } from '../operation-answer.js';
import { runRead } from '../read.js';
import { renderReply } from '../reply.js';
import { defineTool } from '../tool.js';
import { countArguments } from './count.js';
import { distinctArguments } from './distinct.js';
import { defaultFindLimit, findArguments } from './find.js';
import { type Query, type QueryContext, aggregateQuery, countQuery, distinctQuery, findQuery } from './query.js';
import { answerBytes } from './query-answer.js';
import { answerArguments, collectionArguments, jsonObject, operationArguments, pipelineArgument, queryOptions, readingHints } from './query-arguments.js';

const methods = {
  aggregate: explained(z.strictObject({ pipeline: pipelineArgument, ...queryOptions }), (args, context) => aggregateQuery(args, context, null)),
  // One less, since a find is sent with one more than its limit.
  find: explained(z.strictObject(findArguments), (args, context) => findQuery(args, context, (args.limit ?? defaultFindLimit) - 1)),
  count: explained(z.strictObject(countArguments), ({ query: filter, ...options }, context) => countQuery({ filter, ...options }, context)),
  distinct: explained(z.strictObject(distinctArguments), distinctQuery),
};
const methodNames = Object.keys(methods) as [keyof typeof methods];

function explained<Input extends z.ZodObject>(input: Input, query: (args: z.output<Input>, context: QueryContext) => Query) {
  return (name: string, given: unknown, context: QueryContext) => query(readArguments(`explain of ${name}`, input, given, context.notes), context);
}

export const explainTool = defineTool({
  name: 'explain',
  title: 'Explain',
  description: 'Shows how the database would run a query: which index, or a scan. executionStats and allPlansExecution run it.',
  input: z.strictObject({
    ...collectionArguments,
    method: z.array(z.strictObject({ name: z.enum(methodNames), arguments: jsonObject })).describe('One: the tool, and its arguments (pipeline, filter, …)'),
    verbosity: z.enum(['queryPlanner', 'executionStats', 'allPlansExecution']).optional(),
    ...operationArguments,
    responseBytesLimit: answerArguments.responseBytesLimit,
  }),
  scope: 'leash:read',
  annotations: readingHints,

  async call(args, notes, caller, deps) {
    const { limits, policy } = deps;
    const [method, another] = args.method;
    if (method === undefined || another !== undefined) throw new LeashError('bad_argument', `method: send one of ${methodNames.join(', ')}, as [{"name": …, "arguments": {…}}].`, { path: 'method' });
    const verbosity = args.verbosity ?? 'queryPlanner';
    const { bytes } = answerBytes(args.responseBytesLimit, limits, notes);
    const query = methods[method.name](method.name, method.arguments, { on: { db: args.database, coll: args.collection }, policy, limits, notes });
    const command = { explain: query.explainable, verbosity };
    const { connectionId, maxTimeMS, comment } = args;
    if (verbosity !== 'queryPlanner') {
      const refused = await checkIndexes({ tool: 'explain', on: query.on, namespaces: query.namespaces, explainable: query.explainable, connectionId, maxTimeMS, comment }, caller, deps);
      if (refused !== null) return refused;
    }
    const answer = await runRead({ tool: 'explain', connectionId, on: query.on, namespaces: query.namespaces, command: { kind: 'reply', db: query.on.db, command }, limit: 1, maxTimeMS, comment, responseBytes: bytes, notes }, caller, deps);
    const failure = failureAnswer(answer, limits);
    if (failure !== null) return failure;
    const { record, documents } = answer;
    const reply = renderReply(documents, { canonical: false });
    const allNotes = [...record.notes, ...reply.notes];
    const head = { method: method.name, verbosity, operationId: record.operationId, elapsedMs: record.elapsedMs, untrusted: untrustedPlan, ...(allNotes.length === 0 ? {} : { notes: allNotes }) };
    const whole = { explainResult: reply.value, ...head };
    if (Buffer.byteLength(JSON.stringify(whole)) <= bytes) return { isError: false, body: whole };
    const cut = (maxChars: number) => ({ explainResult: null, partialDocument: documentsToJson(documents, { canonical: false, maxChars }).partial, ...head, next: 'The whole is larger than the answer: ask with a larger responseBytesLimit.' });
    let chars = bytes;
    // Quotes take two bytes within a text, and some characters up to three.
    while (chars > 1 && Buffer.byteLength(JSON.stringify(cut(chars))) > bytes) chars = Math.floor(chars * 0.8);
    return { isError: false, body: cut(chars) };
  },
});
