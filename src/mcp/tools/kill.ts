/** The tool `kill`: stops an operation and says what the database shows of it afterwards. */

import { z } from 'zod';
import { LeashError } from '../../domain/errors.js';
import { errorAnswer, operationBody } from '../answer.js';
import { nextForVerdict } from '../next.js';
import { readReference } from '../reference.js';
import { answerShape, idArgument, millisecondsArgument, operationFields, requestIdArgument, verdictField } from '../shapes.js';
import { defineTool } from '../tool.js';

export const killTool = defineTool({
  name: 'kill',
  title: 'Stop an operation',
  description: 'Kills an operation in the database and verifies it. Only the verdicts stopped, ended_first, never_sent and gone mean that it does not run any more.',
  input: z.strictObject({
    id: idArgument,
    requestId: requestIdArgument,
    waitMs: millisecondsArgument.describe('How long to verify before answering'),
  }),
  output: answerShape({ ...operationFields, verdict: verdictField, kill: z.looseObject({}) }),
  scope: 'leash:kill',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: false },

  async call(args, notes, caller, { leash, limits }) {
    try {
      const { record, verdict } = await leash.kill(readReference(args), caller, args.waitMs ?? limits.verifyMs);
      const said = verdict ?? 'unknown';
      const body = operationBody(record, said);
      if (notes.length > 0) body['notes'] = [...record.notes, ...notes];
      return { isError: false, body: { ...body, verdict: said, ...(record.kill === null ? {} : { kill: { ...record.kill, verdict: said } }), next: nextForVerdict(said, record) } };
    } catch (error) {
      // A node that did not answer may run it: that is not the same as not found.
      if (error instanceof LeashError && (error.code === 'not_found' || error.code === 'expired' || error.code === 'unreachable')) {
        return errorAnswer(error, (text) => text, { verdict: error.code === 'unreachable' ? 'unknown' : 'not_found' });
      }
      throw error;
    }
  },
});
