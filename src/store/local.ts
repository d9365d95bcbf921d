/** Keeps records and results on this machine's disk, shared by the processes of one user. */

import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open } from 'lmdb';
import type { InstanceRecord, Store } from '../core/ports.js';
import { laterForm } from '../domain/later-form.js';
import type { OperationRecord } from '../domain/operation.js';
import { createDocumentFiles } from './document-files.js';
import { keptUntil, tombstoneOf } from './expiry.js';
import { type LocalStoreSettings, localStorePath } from './local-path.js';
import { makeFolder } from './state-folder.js';
import { StoreError } from './store-error.js';
import { openTombstones } from './tombstones.js';

/** Raised when what is kept changes in a way that an older program would misread. */
export const schemaVersion = 1;
const schemaKey = 'schema';

const dayMs = 86_400_000;
/** A record without an outcome goes that long after its deadline: a process that still runs it has it in memory, and keeps it again at its end. */
const openAfterDeadlineMs = 7 * dayMs;
/** An instance says itself anew while it lives, so one that has not for that long is dead, and so is all it ran. */
const instanceMs = 30 * dayMs;
const purgeEveryMs = 60_000;
const tombstoneLimits = { keptMs: 7 * dayMs, maxCount: 100_000 };
/** Each process holds a few; the number is set by whoever makes the file. */
const maxReaders = 1_024;
/** The databases in the file, with room for those of later versions. */
const maxDbs = 8;

/** What was not said yet when the record was put by an older program. */
type Kept = Omit<OperationRecord, keyof typeof unsaid> & Partial<OperationRecord>;
const unsaid = { answerAs: null, keepMs: null, task: false, export: null };

interface KeptInstance {
  record: InstanceRecord;
  /** Milliseconds since 1970. */
  saidAt: number;
}

/**
 * Opens the store, or makes it. A damaged file can end the process (LMDB reads it through mapped memory): see isolated-process.ts.
 * @param now milliseconds since 1970: what is kept is older than this process
 * @throws StoreError refused for a store of a newer version; the system's or LMDB's error
 */
export function openLocalStore({ folder, retentionMs, maxRetentionMs = 0, maxResultBytes }: LocalStoreSettings, now: () => number = Date.now): Store {
  makeFolder(folder);
  const path = localStorePath(folder);
  // A commit is on the disk before it is answered; JSON is read by every later version, and by other programs.
  const root = open<{ version: number }, string>({ path, encoding: 'json', overlappingSync: false, maxDbs, maxReaders });
  try {
    refuseNewer(root.get(schemaKey), path);
  } catch (error) {
    void root.close();
    throw error;
  }
  for (const file of [path, `${path}-lock`]) chmodSync(file, 0o600);
  if (root.get(schemaKey) === undefined) root.putSync(schemaKey, { version: schemaVersion });
  const running: Database<Kept, string> = root.openDB({ name: 'running', encoding: 'json' });
  const ended: Database<Kept, string> = root.openDB({ name: 'ended', encoding: 'json' });
  const instances: Database<KeptInstance, string> = root.openDB({ name: 'instances', encoding: 'json' });
  const tombstones = openTombstones(root, tombstoneLimits);
  const documents = createDocumentFiles(join(folder, 'results'), maxResultBytes);
  let purgedAt = 0;

  const whole = (kept: Kept): OperationRecord => ({ ...unsaid, ...kept });
  function find(operationId: string): OperationRecord | null {
    const kept = ended.get(operationId) ?? running.get(operationId);
    return kept === undefined ? null : whole(kept);
  }
  const isExpired = (record: OperationRecord) => now() > keptUntil(record, retentionMs);
  const values = <T>(database: Database<T, string>) => [...database.getRange()].map(({ value }) => value);
  const records = (database: Database<Kept, string>) => values(database).map(whole);
  /** What another process has committed, and what was asked of this one before, is seen from here. */
  const fresh = () => {
    commit();
    root.resetReadTxn();
  };

  /** Within a transaction. */
  function dropExpired(): void {
    for (const record of records(ended)) {
      const tombstone = isExpired(record) ? tombstoneOf(record, retentionMs) : null;
      if (tombstone === null) continue;
      ended.removeSync(record.operationId);
      documents.remove(record.operationId);
      tombstones.add(tombstone);
    }
    tombstones.drop(now());
    for (const record of records(running)) {
      if (now() - Date.parse(record.deadlineAt ?? record.createdAt) > openAfterDeadlineMs) running.removeSync(record.operationId);
    }
    for (const { record, saidAt } of values(instances)) if (now() - saidAt > instanceMs) instances.removeSync(record.instance);
  }

  /** What has no record here can be another machine's, which may keep it as long as a record may ask for. */
  function dropStrayDocuments(): void {
    fresh();
    documents.removeOlderThan(Math.max(retentionMs, maxRetentionMs), (operationId) => find(operationId) !== null);
  }

  let queue: { action: () => void; resolve: () => void; reject: (error: unknown) => void }[] = [];

  /** Everything that is asked for in one turn of the event loop is one commit: a commit waits for the disk. */
  function write(action: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      queue.push({ action, resolve, reject });
      if (queue.length === 1) setImmediate(commit);
    });
  }

  function commit(): void {
    if (queue.length === 0) return;
    const writes = queue;
    queue = [];
    const isDue = now() - purgedAt > purgeEveryMs;
    try {
      // Synchronous: after a commit that failed (a full disk), LMDB's queue of its own is of no use any more.
      root.transactionSync(() => {
        for (const { action } of writes) action();
        if (isDue) dropExpired();
      });
      if (isDue) dropStrayDocuments();
      if (isDue) purgedAt = now();
      for (const { resolve } of writes) resolve();
    } catch (error) {
      for (const { reject } of writes) reject(error);
    }
  }

  return {
    put: (record) => write(() => {
      const later = laterForm(find(record.operationId), record);
      (later.outcome === null ? running : ended).putSync(later.operationId, later);
      if (later.outcome !== null) running.removeSync(later.operationId);
    }),
    async get(operationId) {
      fresh();
      const record = find(operationId);
      return record === null || isExpired(record) ? null : record;
    },
    async expired(operationId) {
      fresh();
      const record = find(operationId);
      if (record === null) return tombstones.get(operationId);
      // Its time is over, and nothing has been written since.
      return isExpired(record) ? tombstoneOf(record, retentionMs) : null;
    },
    async list(principal) {
      fresh();
      return [...records(running), ...records(ended)]
        .filter((record) => (principal === undefined || record.principal === principal) && !isExpired(record))
        .sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
    },
    async unended() {
      fresh();
      return records(running);
    },
    async putDocuments(operationId, kept) {
      documents.write(operationId, kept);
    },
    async getDocuments(operationId) {
      fresh();
      const record = find(operationId);
      return record === null || isExpired(record) ? null : documents.read(operationId);
    },
    putInstance: (record) => write(() => { instances.putSync(record.instance, { record, saidAt: now() }); }),
    async instances() {
      fresh();
      return values(instances).map(({ record }) => record);
    },
    problem: () => null,
    async close() {
      commit();
      await root.close();
    },
  };
}

function refuseNewer(found: unknown, path: string): void {
  if (found === undefined) return;
  const version = (found as { version?: unknown }).version;
  if (typeof version === 'number' && version <= schemaVersion) return;
  throw new StoreError('refused', `${path} was made by a newer mongo-leash (it has version ${String(version)}, and this program knows ${schemaVersion}): it was left as it is. Use the newer program, or another --state-folder.`);
}
