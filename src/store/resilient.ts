/** A store that never stops anybody: what it cannot keep on the disk goes on in this process, and is said and made good later. */

import { pause } from '../core/clock.js';
import type { Clock, InstanceRecord, Log, Store } from '../core/ports.js';
import { laterForm } from '../domain/later-form.js';
import type { OperationRecord } from '../domain/operation.js';
import { createBacklog } from './backlog.js';
import type { MemoryStore } from './memory.js';
import { createOutage } from './outage.js';

export interface ResilientDeps {
  /** Rejects with a StoreError where it cannot do what is asked, within a bounded time. */
  local: Omit<Store, 'problem'>;
  memory: MemoryStore;
  clock: Clock;
  log: Log;
  /** Whether documents go to the disk at all; else they are in this process only, and nothing of them is told. */
  keepDocuments: boolean;
}

/** How long the end of the process may wait for records on their way to the disk, in milliseconds. */
const lastWritesMs = 400;
/** Records of ended operations that are on the disk and stay here too, for an outage: the newest. */
const maxWrittenHere = 1_000;

export function createResilientStore({ local, memory, clock, log, keepDocuments }: ResilientDeps): Store {
  const outage = createOutage(clock, log);
  const backlog = createBacklog({ local, memory, keepDocuments });
  const inFlight = new Set<Promise<unknown>>();
  // In the order in which they came to the disk.
  const writtenHere = new Set<string>();
  let mending = false;

  /** Never rejects. */
  async function attempt<T>(kind: 'read' | 'write', ask: () => Promise<T>): Promise<{ ok: true; value: T } | { ok: false; why: string }> {
    const why = outage.why(kind);
    if (why !== null) return { ok: false, why };
    const askedAt = clock.now();
    const asked = ask();
    inFlight.add(asked);
    try {
      const value = await asked;
      outage.over(kind, askedAt);
      mend();
      return { ok: true, value };
    } catch (error) {
      return { ok: false, why: outage.began(kind, error) };
    } finally {
      inFlight.delete(asked);
    }
  }

  /** Whatever could not be written is, as soon as something can. */
  function mend(): void {
    if (mending || backlog.isEmpty() || outage.why('write') !== null) return;
    mending = true;
    const askedAt = clock.now();
    const writing = backlog.write();
    inFlight.add(writing);
    writing
      .then(
        (records) => {
          outage.over('write', askedAt);
          log.info({ records }, 'the store of operation records can be used again, and holds what was missing');
        },
        (error: unknown) => { outage.began('write', error); },
      )
      .finally(() => {
        inFlight.delete(writing);
        mending = false;
      });
  }

  /** An operation that runs, and what only this process has, stays here. */
  function written({ operationId, outcome }: OperationRecord): void {
    backlog.written(operationId);
    if (outcome === null) return;
    writtenHere.delete(operationId);
    writtenHere.add(operationId);
    for (const oldest of writtenHere) {
      if (writtenHere.size <= maxWrittenHere) return;
      writtenHere.delete(oldest);
      if (keepDocuments && backlog.why(oldest) === null) memory.forget(oldest);
    }
  }

  async function readRecords(ask: () => Promise<OperationRecord[]>, own: OperationRecord[], ownToo: (record: OperationRecord) => boolean): Promise<OperationRecord[]> {
    const stored = await attempt('read', ask);
    const byId = new Map((stored.ok ? stored.value : []).map((record) => [record.operationId, record]));
    for (const record of own) {
      const kept = byId.get(record.operationId) ?? null;
      if (kept !== null || !stored.ok || ownToo(record)) byId.set(record.operationId, laterForm(kept, record));
    }
    return [...byId.values()];
  }

  return {
    async put(record) {
      const copy = structuredClone(record);
      memory.keep(copy);
      const done = await attempt('write', () => local.put(copy));
      if (done.ok) written(copy);
      else backlog.add(copy.operationId, done.why);
    },
    async get(operationId) {
      const own = await memory.get(operationId);
      const stored = await attempt('read', () => local.get(operationId));
      if (!stored.ok || stored.value === null) return own;
      return own === null ? stored.value : laterForm(stored.value, own);
    },
    async expired(operationId) {
      const stored = await attempt('read', () => local.expired(operationId));
      return (stored.ok ? stored.value : null) ?? (await memory.expired(operationId));
    },
    async list(principal) {
      const records = await readRecords(() => local.list(principal), await memory.list(principal), () => true);
      return records.sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
    },
    async unended() {
      // What this process saw end may not have come to the disk; what another one recorded the end of is open in memory only.
      const own = await memory.list();
      const records = await readRecords(() => local.unended(), own, (record) => backlog.why(record.operationId) !== null);
      return records.filter(({ outcome }) => outcome === null);
    },
    async putDocuments(operationId, documents) {
      if (keepDocuments) {
        const done = await attempt('write', () => local.putDocuments(operationId, documents));
        if (done.ok) return;
        backlog.addDocuments(operationId, done.why);
      }
      await memory.putDocuments(operationId, documents);
    },
    async getDocuments(operationId) {
      const own = await memory.getDocuments(operationId);
      if (own !== null) return own;
      const stored = await attempt('read', () => local.getDocuments(operationId));
      return stored.ok ? stored.value : null;
    },
    async putInstance(instance) {
      await memory.putInstance(instance);
      const done = await attempt('write', () => local.putInstance(instance));
      if (!done.ok) backlog.addInstance(instance);
    },
    async instances() {
      const stored = await attempt('read', () => local.instances());
      const own: InstanceRecord[] = await memory.instances();
      return [...own, ...(stored.ok ? stored.value : []).filter(({ instance }) => own.every((each) => each.instance !== instance))];
    },
    problem: (operationId) => (operationId === undefined ? (outage.why('write') ?? outage.why('read')) : backlog.why(operationId)),
    async close() {
      const until = clock.now() + lastWritesMs;
      await pause(clock, 0);
      while (inFlight.size > 0 && clock.now() < until) {
        await pause(clock, until - clock.now(), Promise.all(inFlight));
        // One write is often followed by another: the documents first, then the record.
        await pause(clock, 0);
      }
      await local.close();
    },
  };
}
