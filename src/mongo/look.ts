/** One look at `$currentOp`: what is asked, and how its rows are read. */

import type { Document } from 'mongodb';
import type { Sighting } from '../domain/facts.js';
import type { Hit, Origin, SurveyRow } from '../core/ports.js';
import { type Tag, parseTag, tagHeadPattern } from '../domain/tag.js';

const fields = {
  type: 1,
  op: 1,
  opid: 1,
  ns: 1,
  desc: 1,
  client: 1,
  appName: 1,
  'clientMetadata.driver.name': 1,
  effectiveUsers: 1,
  lsid: 1,
  microsecs_running: 1,
  planSummary: 1,
  waitingForLock: 1,
  killPending: 1,
  connectionId: 1,
  'command.comment': 1,
  'command.maxTimeMS': 1,
  'cursor.cursorId': 1,
  'cursor.nDocsReturned': 1,
  'cursor.originatingCommand.comment': 1,
  'cursor.originatingCommand.maxTimeMS': 1,
} as const;

/** Characters of a comment that a look reads: a forged one may be as long as a command, and the answer must fit into one batch. */
const maxCommentChars = 400;

const comments = { 'command.comment': cutText('$command.comment'), 'cursor.originatingCommand.comment': cutText('$cursor.originatingCommand.comment') };

/**
 * Every tagged operation and idle cursor of one node, with only the fields that are used: full documents of 1,000
 * operations take fifteen times as long. Never filtered by `op` or `ns`: `$merge` shows as `update`, `$out` as `insert`.
 */
export function lookPipeline(allUsers: boolean): Document[] {
  const tag = { $regex: tagHeadPattern };
  return [
    { $currentOp: { allUsers, idleCursors: true } },
    { $match: { $or: [{ 'command.comment': tag }, { 'cursor.originatingCommand.comment': tag }] } },
    { $project: { ...fields, ...comments } },
  ];
}

/** Every operation and idle cursor of one node, tagged or not. */
export function surveyPipeline(allUsers: boolean): Document[] {
  return [
    { $currentOp: { allUsers, idleCursors: true } },
    { $match: { $or: [{ active: true }, { type: 'idleCursor' }] } },
    { $project: { ...fields, ...comments, reads: onlyReads, cursorSeconds: { $divide: [{ $subtract: ['$$NOW', '$cursor.createdDate'] }, 1_000] } } },
  ];
}

function cutText(field: string): Document {
  return { $cond: [{ $eq: [{ $type: field }, 'string'] }, { $substrCP: [field, 0, maxCommentChars] }, '$$REMOVE'] };
}

const hasField = (field: string): Document => ({ $ne: [{ $type: field }, 'missing'] });
const lastStage = { $arrayElemAt: ['$command.pipeline', -1] };
/** Whether the last stage of the pipeline is one of these, told without reading the rest of it. */
const lastStageIs = (...names: string[]): Document => ({ $or: names.map((name) => ({ $in: [name, { $map: { input: { $objectToArray: lastStage }, in: '$$this.k' } }] })) });
const readingPipeline: Document = {
  $cond: [{ $and: [{ $isArray: '$command.pipeline' }, { $eq: [{ $type: lastStage }, 'object'] }] }, { $not: lastStageIs('$out', '$merge') }, false],
};
/** Commands that cannot write, an explain of a write among them; a command that the server shows cut is none of them. */
const onlyReads: Document = {
  $or: [{ $in: ['$op', ['query', 'getmore']] }, { $eq: ['$type', 'idleCursor'] }, hasField('$command.count'), hasField('$command.distinct'), hasField('$command.explain'), { $and: [hasField('$command.aggregate'), readingPipeline] }],
};

/** The rows of a look as hits; a row that can be told apart by neither opid nor cursor is none. */
export function hitsOf(rows: readonly Document[]): Hit[] {
  return rows.flatMap((row) => {
    const tag = tagOf(row);
    const sighting = sightingOf(row);
    return tag === null || sighting === null ? [] : [{ tag, sighting, origin: originOf(row) }];
  });
}

/** The rows of a survey. `ownAppName` begins the application names of this program's control connections. */
export function surveyRowsOf(node: string, rows: readonly Document[], ownAppName: string): SurveyRow[] {
  return rows.flatMap((row) => {
    const sighting = sightingOf(row);
    if (sighting === null) return [];
    return [{ node, tag: tagOf(row), sighting, origin: originOf(row), comment: commentOf(row), ageSeconds: ageOf(row), session: sessionOf(row), reads: row['reads'] === true, internal: isInternal(row, ownAppName) }];
  });
}

