/** The observer of a campaign: a connection of its own that asks `$currentOp` without a pause, and remembers when it saw which tag. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Document, MongoClient } from 'mongodb';

export interface Sightings {
  /** `performance.now()` before the first and before the last look that saw it. */
  firstLookAt: number;
  lastLookAt: number;
  looks: number;
  /** What the last look saw. */
  last: Document;
}

export interface Observer {
  /** By operation id. */
  seen: ReadonlyMap<string, Sightings>;
  looks(): number;
  /** Waits for that many further looks that begin after this call. */
  nextLooks(count: number): Promise<void>;
  stop(): Promise<void>;
}

const pauseMs = 2;
const ours = { $regex: '^mongo-leash\\.1\\.' };
const pipeline = [
  { $currentOp: { allUsers: true, idleCursors: true } },
  { $match: { $or: [{ 'command.comment': ours }, { 'cursor.originatingCommand.comment': ours }] } },
  { $project: { type: 1, opid: 1, ns: 1, op: 1, killPending: 1, 'command.comment': 1, 'cursor.cursorId': 1, 'cursor.originatingCommand.comment': 1 } },
];

export function startObserver(witness: MongoClient): Observer {
  const seen = new Map<string, Sightings>();
  let looks = 0;
  let stopped = false;

  async function look(): Promise<void> {
    const at = performance.now();
    const rows = await witness.db('admin').aggregate(pipeline, { promoteLongs: false }).toArray();
    looks += 1;
    for (const row of rows) {
      const comment: unknown = row['command']?.comment ?? row['cursor']?.originatingCommand?.comment;
      const id = typeof comment === 'string' ? comment.split('.')[3] : undefined;
      if (id === undefined) continue;
      const before = seen.get(id);
      if (before === undefined) seen.set(id, { firstLookAt: at, lastLookAt: at, looks: 1, last: row });
      else Object.assign(before, { lastLookAt: at, looks: before.looks + 1, last: row });
    }
  }

  const loop = (async () => {
    while (!stopped) {
      await look();
      await delay(pauseMs);
    }
  })();

  return {
    seen,
    looks: () => looks,
    async nextLooks(count) {
      // The one that runs has begun before.
      const target = looks + count + 1;
      while (looks < target && !stopped) await delay(pauseMs);
      if (stopped) await loop;
    },
    async stop() {
      stopped = true;
      await loop;
    },
  };
}
