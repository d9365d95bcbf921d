import { mkdirSync, readFileSync, readdirSync, statSync, truncateSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import { describe, expect, it, vi } from 'vitest';
import { openLocalStore, schemaVersion } from '../../src/store/local.js';
import { localStorePath } from '../../src/store/local-path.js';
import { describeInstance } from '../../src/store/machine.js';
import { defaultStateFolder } from '../../src/store/state-folder.js';
import { aRecord, documentsOf, ended, freshFolder, holdsText } from '../support/records.js';

const limits = { retentionMs: 3_600_000, maxResultBytes: 1_000_000 };
const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

describe('the files of the local store', () => {
  it('are for their owner alone', async () => {
    const folder = join(freshFolder(), 'deep', 'mongo-leash');
    const store = openLocalStore({ folder, ...limits });
    const record = aRecord();
    await store.put(record);
    await store.putDocuments(record.operationId, documentsOf({ a: 1 }));
    await store.close();
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    expect(entries.filter((entry) => entry.isFile())).toHaveLength(3);
    expect(modeOf(folder)).toBe('700');
    for (const entry of entries) expect([entry.name, modeOf(join(entry.parentPath, entry.name))]).toEqual([entry.name, entry.isFile() ? '600' : '700']);
  });

  it('stand in the state folder of the system', () => {
    expect(defaultStateFolder({ XDG_STATE_HOME: '/state' }, 'linux', '/home/a')).toBe('/state/mongo-leash');
    expect(defaultStateFolder({ XDG_STATE_HOME: 'relative' }, 'linux', '/home/a')).toBe('/home/a/.local/state/mongo-leash');
    expect(defaultStateFolder({ XDG_STATE_HOME: '' }, 'linux', '/home/a')).toBe('/home/a/.local/state/mongo-leash');
    expect(defaultStateFolder({}, 'darwin', '/Users/a')).toBe('/Users/a/Library/Application Support/mongo-leash');
    expect(defaultStateFolder({ LOCALAPPDATA: '/local' }, 'win32', '/a')).toBe('/local/mongo-leash');
  });

  it('leave a folder that is there as it is', () => {
    const folder = join(freshFolder(), 'shared');
    mkdirSync(folder, { mode: 0o755 });
    openLocalStore({ folder, ...limits });
    expect(modeOf(folder)).toBe('755');
    expect(modeOf(localStorePath(folder))).toBe('600');
  });
});

describe('the local store', () => {
  it('has after it was closed what was put before, newest first and by principal', async () => {
    const folder = freshFolder();
    const first = aRecord({ createdAt: '2026-01-01T00:00:00.000Z' });
    const second = aRecord({ createdAt: '2026-01-02T00:00:00.000Z', requestId: '1' });
    const other = aRecord({ createdAt: '2026-01-03T00:00:00.000Z', principal: 'else@here' });
    const self = describeInstance('aaaaaaaaaa', new Date().toISOString());
    const store = openLocalStore({ folder, ...limits });
    await store.putInstance(self);
    for (const record of [second, other, ended(first)]) await store.put(record);
    await store.putDocuments(first.operationId, documentsOf({ a: 1 }, { b: 2 }));
    await store.close();

    const again = openLocalStore({ folder, ...limits });
    expect((await again.list('tester@here')).map(({ operationId }) => operationId)).toEqual([second.operationId, first.operationId]);
    expect(await again.list()).toHaveLength(3);
    expect((await again.unended()).map(({ operationId }) => operationId).sort()).toEqual([second.operationId, other.operationId].sort());
    expect(await again.get(second.operationId)).toEqual(second);
    expect(await again.getDocuments(first.operationId)).toEqual(documentsOf({ a: 1 }, { b: 2 }));
    expect(await again.getDocuments(second.operationId)).toBeNull();
    expect(await again.instances()).toEqual([self]);
    await again.close();
  });

  it('keeps an end against whatever comes later', async () => {
    const store = openLocalStore({ folder: freshFolder(), ...limits });
    const record = aRecord();
    await store.put(ended(record, { outcome: 'lost' }));
    await store.put(record);
    expect(await store.get(record.operationId)).toMatchObject({ outcome: 'lost' });
    await store.put(ended(record, { outcome: 'killed' }));
    await store.put(ended(record, { outcome: 'lost' }));
    expect(await store.get(record.operationId)).toMatchObject({ outcome: 'killed' });
    expect(await store.unended()).toEqual([]);
    await store.close();
  });

  it('drops the oldest documents when all of them together are too large, and no record', async () => {
    const store = openLocalStore({ folder: freshFolder(), retentionMs: 3_600_000, maxResultBytes: 25_000 });
    const records = [aRecord(), aRecord(), aRecord()];
    for (const record of records) {
      await store.put(ended(record));
      await store.putDocuments(record.operationId, documentsOf({ text: 'x'.repeat(10_000) }));
      await vi.waitUntil(() => Date.now() > Date.parse(record.createdAt) + 20);
    }
    const kept = await Promise.all(records.map(async ({ operationId }) => (await store.getDocuments(operationId)) !== null));
    expect(kept).toEqual([false, true, true]);
    expect(await store.list()).toHaveLength(3);
    await store.close();
  });

  it('has no documents of an operation whose file was cut off', async () => {
    const folder = freshFolder();
    const store = openLocalStore({ folder, ...limits });
    const record = ended(aRecord());
    await store.put(record);
    await store.putDocuments(record.operationId, documentsOf({ a: 1 }, { text: 'x'.repeat(1_000) }));
    truncateSync(join(folder, 'results', `${record.operationId}.bson`), 500);
    expect(await store.getDocuments(record.operationId)).toBeNull();
    await store.close();
  });
});

describe('after the retention', () => {
  it('records and documents of ended operations are gone, from the disk too, and one that runs stays', async () => {
    const folder = freshFolder();
    const short = { folder, retentionMs: 1_000, maxResultBytes: 1_000_000 };
    const longAgo = new Date(Date.now() - 5_000);
    const running = aRecord({ createdAt: new Date(Date.now() - 86_400_000).toISOString(), deadlineAt: longAgo.toISOString() });
    const old = ended(aRecord(), { endedAt: longAgo.toISOString() });
    const store = openLocalStore(short);
    await store.put(running);
    await store.put(old);
    await store.putDocuments(old.operationId, documentsOf({ text: 'production-data' }));
    expect(holdsText(folder, 'production-data')).toBe(true);
    expect(await store.get(old.operationId)).toBeNull();
    expect(await store.getDocuments(old.operationId)).toBeNull();
    await store.close();

    const again = openLocalStore(short);
    const file = join(folder, 'results', `${old.operationId}.bson`);
    utimesSync(file, longAgo, longAgo);
    await again.put(aRecord());
    expect(holdsText(folder, 'production-data')).toBe(false);
    expect(await again.get(running.operationId)).toMatchObject({ outcome: null });
    await again.close();
  });

  it('a record without an end goes a week after its deadline, when its process would long have kept it again', async () => {
    const folder = freshFolder();
    const store = openLocalStore({ folder, ...limits });
    const forgotten = aRecord({ deadlineAt: new Date(Date.now() - 8 * 86_400_000).toISOString() });
    await store.put(forgotten);
    await store.close();
    const again = openLocalStore({ folder, ...limits });
    await again.put(aRecord());
    expect(await again.get(forgotten.operationId)).toBeNull();
    await again.close();
  });
});

it('a store of a newer version is refused and left as it is', async () => {
  const folder = freshFolder();
  const store = openLocalStore({ folder, ...limits });
  await store.put(aRecord());
  await store.close();
  const path = localStorePath(folder);
  const newer = open({ path, encoding: 'json', overlappingSync: false });
  await newer.put('schema', { version: schemaVersion + 1 });
  await newer.close();
  const before = readFileSync(path);
  expect(() => openLocalStore({ folder, ...limits })).toThrow(/newer mongo-leash.*left as it is.*--state-folder/);
  expect(readFileSync(path).equals(before)).toBe(true);
});
