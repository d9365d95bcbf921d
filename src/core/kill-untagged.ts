/** Kills one operation by its opid, without a tag of ours, through the same kill path: an administrator named it. */

import { LeashError } from '../domain/errors.js';
import type { ProcessIdentity } from '../domain/facts.js';
import type { OperationRecord } from '../domain/operation.js';
import type { Tag } from '../domain/tag.js';
import { atDeadline } from '../domain/verdict.js';
import { type Verdict, isFinal } from '../domain/words.js';
import { pause } from './clock.js';
import { createConclude } from './conclude.js';
import { recordOfForeign } from './find.js';
import { shown } from './evidence.js';
import { createKiller } from './kill.js';
import { addLook, createLive, refreshRecord } from './live.js';
import type { Clock, Deployment, Log, Look, Store, Survey, SurveyRow } from './ports.js';
import { createWatch } from './watch.js';

export interface UntaggedKill {
  verdict: Verdict;
  record: OperationRecord;
}

export interface UntaggedTarget {
  node: string;
  /** As text: it is compared with the text of what the server shows, and goes back as the server gave it. */
  opid: string;
  /** The server process on which it was shown to whoever named it: opids begin again with each. */
  process: ProcessIdentity;
}

/** @throws LeashError not_found, refused_by_policy for what belongs to the server itself, unreachable */
export async function killByOpid(deps: { deployment: Deployment; store: Store; clock: Clock; log: Log }, { node, opid, process }: UntaggedTarget, waitMs: number): Promise<UntaggedKill> {
  const { deployment, clock, store, log } = deps;
  const first = await deployment.survey(node);
  if (!first.ok) throw new LeashError('unreachable', `${node} did not answer: ${first.reason}.`);
  if (first.process.id !== process.id) throw new LeashError('not_found', `${node} is another server process now than the one that was asked before.`, { database: `What ${opid} was there runs no more.` });
  const row = first.rows.find(({ sighting }) => sighting.kind === 'operation' && shown(sighting.opid) === opid);
  if (row === undefined) throw new LeashError('not_found', `No operation with the opid ${opid} runs on ${node}.`, { database: `${node} was asked now, and shows none to this user.` });
  if (row.internal) throw new LeashError('refused_by_policy', `The operation ${opid} on ${node} belongs to the server itself (replication, another member) or is a look of this program.`, { database: 'Nothing was sent.', next: 'Nothing: such an operation is not killed from here.' });

  // Its looks follow the opid instead of a tag; this one stands in for the tag that it has not.
  const tag: Tag = { instance: '', operationId: `${node}/${opid}`, principal: '', session: '', kind: row.reads ? 'r' : 'w', request: '', own: '' };
  const operation = createLive(clock, recordOfForeign(clock, { tag, sighting: row.sighting }, row.origin.users[0] ?? ''), { foreign: true, writes: !row.reads, deadlineInMs: Number.POSITIVE_INFINITY, identity: tag });
  const follow = (survey: Survey) => toLook(survey, { opid, cursorId: row.sighting.cursorId }, tag);
  const following: Deployment = { ...deployment, nodes: () => [node], look: async (at) => follow(await deployment.survey(at)) };
  addLook(operation, follow(first));
  // What another program runs is not ours to keep a record of.
  const conclude = createConclude({ clock, store: { ...store, put: () => Promise.resolve() }, log, forget: () => undefined });
  const task = createKiller({ deployment: following, watch: createWatch(following), clock, log, conclude }).kill(operation, 'command_line');
  await pause(clock, waitMs, task.done);
  const verdict = atDeadline(refreshRecord(clock, operation), operation.facts);
  if (isFinal(verdict) && (await hasNewCursor(deployment, first, row))) {
    const reason = `The opid is gone from ${node}, and its session has, or may have, a cursor there that was not there before: the operation may go on through it.`;
    const { record } = operation;
    return { verdict: 'unknown', record: { ...record, reason, kill: record.kill === null ? null : { ...record.kill, verdict: 'unknown', reason } } };
  }
  return { verdict, record: operation.record };
}

/** An operation that had just answered its first batch lives on as a cursor, which nothing but its session connects with it. */
async function hasNewCursor(deployment: Deployment, first: Extract<Survey, { ok: true }>, row: SurveyRow): Promise<boolean> {
  if (row.session === null || row.sighting.cursorId !== undefined) return false;
  const inSession = ({ session, sighting }: SurveyRow) => session === row.session && sighting.cursorId !== undefined;
  const before = new Set(first.rows.filter(inSession).map(({ sighting }) => shown(sighting.cursorId)));
  const now = await deployment.survey(row.node);
  return !now.ok || now.rows.some((each) => inSession(each) && !before.has(shown(each.sighting.cursorId)));
}

/** A getMore has an opid of its own, and its cursor lives on between two of them: both are followed. */
function toLook(survey: Survey, target: { opid: string; cursorId: unknown }, tag: Tag): Look {
  if (!survey.ok) return survey;
  const { node, startedAt, endedAt, process } = survey;
  const isTarget = ({ sighting }: SurveyRow) =>
    (sighting.opid !== undefined && shown(sighting.opid) === target.opid) || (target.cursorId !== undefined && sighting.cursorId !== undefined && shown(sighting.cursorId) === shown(target.cursorId));
  return { ok: true, node, startedAt, endedAt, process, hits: survey.rows.filter(isTarget).map(({ sighting, origin }) => ({ tag, sighting, origin })) };
}
