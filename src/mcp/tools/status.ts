/** The tool `status`: asks the database now what an operation does, or says how it ended. */

import { z } from 'zod';
import { operationBody, responseLimit, withDocuments } from '../answer.js';
import { nextForEnded, nextForOpen } from '../next.js';
import { readReference } from '../reference.js';
import { canonicalArgument, idArgument, millisecondsArgument, requestIdArgument, responseBytesArgument } from '../shapes.js';
import { defineTool } from '../tool.js';

export const statusTool = defineTool({
  name: 'status',
  title: 'Status of an operation',
  description: 'Looks at the database now: is the operation running, waiting for a lock, being killed, or how did it end? With the first documents when it succeeded. Use it after a handover, a cancel or a kill.',
  input: z.strictObject({
    id: idArgument,
    requestId: requestIdArgument,
    waitMs: millisecondsArgument.describe('Wait up to so long for its end'),
    responseBytesLimit: responseBytesArgument,
    canonical: canonicalArgument,
  }),
  scope: 'leash:read',
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },

  async call(args, notes, caller, { leash, limits }) {
    const responseBytesLimit = responseLimit(args.responseBytesLimit, limits, notes);
    const { record, verdict, documents } = await leash.status(readReference(args), caller, args.waitMs ?? 0);
    const body = operationBody(record, verdict);
    if (notes.length > 0) body['notes'] = [...record.notes, ...notes];
    if (record.outcome === null) return { isError: false, body: { ...body, next: nextForOpen(record) } };
    if (record.outcome !== 'succeeded') return { isError: false, body: { ...body, next: nextForEnded(record, limits) } };
    if (record.export !== null) return { isError: false, body: { ...body, next: 'It has ended, and its documents are in the file: read the resource.' } };
    return {
      isError: false,
      body: withDocuments(body, { documents: documents ?? [], more: record.more, offset: 0, canonical: args.canonical ?? false, responseBytesLimit }, ({ returned, left }) => {
        if (documents === null && record.documentsRead > 0) return 'Its documents are not kept any more: run it again if they are needed.';
        if (left > 0) return `${left} more were read: call result with id "${record.operationId}" and offset ${returned}.`;
        return record.more === true ? 'It has ended, and there are more documents than were read: run it with a larger limit.' : 'Nothing: it has ended.';
      }),
    };
  },
});
