/** One look at `$currentOp`: what is asked, and how its rows are read. */

import type { Document } from 'mongodb';
import type { Sighting } from '../domain/facts.js';
import type { Hit } from '../core/ports.js';
import { anyTagPattern, parseTag } from '../domain/tag.js';

/**
 * Every tagged operation and idle cursor of one node, with only the fields that are used: full documents of 1,000
 * operations take fifteen times as long. Never filtered by `op` or `ns`: `$merge` shows as `update`, `$out` as `insert`.
 */
export function lookPipeline(allUsers: boolean): Document[] {
  const tag = { $regex: anyTagPattern };
  return [
    { $currentOp: { allUsers, idleCursors: true } },
    { $match: { $or: [{ 'command.comment': tag }, { 'cursor.originatingCommand.comment': tag }] } },
    {
      $project: {
        type: 1,
        op: 1,
        opid: 1,
        ns: 1,
        microsecs_running: 1,
        planSummary: 1,
        waitingForLock: 1,
        killPending: 1,
        connectionId: 1,
        'command.comment': 1,
        'cursor.cursorId': 1,
        'cursor.nDocsReturned': 1,
        'cursor.originatingCommand.comment': 1,
      },
    },
  ];
}

/** The rows of a look as hits; a row that can be told apart by neither opid nor cursor is none. */
export function hitsOf(rows: readonly Document[]): Hit[] {
  return rows.flatMap((row) => {
    const command = row['command'] as Document | undefined;
    const cursor = row['cursor'] as Document | undefined;
    const originating = cursor?.['originatingCommand'] as Document | undefined;
    const tag = parseTag(command?.['comment']) ?? parseTag(originating?.['comment']);
    const sighting = sightingOf(row, cursor);
    return tag === null || sighting === null ? [] : [{ tag, sighting }];
  });
}

function sightingOf(row: Document, cursor: Document | undefined): Sighting | null {
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
