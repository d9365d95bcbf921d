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

export interface MemoryStore extends Store {
  /** The same as put, of a record that nobody changes any more. */
  keep(record: OperationRecord): void;
  /** Drops a record with its documents, as if it had never been here. */
  forget(operationId: string): void;
}

const maxTombstones = 10_000;
/** How often all of them are looked through for what is over, in milliseconds: not with each put, which many records would make slow. */
const tidyEveryMs = 1_000;

export function createMemoryStore(limits: MemoryStoreLimits, clock: Pick<Clock, 'now'>): MemoryStore {
  // In the order of creation: the first is the oldest.
  const entries = new Map<string, Entry>();
  // In the order in which their records were dropped.
  const tombstones = new Map<string, Expired>();
  const instances = new Map<string, InstanceRecord>();
  let resultBytes = 0;
  let tidyAt = clock.now();

  function remove(operationId: string, { bytes }: Entry): void {
    entries.delete(operationId);
    resultBytes -= bytes;
  }

  /** A running operation's record is never dropped. */
  function dropIfExpired(operationId: string, entry: Entry, now: number): void {
    const { record, endedAt } = entry;
    if (endedAt === null || now - endedAt <= keptMs(record, limits.retentionMs)) return;
    remove(operationId, entry);
    const tombstone = tombstoneOf(record, limits.retentionMs);
    if (tombstone !== null) bury(tombstone);
  }

  function dropExpired(): void {
    const now = clock.now();
    tidyAt = now + tidyEveryMs;
    for (const [operationId, entry] of entries) dropIfExpired(operationId, entry, now);
  }

  /** What there is of it, when its time is not over. */
  function find(operationId: string): Entry | undefined {
    const entry = entries.get(operationId);
    if (entry !== undefined) dropIfExpired(operationId, entry, clock.now());
    return entries.get(operationId);
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
    if (resultBytes <= limits.maxResultBytes) return;
    for (const entry of entries.values()) {
      if (resultBytes <= limits.maxResultBytes) return;
      if (entry === keep) continue;
      resultBytes -= entry.bytes;
      entry.documents = null;
      entry.bytes = 0;
    }
  }

  function keep(record: OperationRecord): void {
    if (clock.now() >= tidyAt) dropExpired();
    const entry = find(record.operationId);
    const later = laterForm(entry?.record ?? null, record);
    const endedAt = later.endedAt === null ? null : (entry?.endedAt ?? clock.now());
    if (entry === undefined) entries.set(record.operationId, { documents: null, bytes: 0, record: later, endedAt });
    else Object.assign(entry, { record: later, endedAt });
  }

  return {
    put(record) {
      keep(structuredClone(record));
      return Promise.resolve();
    },
    keep,
    forget(operationId) {
      const entry = entries.get(operationId);
      if (entry !== undefined) remove(operationId, entry);
    },
    get(operationId) {
      const entry = find(operationId);
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
      resultBytes -= entry.bytes;
      entry.documents = documents;
      entry.bytes = documents.reduce((sum, document) => sum + document.byteLength, 0);
      resultBytes += entry.bytes;
      dropOldResults(entry);
      return Promise.resolve();
    },
    getDocuments(operationId) {
      return Promise.resolve(find(operationId)?.documents ?? null);
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
