/** Keeps in LMDB what is left of records that were dropped for their age, for a bounded time and in bounded number. */

import type { RootDatabase } from 'lmdb';
import type { Expired } from '../core/ports.js';

export interface TombstoneLimits {
  /** How long one is kept after the record's own time, in milliseconds. */
  keptMs: number;
  /** The oldest go first. */
  maxCount: number;
}

export interface Tombstones {
  get(operationId: string): Expired | null;
  /** Within a transaction, like `drop`. */
  add(tombstone: Expired): void;
  /** Drops what is too old, or too much. @param now milliseconds since 1970 */
  drop(now: number): void;
}

/** Two databases of their own in the file: a program that does not know them reads the rest. */
export function openTombstones(root: RootDatabase, { keptMs, maxCount }: TombstoneLimits): Tombstones {
  const expired = root.openDB<Expired, string>({ name: 'expired', encoding: 'json' });
  /** By age, so that the old ones are found without reading all of them. */
  const byAge = root.openDB<true, string>({ name: 'expiredByAge', encoding: 'json' });
  // ISO 8601 in UTC sorts as text; behind the space stands the id.
  const ageKey = ({ expiredAt, operationId }: Expired) => `${expiredAt} ${operationId}`;

  function remove(key: string): void {
    byAge.removeSync(key);
    expired.removeSync(key.slice(key.indexOf(' ') + 1));
  }

  return {
    get: (operationId) => expired.get(operationId) ?? null,
    add(tombstone) {
      // One operation can expire twice: its call may be answered when its record was gone already.
      const before = expired.get(tombstone.operationId);
      if (before !== undefined) byAge.removeSync(ageKey(before));
      expired.putSync(tombstone.operationId, tombstone);
      byAge.putSync(ageKey(tombstone), true);
    },
    drop(now) {
      for (const key of [...byAge.getKeys({ end: new Date(now - keptMs).toISOString() })]) remove(key);
      const tooMany = countOf(byAge) - maxCount;
      if (tooMany > 0) for (const key of [...byAge.getKeys({ limit: tooMany })]) remove(key);
    },
  };
}

/** LMDB keeps the count; `getCount` would read all of them. */
function countOf(database: { getStats(): object }): number {
  return (database.getStats() as { entryCount: number }).entryCount;
}
