/** While a store cannot be used nobody waits for it: it is asked again after a while, and each reason is logged once. */

import { messageOf } from '../domain/errors.js';
import type { Clock, Log } from '../core/ports.js';
import { StoreError } from './store-error.js';

export interface Outage {
  /** Why it is not asked now; null when it is. */
  why(kind: 'read' | 'write'): string | null;
  /** Takes an error in, and answers why. */
  began(kind: 'read' | 'write', error: unknown): string;
  /** Something went well that was asked at that moment: one that was asked before the outage says nothing. */
  over(kind: 'read' | 'write', askedAt: number): void;
}

/** How long it is left alone, in milliseconds. */
const pauseMs = 30_000;

export function createOutage(clock: Pick<Clock, 'now'>, log: Log): Outage {
  const closed: Record<'read' | 'write', { why: string; since: number; until: number } | null> = { read: null, write: null };
  const told = new Set<string>();

  return {
    why(kind) {
      const found = closed[kind];
      return found !== null && clock.now() < found.until ? found.why : null;
    },
    began(kind, error) {
      const what = error instanceof StoreError ? error.kind : 'failed';
      const why = messageOf(error);
      const isNews = closed.write === null || clock.now() >= closed.write.until;
      const found = { why, since: clock.now(), until: what === 'refused' ? Number.POSITIVE_INFINITY : clock.now() + pauseMs };
      // A disk that is full can be read all the same; one record that cannot be read says nothing of the others.
      if (what !== 'failed') closed.read = found;
      if (what !== 'failed' || kind === 'write') closed.write = found;
      // Several writes can meet one outage, and each tells of another page of the file.
      const reason = why.replace(/\d+/g, '');
      if (isNews && !told.has(reason)) {
        told.add(reason);
        log.error({ error: why, next: 'Free the disk, or make the folder readable and writable for this user, or choose another with --state-folder (or none with --store memory).' }, 'the store of operation records cannot be used: everything goes on, with records in this process only until it can');
      }
      return why;
    },
    over(kind, askedAt) {
      if (askedAt > (closed[kind]?.since ?? 0)) closed[kind] = null;
    },
  };
}
