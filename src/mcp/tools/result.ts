/** The tool `result`: further documents of what an ended operation has read. */

import { z } from 'zod';
import { responseLimit, withDocuments } from '../answer.js';
import { readReference } from '../reference.js';
import { canonicalArgument, idArgument, requestIdArgument, responseBytesArgument } from '../shapes.js';
import { defineTool } from '../tool.js';

export const resultTool = defineTool({
  name: 'result',
  title: 'Documents of an operation',
  description: 'Pages through the documents that an ended operation has read, without asking the database again. Start at the offset that the last answer names.',
  input: z.strictObject({
    id: idArgument,
    requestId: requestIdArgument,
    offset: z.number().int('must be a whole number').min(0, 'must be at least 0').optional(),
    limit: z.number().int('must be a whole number').min(1, 'must be at least 1').optional(),
    responseBytesLimit: responseBytesArgument,
    canonical: canonicalArgument,
  }),
  scope: 'leash:read',
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },

  async call(args, notes, caller, { leash, limits }) {
    const responseBytesLimit = responseLimit(args.responseBytesLimit, limits, notes);
    const { record, documents } = await leash.result(readReference(args), caller);
    const offset = args.offset ?? 0;
    const end = args.limit === undefined ? documents.length : Math.min(offset + args.limit, documents.length);
    const body = {
      operationId: record.operationId,
      outcome: record.outcome,
      documentsRead: documents.length,
      ...(notes.length === 0 ? {} : { notes }),
    };
    return {
      isError: false,
      body: withDocuments(body, { documents: documents.slice(offset, end), more: end < documents.length || record.more, offset, canonical: args.canonical ?? false, responseBytesLimit }, ({ returned, left }) => {
        const reached = offset + returned;
        if (returned === 0 && left > 0) return `The document at offset ${offset} alone is larger than the answer: ask with a larger responseBytesLimit, or go on at offset ${offset + 1}.`;
        if (reached < documents.length) return `Go on at offset ${reached}.`;
        if (record.outcome !== 'succeeded') return `It did not come to its end (${record.outcome ?? 'unknown'}): these are the ${documents.length} documents that had been read before, not its result.`;
        return record.more === true ? 'These are all that were read; the database has more: run it again with a larger limit.' : 'Nothing: these are all.';
      }),
    };
  },
});
