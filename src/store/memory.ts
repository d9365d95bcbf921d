/** Keeps records and results in this process, for a bounded time and in bounded memory. */

import type { Clock, Expired, InstanceRecord, Store } from '../core/ports.js';
import { laterForm } from '../domain/later-form.js';
import type { OperationRecord } from '../domain/operation.js';
import { keptMs, tombstoneOf } from './expiry.js';

export interface MemoryStoreLimits {
  /** How long a record that does not say so itself is kept after its operation's end, in milliseconds. */
  retentionMs: number;
  /** Bytes of documents of all operations together; the oldest results go first. */
  maxResultBytes: number;
}

interface Entry {
  record: OperationRecord;
  documents: Uint8Array[] | null;
  bytes: number;
  /** When the operation was seen to have ended, by the monotonic clock; null while it runs. */
  endedAt: number | null;
}

const maxTombstones = 10_000;

export function createMemoryStore(limits: MemoryStoreLimits, clock: Pick<Clock, 'now'>): Store {
  // In the order of creation: the first is the oldest.
  const entries = new Map<string, Entry>();
  // In the order in which their records were dropped.
  const tombstones = new Map<string, Expired>();
  const instances = new Map<string, InstanceRecord>();

  /** A running operation's record is never dropped. */
  function dropExpired(): void {
    for (const [operationId, { record, endedAt }] of entries) {
      if (endedAt === null || clock.now() - endedAt <= keptMs(record, limits.retentionMs)) continue;
      entries.delete(operationId);
      const tombstone = tombstoneOf(record, limits.retentionMs);
      if (tombstone !== null) bury(tombstone);
    }
  }

  function bury(tombstone: Expired): void {
    tombstones.delete(tombstone.operationId);
    tombstones.set(tombstone.operationId, tombstone);
    for (const oldest of tombstones.keys()) {
      if (tombstones.size <= maxTombstones) return;
      tombstones.delete(oldest);
    }
  }

  function dropOldResults(keep: Entry): void {
    let total = 0;
    for (const { bytes } of entries.values()) total += bytes;
    for (const entry of entries.values()) {
      if (total <= limits.maxResultBytes) return;
      if (entry === keep) continue;
      total -= entry.bytes;
      entry.documents = null;
      entry.bytes = 0;
    }
  }

  return {
    put(record) {
      dropExpired();
      const entry = entries.get(record.operationId);
      const later = structuredClone(laterForm(entry?.record ?? null, record));
      const endedAt = later.endedAt === null ? null : (entry?.endedAt ?? clock.now());
      entries.set(record.operationId, { documents: null, bytes: 0, ...entry, record: later, endedAt });
      return Promise.resolve();
    },
    get(operationId) {
      dropExpired();
      const entry = entries.get(operationId);
      return Promise.resolve(entry === undefined ? null : structuredClone(entry.record));
    },
    expired(operationId) {
      dropExpired();
      return Promise.resolve(entries.has(operationId) ? null : (tombstones.get(operationId) ?? null));
    },
    list(principal) {
      dropExpired();
      const records = [...entries.values()].map(({ record }) => record).filter((record) => principal === undefined || record.principal === principal);
      return Promise.resolve(structuredClone(records.reverse()));
    },
    unended() {
      return Promise.resolve(structuredClone([...entries.values()].map(({ record }) => record).filter(({ outcome }) => outcome === null)));
    },
    putDocuments(operationId, documents) {
      const entry = entries.get(operationId);
      if (entry === undefined) return Promise.reject(new Error(`there is no record of operation ${operationId}`));
      entry.documents = documents;
      entry.bytes = documents.reduce((sum, document) => sum + document.byteLength, 0);
      dropOldResults(entry);
      return Promise.resolve();
    },
    getDocuments(operationId) {
      dropExpired();
      return Promise.resolve(entries.get(operationId)?.documents ?? null);
    },
    putInstance(instance) {
      instances.set(instance.instance, instance);
      return Promise.resolve();
    },
    instances: () => Promise.resolve([...instances.values()]),
    problem: () => null,
    close: () => Promise.resolve(),
  };
}
