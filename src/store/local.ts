/** Keeps records and results on this machine's disk, shared by the processes of one user. */

import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { type Database, open } from 'lmdb';
import type { InstanceRecord, Store } from '../core/ports.js';
import { laterForm } from '../domain/later-form.js';
import type { OperationRecord } from '../domain/operation.js';
import { createDocumentFiles } from './document-files.js';
import { type LocalStoreSettings, localStorePath } from './local-path.js';
import { makeFolder } from './state-folder.js';
import { StoreError } from './store-error.js';

/** Raised when what is kept changes in a way that an older program would misread. */
export const schemaVersion = 1;
const schemaKey = 'schema';

const dayMs = 86_400_000;
/** A record without an outcome goes that long after its deadline: a process that still runs it has it in memory, and keeps it again at its end. */
const openAfterDeadlineMs = 7 * dayMs;
/** An instance says itself anew while it lives, so one that has not for that long is dead, and so is all it ran. */
const instanceMs = 30 * dayMs;
const purgeEveryMs = 60_000;
/** Each process holds a few; the number is set by whoever makes the file. */
const maxReaders = 1_024;

interface KeptInstance {
  record: InstanceRecord;
  /** Milliseconds since 1970. */
  saidAt: number;
}

/**
 * Opens the store, or makes it. A damaged file can end the process (LMDB reads it through mapped memory): see isolated-process.ts.
 * @throws StoreError refused for a store of a newer version; the system's or LMDB's error
 */
export function openLocalStore({ folder, retentionMs, maxResultBytes }: LocalStoreSettings): Store {
  makeFolder(folder);
  const path = localStorePath(folder);
  // A commit is on the disk before it is answered; JSON is read by every later version, and by other programs.
  const root = open<{ version: number }, string>({ path, encoding: 'json', overlappingSync: false, maxDbs: 4, maxReaders });
  try {
    refuseNewer(root.get(schemaKey), path);
  } catch (error) {
    void root.close();
    throw error;
  }
  for (const file of [path, `${path}-lock`]) chmodSync(file, 0o600);
  if (root.get(schemaKey) === undefined) root.putSync(schemaKey, { version: schemaVersion });
  const running: Database<OperationRecord, string> = root.openDB({ name: 'running', encoding: 'json' });
  const ended: Database<OperationRecord, string> = root.openDB({ name: 'ended', encoding: 'json' });
  const instances: Database<KeptInstance, string> = root.openDB({ name: 'instances', encoding: 'json' });
  const documents = createDocumentFiles(join(folder, 'results'), maxResultBytes);
  let purgedAt = 0;

  const find = (operationId: string) => ended.get(operationId) ?? running.get(operationId) ?? null;
  const isExpired = (record: OperationRecord) => record.endedAt !== null && Date.now() - Date.parse(record.endedAt) > retentionMs;
  const values = <T>(database: Database<T, string>) => [...database.getRange()].map(({ value }) => value);
  /** What another process has committed is seen from the next turn of the event loop on, or from here. */
  const fresh = () => { root.resetReadTxn(); };

  /** Within a transaction. */
  function dropExpired(): void {
    const now = Date.now();
    for (const record of values(ended)) {
      if (!isExpired(record)) continue;
      ended.removeSync(record.operationId);
      documents.remove(record.operationId);
    }
    for (const record of values(running)) {
      if (now - Date.parse(record.deadlineAt ?? record.createdAt) > openAfterDeadlineMs) running.removeSync(record.operationId);
    }
    for (const { record, saidAt } of values(instances)) if (now - saidAt > instanceMs) instances.removeSync(record.instance);
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
    const writes = queue;
    queue = [];
    const isDue = Date.now() - purgedAt > purgeEveryMs;
    try {
      // Synchronous: after a commit that failed (a full disk), LMDB's queue of its own is of no use any more.
      root.transactionSync(() => {
        for (const { action } of writes) action();
        if (isDue) dropExpired();
      });
      if (isDue) documents.removeOlderThan(retentionMs);
      if (isDue) purgedAt = Date.now();
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
    async list(principal) {
      fresh();
      return [...values(running), ...values(ended)]
        .filter((record) => (principal === undefined || record.principal === principal) && !isExpired(record))
        .sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
    },
    async unended() {
      fresh();
      return values(running);
    },
    async putDocuments(operationId, kept) {
      documents.write(operationId, kept);
    },
    async getDocuments(operationId) {
      fresh();
      const record = find(operationId);
      return record === null || isExpired(record) ? null : documents.read(operationId);
    },
    putInstance: (record) => write(() => { instances.putSync(record.instance, { record, saidAt: Date.now() }); }),
    async instances() {
      fresh();
      return values(instances).map(({ record }) => record);
    },
    problem: () => null,
    async close() {
      if (queue.length > 0) commit();
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
