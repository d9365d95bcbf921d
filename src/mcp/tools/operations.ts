/** The tool `operations`: what of the caller's runs on the deployment, whoever started it, and what ended lately. */

import { z } from 'zod';
import type { OperationRecord } from '../../domain/operation.js';
import { isOther } from '../answer.js';
import { defineTool } from '../tool.js';

/** Operations shown, so that the answer keeps its size; of the ended ones the newest come first. */
const maxRunning = 25;
const maxUnseen = 10;
const maxEnded = 20;

export const operationsTool = defineTool({
  name: 'operations',
  title: 'List operations',
  description: 'Lists your operations that run in the database now, also those that an earlier server process left there, and those that ended lately.',
  input: z.strictObject({}),
  scope: 'leash:read',
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },

  async call(_args, _notes, caller, { leash }) {
    const { running, unseen, ended, silent, looked, storeProblem } = await leash.operations(caller);
    const several = [...running, ...unseen, ...ended].some(isOther);
    return {
      isError: false,
      body: {
        running: running.slice(0, maxRunning).map((record) => ({ ...summary(record, several), evidence: record.evidence })),
        ...(running.length > maxRunning ? { runningNotShown: running.length - maxRunning } : {}),
        ...(unseen.length === 0 ? {} : { unseen: unseen.slice(0, maxUnseen).map((record) => summary(record, several)) }),
        ...(unseen.length > maxUnseen ? { unseenNotShown: unseen.length - maxUnseen } : {}),
        ended: ended.slice(0, maxEnded).map((record) => summary(record, several)),
        ...(ended.length > maxEnded ? { endedNotShown: ended.length - maxEnded } : {}),
        looked,
        silent,
        ...(storeProblem === null ? {} : { notes: [`Earlier operations may be missing here: ${storeProblem}.`] }),
        load: leash.load(),
        next: nextStep(running, unseen, silent),
      },
    };
  },
});

function nextStep(running: readonly OperationRecord[], unseen: readonly OperationRecord[], silent: readonly { node: string }[]): string {
  const done = running.length === 0 ? 'Nothing: none was seen running.' : 'Ask status about one with its id, or stop it with kill.';
  const more = running.length > maxRunning ? ` ${running.length - maxRunning} more run: they are listed as these end.` : '';
  const open = unseen.length === 0 ? '' : ` ${unseen.length} without a known end ${unseen.length === 1 ? 'was' : 'were'} not seen: unseen says why, and status looks again.`;
  const dark = silent.length === 0 ? '' : ` What runs on ${silent.map(({ node }) => node).join(', ')} is unknown: see silent.`;
  return done + more + open + dark;
}

function summary(record: OperationRecord, several: boolean): Record<string, unknown> {
  return {
    operationId: record.operationId,
    requestId: record.requestId,
    ...(several ? { connectionId: record.connectionId } : {}),
    database: record.database,
    ...(record.collection === null ? {} : { collection: record.collection }),
    wait: record.wait,
    server: record.server,
    outcome: record.outcome,
    ...(record.cause === null ? {} : { cause: record.cause }),
    ...(record.kill === null ? {} : { verdict: record.kill.verdict }),
    node: record.node,
    createdAt: record.createdAt,
    ...(record.endedAt === null ? {} : { endedAt: record.endedAt }),
    elapsedMs: record.elapsedMs,
    reason: record.reason,
  };
}
