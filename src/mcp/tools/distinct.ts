/** The tool `distinct`: the different values that a field has. */

import { z } from 'zod';
import { renderReply } from '../reply.js';
import { untrustedNote } from '../answer.js';
import { defineTool } from '../tool.js';
import { distinctQuery } from './query.js';
import { answerBytes, runQuery } from './query-answer.js';
import { answerArguments, collectionArguments, filterArgument, name, operationArguments, queryOptions, readingHints } from './query-arguments.js';

export const distinctArguments = { field: name, query: filterArgument, collation: queryOptions.collation };

/** The server's errors for a reply, or a state on the way to it, that is over its size. */
const tooLargeCodes: ReadonlySet<unknown> = new Set([17_217, 10_334, 17_419, 146]);

export const distinctTool = defineTool({
  name: 'distinct',
  title: 'Distinct values',
  description: 'Lists the different values of a field. For many values, or how often each is there, use aggregate with $group.',
  input: z.strictObject({ ...collectionArguments, ...distinctArguments, ...operationArguments, ...answerArguments }),
  scope: 'leash:read',
  annotations: readingHints,

  async call(args, notes, caller, deps) {
    const { limits, policy } = deps;
    const { bytes, isConfig } = answerBytes(args.responseBytesLimit, limits, notes);
    const canonical = args.canonical ?? false;
    const query = distinctQuery(args, { on: { db: args.database, coll: args.collection }, policy, limits, notes });
    const run = await runQuery('distinct', query, args, { limit: 1, canonical, responseBytes: bytes }, notes, caller, deps);
    if ('instead' in run) return tooLargeCodes.has((run.instead.body['error'] as { serverCode?: number } | undefined)?.serverCode) ? { ...run.instead, body: { ...run.instead.body, next: byGroups(args.field) } } : run.instead;
    const { record } = run.ended;
    const reply = renderReply(run.ended.documents, { canonical });
    const all = reply.value['values'] as unknown[];
    const body = (values: unknown[], appliedLimits: string[]) => {
      const more = values.length < all.length;
      const untrusted = all.length === 0 ? {} : { untrusted: untrustedNote.replace('documents hold', 'values are') };
      return {
        values,
        // Every value was read, so this is known also where they do not all fit.
        count: all.length,
        more,
        appliedLimits: more ? appliedLimits : [],
        operationId: record.operationId,
        elapsedMs: record.elapsedMs,
        ...untrusted,
        ...(record.notes.length + reply.notes.length === 0 ? {} : { notes: [...record.notes, ...reply.notes] }),
        next: more ? `There are more values: ask with a larger responseBytesLimit, narrow query, or page by ${byGroups(args.field)}` : 'Nothing: these are all.',
      };
    };
    const limit = [isConfig ? 'config.maxBytesPerQuery' : 'tool.responseBytesLimit'];
    const whole = body(all, []);
    if (Buffer.byteLength(JSON.stringify(whole)) <= bytes) return { isError: false, body: whole };
    const frame = Buffer.byteLength(JSON.stringify({ ...body([], limit), more: true }));
    return { isError: false, body: body(fitting(all, bytes - frame), limit) };
  },
});

/** The first of them whose JSON has room. */
function fitting(values: readonly unknown[], bytes: number): unknown[] {
  let used = 0;
  const end = values.findIndex((value) => (used += Buffer.byteLength(JSON.stringify(value)) + 1) > bytes);
  return values.slice(0, end === -1 ? values.length : end);
}

function byGroups(field: string): string {
  return `aggregate with [{"$unwind": ${JSON.stringify(`$${field}`)}} (where it holds arrays), {"$group": {"_id": ${JSON.stringify(`$${field}`)}}}, {"$sort": {"_id": 1}}] and a limit.`;
}
