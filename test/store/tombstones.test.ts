import { existsSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import { describe, expect, it } from 'vitest';
import type { Expired } from '../../src/core/ports.js';
import { openLocalStore } from '../../src/store/local.js';
import { localStorePath } from '../../src/store/local-path.js';
import { openTombstones } from '../../src/store/tombstones.js';
import { aRecord, documentsOf, ended, freshFolder, newOperationId } from '../support/records.js';

const limits = { retentionMs: 3_600_000, maxRetentionMs: 86_400_000, maxResultBytes: 1_000_000 };
const dayMs = 86_400_000;
const ago = (ms: number) => new Date(Date.now() - ms).toISOString();
const filesOf = (folder: string) => ({
  path: (name: string) => join(folder, 'results', name),
  age(name: string, ms: number) { utimesSync(this.path(name), new Date(Date.now() - ms), new Date(Date.now() - ms)); },
  has(name: string) { return existsSync(this.path(name)); },
});

describe('what the local store dropped', () => {
  it('is said after it was closed, by every process, for a week', async () => {
    const folder = freshFolder();
    const store = openLocalStore({ folder, ...limits });
    const record = ended(aRecord(), { outcome: 'timed_out', cause: 'deadline', endedAt: ago(2 * limits.retentionMs) });
    await store.put(record);
    await store.close();
    const left = { operationId: record.operationId, principal: record.principal, outcome: 'timed_out', cause: 'deadline', endedAt: record.endedAt, expiredAt: new Date(Date.parse(record.endedAt ?? '') + limits.retentionMs).toISOString() };

    let now = Date.now();
    const later = openLocalStore({ folder, ...limits }, () => now);
    await later.put(aRecord());
    expect(await later.expired(record.operationId)).toEqual(left);
    const other = openLocalStore({ folder, ...limits, retentionMs: Number.MAX_SAFE_INTEGER });
    expect(await other.expired(record.operationId)).toEqual(left);
    now = Date.parse(left.expiredAt) + 7 * dayMs - 1_000;
    await later.put(aRecord());
    expect(await later.expired(record.operationId)).toEqual(left);
    now += 62_000;
    await later.put(aRecord());
    expect(await later.expired(record.operationId)).toBeNull();
    await later.close();
    await other.close();
  });

  it('takes no more room than it may: the oldest go first', async () => {
    const root = open<unknown, string>({ path: localStorePath(freshFolder()), encoding: 'json', overlappingSync: false });
    const tombstones = openTombstones(root, { keptMs: dayMs, maxCount: 3 });
    const all = [5, 1, 4, 2, 3].map((hours): Expired => ({ operationId: newOperationId(), principal: 'a', outcome: 'killed', cause: null, endedAt: ago(dayMs), expiredAt: ago(hours * 3_600_000) }));
    root.transactionSync(() => {
      for (const each of all) tombstones.add(each);
      // The same one expires again, an hour ago.
      tombstones.add({ ...all[0], expiredAt: ago(3_600_000) } as Expired);
      tombstones.drop(Date.now());
    });
    expect(all.map(({ operationId }) => tombstones.get(operationId) !== null)).toEqual([true, true, false, true, false]);
    expect(tombstones.get(all[0]?.operationId ?? '')).toMatchObject({ outcome: 'killed' });
    await root.close();
  });
});

describe('the documents in the files', () => {
  it('stay as long as their record, however old the file is', async () => {
    const folder = freshFolder();
    const files = filesOf(folder);
    const store = openLocalStore({ folder, ...limits });
    const record = ended(aRecord(), { keepMs: 10 * dayMs });
    await store.put(record);
    await store.putDocuments(record.operationId, documentsOf({ a: 1 }));
    await store.close();
    files.age(`${record.operationId}.bson`, 2 * dayMs);
    const again = openLocalStore({ folder, ...limits });
    await again.put(aRecord());
    expect(await again.getDocuments(record.operationId)).toEqual(documentsOf({ a: 1 }));
    await again.close();
  });

  it('go with their record when that is to be kept shorter than others', async () => {
    const folder = freshFolder();
    const store = openLocalStore({ folder, ...limits });
    const record = aRecord();
    await store.put(record);
    await store.putDocuments(record.operationId, documentsOf({ a: 1 }));
    await store.put(ended(record, { keepMs: 1_000, endedAt: ago(2_000) }));
    await store.close();
    const again = openLocalStore({ folder, ...limits });
    await again.put(aRecord());
    expect(filesOf(folder).has(`${record.operationId}.bson`)).toBe(false);
    await again.close();
  });

  it('that no record is of go when no record could ask for them any more, and what a crash left of writing too', async () => {
    const folder = freshFolder();
    const files = filesOf(folder);
    const kept = ended(aRecord(), { keepMs: 10 * dayMs });
    const store = openLocalStore({ folder, ...limits });
    await store.put(kept);
    await store.close();
    const names = { young: `${newOperationId()}.bson`, old: `${newOperationId()}.bson`, halfWritten: `${kept.operationId}.bson.123` };
    for (const name of Object.values(names)) writeFileSync(files.path(name), 'x');
    files.age(names.young, limits.maxRetentionMs - 60_000);
    files.age(names.old, limits.maxRetentionMs + 60_000);
    files.age(names.halfWritten, limits.maxRetentionMs + 60_000);
    const again = openLocalStore({ folder, ...limits });
    await again.put(aRecord());
    expect(Object.values(names).map((name) => files.has(name))).toEqual([true, false, false]);
    await again.close();
  });
});

describe('an older program', () => {
  /** Opens the file as one does that knows three databases in it. */
  function asOlder(folder: string) {
    const root = open<unknown, string>({ path: localStorePath(folder), encoding: 'json', overlappingSync: false, maxDbs: 4 });
    const named = (name: string) => root.openDB<Record<string, unknown>, string>({ name, encoding: 'json' });
    return { root, running: named('running'), ended: named('ended'), instances: named('instances') };
  }
  const known = (record: object) => Object.fromEntries(Object.entries(record).filter(([name]) => !['keepMs', 'task', 'answerAs'].includes(name)));

  it('left records that are read, and kept for as long as they were to be', async () => {
    const folder = freshFolder();
    await openLocalStore({ folder, ...limits }).close();
    const [runs, kept, old] = [aRecord(), ended(aRecord()), ended(aRecord(), { endedAt: ago(2 * limits.retentionMs) })];
    const older = asOlder(folder);
    await older.running.put(runs.operationId, known(runs));
    for (const record of [kept, old]) await older.ended.put(record.operationId, known(record));
    await older.root.close();
    const store = openLocalStore({ folder, ...limits });
    expect(await store.get(runs.operationId)).toEqual({ ...runs, keepMs: null, task: false, answerAs: null });
    expect(await store.unended()).toMatchObject([{ keepMs: null, task: false, answerAs: null }]);
    expect(await store.get(kept.operationId)).toEqual({ ...kept, keepMs: null, task: false, answerAs: null });
    expect(await store.get(old.operationId)).toBeNull();
    expect(await store.expired(old.operationId)).toMatchObject({ outcome: 'succeeded' });
    await store.close();
  });

  it('reads and writes the records beside what was dropped', async () => {
    const folder = freshFolder();
    const store = openLocalStore({ folder, ...limits });
    const [kept, old] = [ended(aRecord(), { keepMs: dayMs, task: true }), ended(aRecord(), { endedAt: ago(2 * limits.retentionMs) })];
    for (const record of [kept, old]) await store.put(record);
    await store.close();
    const between = openLocalStore({ folder, ...limits });
    await between.put(aRecord());
    await between.close();
    const older = asOlder(folder);
    expect(older.root.get('schema')).toEqual({ version: 1 });
    expect(older.ended.get(kept.operationId)).toMatchObject({ outcome: 'succeeded' });
    expect(older.ended.get(old.operationId)).toBeUndefined();
    const added = ended(aRecord());
    await older.ended.put(added.operationId, known(added));
    await older.root.close();
    const again = openLocalStore({ folder, ...limits });
    expect(await again.get(added.operationId)).toMatchObject({ outcome: 'succeeded' });
    expect(await again.get(kept.operationId)).toMatchObject({ keepMs: dayMs, task: true });
    expect(await again.expired(old.operationId)).toMatchObject({ outcome: 'succeeded' });
    await again.close();
  });
});