/** An operation of several commands is as old as its cursor, not as its last getMore. */
function ageOf(row: Document): number | null {
  const ages = [(numberOf(row['microsecs_running']) ?? Number.NaN) / 1_000_000, numberOf(row['cursorSeconds']) ?? Number.NaN].filter((seconds) => !Number.isNaN(seconds));
  return ages.length === 0 ? null : Math.round(Math.max(...ages) * 1_000) / 1_000;
}

function sessionOf(row: Document): string | null {
  const id = (row['lsid'] as { id?: { toString(encoding: 'hex'): string } } | undefined)?.id;
  return id === undefined ? null : id.toString('hex');
}

function commandsOf(row: Document): (Document | undefined)[] {
  return [row['command'] as Document | undefined, (row['cursor'] as Document | undefined)?.['originatingCommand'] as Document | undefined];
}

function tagOf(row: Document): Tag | null {
  const [command, originating] = commandsOf(row);
  return parseTag(command?.['comment']) ?? parseTag(originating?.['comment']);
}

function commentOf(row: Document): string | null {
  return commandsOf(row).map((command) => textOf(command?.['comment'])).find((comment) => comment !== null) ?? null;
}

function originOf(row: Document): Origin {
  const [command, originating] = commandsOf(row);
  const users = (row['effectiveUsers'] as { user?: unknown; db?: unknown }[] | undefined) ?? [];
  return {
    client: textOf(row['client']),
    appName: textOf(row['appName']),
    users: users.map(({ user, db }) => `${String(user as string)}@${String(db as string)}`),
    maxTimeMS: numberOf(command?.['maxTimeMS']) ?? numberOf(originating?.['maxTimeMS']) ?? null,
    lsid: row['lsid'],
  };
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

/** What members and routers call themselves on their connections to one another. */
const serverDrivers = /^(MongoDB Internal Client|NetworkInterfaceTL)/;
const serverAppNames = /^(OplogFetcher|Replication|MongoDB Internal|MirrorMaestro)/;

/** Replication, the server's own threads, other members, and the looks of this program: never to be killed from here. */
function isInternal(row: Document, ownAppName: string): boolean {
  const appName = textOf(row['appName']) ?? '';
  const driver = textOf((row['clientMetadata'] as { driver?: { name?: unknown } } | undefined)?.driver?.name) ?? '';
  if (appName.startsWith(ownAppName) || serverAppNames.test(appName) || serverDrivers.test(driver)) return true;
  if (originOf(row).users.some((user) => user.startsWith('__system@'))) return true;
  // An idle cursor has no connection; an operation without a client is a thread of the server.
  return row['type'] !== 'idleCursor' && textOf(row['client']) === null;
}

function sightingOf(row: Document): Sighting | null {
  const cursor = row['cursor'] as Document | undefined;
  const idle = row['type'] === 'idleCursor';
  // An opid goes back to killOp as it came: a number, a Long, or text through mongos.
  const opid: unknown = idle ? undefined : row['opid'];
  const cursorId: unknown = cursor?.['cursorId'];
  if (idle ? cursorId === undefined : opid === undefined) return null;
  const planSummary: unknown = row['planSummary'];
  const microseconds = numberOf(row['microsecs_running']);
  const op: unknown = row['op'];
  return {
    kind: idle ? 'idle_cursor' : 'operation',
    ...(opid === undefined ? {} : { opid }),
    ...(cursorId === undefined ? {} : { cursorId }),
    namespace: String(row['ns'] ?? ''),
    op: typeof op === 'string' ? op : undefined,
    secondsRunning: microseconds === undefined ? undefined : Math.round(microseconds / 100_000) / 10,
    planSummary: typeof planSummary === 'string' ? planSummary : undefined,
    documentsReturned: numberOf(cursor?.['nDocsReturned']),
    waitingForLock: row['waitingForLock'] === true,
    killPending: row['killPending'] === true,
    connectionId: numberOf(row['connectionId']),
  };
}

/** Numbers may come as Long, since cursor ids must not be rounded. */
function numberOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  const number = Number(value);
  return Number.isFinite(number) ? number : undefined;
}
