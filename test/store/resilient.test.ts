import { mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { keepRecord } from '../../src/core/keep.js';
import type { Store } from '../../src/core/ports.js';
import { createIsolatedStore } from '../../src/store/isolated.js';
import { localStorePath } from '../../src/store/local-path.js';
import { describeInstance } from '../../src/store/machine.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { createResilientStore } from '../../src/store/resilient.js';
import type { OperationRecord } from '../../src/domain/operation.js';
import { eventually } from '../support/mongo.js';
import { storeProcessOf } from '../support/processes.js';
import { aRecord, documentsOf, ended, freshFolder, holdsText } from '../support/records.js';
import { mountSmallDisk } from '../support/small-disk.js';

const program = new URL('../../dist/store/isolated-process.js', import.meta.url);
const limits = { retentionMs: 3_600_000, maxResultBytes: 1_000_000 };
const opened: Store[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await eventually('no process of a store is left', () => storeProcessOf(process.pid) === null);
});

function openStore(folder: string, { keepDocuments = true, callMs = 20_000 } = {}) {
  const real = systemClock();
  let skippedMs = 0;
  const clock = { ...real, now: () => real.now() + skippedMs };
  const logged: string[] = [];
  const note = (fields: object, message: string) => { logged.push(`${message} ${JSON.stringify(fields)}`); };
  const log = { debug: () => undefined, info: note, warn: note, error: note };
  const local = createIsolatedStore({ folder, ...limits, openMs: 20_000, callMs, program });
  const store = createResilientStore({ local, memory: createMemoryStore(limits, clock), clock, log, keepDocuments });
  opened.push(store);
  return { store, logged, skip: (ms: number) => void (skippedMs += ms) };
}

/** What a store of another process has there. */
async function onDisk<T>(folder: string, ask: (store: Store) => Promise<T>): Promise<T> {
  const other = createIsolatedStore({ folder, ...limits, openMs: 20_000, callMs: 20_000, program });
  const answer = await ask({ ...other, problem: () => null });
  await other.close();
  return answer;
}

describe('with a disk that works', () => {
  it('everything is on the disk, and no note says otherwise', async () => {
    const folder = freshFolder();
    const { store, logged } = openStore(folder);
    const record = aRecord();
    await keepRecord(store, record);
    await store.putDocuments(record.operationId, documentsOf({ a: 1 }));
    await keepRecord(store, ended(record));
    expect(record.notes).toEqual([]);
    expect(store.problem()).toBeNull();
    expect(logged).toEqual([]);
    expect(await onDisk(folder, (disk) => disk.get(record.operationId))).toMatchObject({ outcome: 'succeeded' });
    expect(await onDisk(folder, (disk) => disk.getDocuments(record.operationId))).toEqual(documentsOf({ a: 1 }));
  });

  it('documents that are not to be kept are in this process only', async () => {
    const folder = freshFolder();
    const { store, logged } = openStore(folder, { keepDocuments: false });
    const record = ended(aRecord());
    await store.put(record);
    await store.putDocuments(record.operationId, documentsOf({ text: 'production-data' }));
    expect(await store.getDocuments(record.operationId)).toEqual(documentsOf({ text: 'production-data' }));
    expect(await onDisk(folder, (disk) => disk.getDocuments(record.operationId))).toBeNull();
    expect(holdsText(folder, 'production-data')).toBe(false);
    expect(logged).toEqual([]);
  });

  it('what another process has dropped for its age is known, and what this one keeps is not said to be dropped', async () => {
    const folder = freshFolder();
    const { store } = openStore(folder);
    const [old, kept] = [ended(aRecord(), { endedAt: new Date(Date.now() - 2 * limits.retentionMs).toISOString() }), ended(aRecord())];
    await onDisk(folder, (disk) => Promise.all([disk.put(old), disk.put(kept)]));
    await onDisk(folder, (disk) => disk.put(aRecord()));
    expect(await store.expired(old.operationId)).toMatchObject({ outcome: 'succeeded', principal: old.principal });
    expect(await store.expired(kept.operationId)).toBeNull();
  });

  it('an end that another process records is seen', async () => {
    const folder = freshFolder();
    const { store } = openStore(folder);
    const record = aRecord();
    await store.put(record);
    expect(await store.unended()).toHaveLength(1);
    await onDisk(folder, (disk) => disk.put(ended(record, { outcome: 'lost' })));
    expect(await store.get(record.operationId)).toMatchObject({ outcome: 'lost' });
    expect(await store.list()).toMatchObject([{ outcome: 'lost' }]);
    expect(await store.unended()).toEqual([]);
  });
});

const failures: { name: string; why: RegExp; make(folder: string): void | Promise<void>; mend?: (folder: string) => void }[] = [
  { name: 'a folder that cannot be made', why: /EEXIST|ENOTDIR/, make: (folder) => { writeFileSync(folder, 'a file'); }, mend: (folder) => { rmSync(folder); } },
  {
    name: 'a file that was cut off',
    why: /SIGBUS|SIGSEGV/,
    async make(folder) {
      await onDisk(folder, (store) => store.put(aRecord()));
      truncateSync(localStorePath(folder), 100);
    },
    mend: (folder) => { rmSync(localStorePath(folder)); },
  },
  {
    name: 'a store of a newer version',
    why: /newer mongo-leash/,
    async make(folder) {
      mkdirSync(folder);
      const newer = open({ path: localStorePath(folder), encoding: 'json', overlappingSync: false });
      await newer.put('schema', { version: 999 });
      await newer.close();
    },
  },
];

async function expectItGoesOn(store: Store, logged: string[], why: RegExp): Promise<OperationRecord> {
  await store.putInstance(describeInstance('aaaaaaaaaa', ''));
  const record = aRecord();
  for (let i = 0; i < 3; i += 1) await keepRecord(store, record);
  await store.putDocuments(record.operationId, documentsOf({ a: 1 }));
  const end = ended(record);
  await keepRecord(store, end);
  expect(end.notes).toEqual([expect.stringMatching(/^Its record, or what it read, is kept in this process only: /)]);
  expect(end.notes[0]).toMatch(why);
  expect(store.problem()).toMatch(why);
  expect(await store.get(record.operationId)).toMatchObject({ outcome: 'succeeded' });
  expect((await store.list('tester@here')).map(({ operationId }) => operationId)).toContain(record.operationId);
  expect(await store.getDocuments(record.operationId)).toEqual(documentsOf({ a: 1 }));
  expect(await store.instances()).toHaveLength(1);
  expect(logged).toHaveLength(1);
  expect(logged[0]).toMatch(/everything goes on.*--state-folder/);
  return end;
}

async function expectItIsMadeGood(store: Store, logged: string[], end: OperationRecord, folder: string): Promise<void> {
  await eventually('what was missing is written', async () => {
    await store.list();
    return logged.length === 2;
  });
  expect(logged[1]).toMatch(/can be used again/);
  expect(store.problem()).toBeNull();
  await keepRecord(store, end);
  expect(end.notes).toEqual([]);
  expect(await onDisk(folder, (at) => at.get(end.operationId))).toMatchObject({ outcome: 'succeeded' });
  expect(await onDisk(folder, (at) => at.getDocuments(end.operationId))).toEqual(documentsOf({ a: 1 }));
  expect(await onDisk(folder, (at) => at.instances())).toHaveLength(1);
}

describe.each(failures)('with $name', ({ why, make, mend }) => {
  it('everything goes on in this process, the record and the log say so, and it is made good', async () => {
    const folder = join(freshFolder(), 'state');
    await make(folder);
    const { store, logged, skip } = openStore(folder);
    const end = await expectItGoesOn(store, logged, why);
    const short = ended(aRecord(), { keepMs: 1_000 });
    await store.put(short);
    skip(1_001);
    expect(await store.get(short.operationId)).toBeNull();
    expect(await store.expired(short.operationId)).toMatchObject({ outcome: 'succeeded' });
    skip(31_000);
    if (mend === undefined) {
      await store.put(aRecord());
      expect(logged).toHaveLength(1);
      return;
    }
    mend(folder);
    await expectItIsMadeGood(store, logged, end, folder);
  });
});

describe('with a disk that is full', () => {
  const { disk, why } = mountSmallDisk(400);
  afterAll(() => disk?.remove());

  it.skipIf(disk === null)(`everything goes on in this process, and is on the disk when there is room again${why === null ? '' : ` (skipped: ${why})`}`, async () => {
    if (disk === null) return;
    const folder = join(disk.folder, 'state');
    const { store, logged, skip } = openStore(folder);
    const before = aRecord();
    await store.put(before);
    disk.fill();
    const end = await expectItGoesOn(store, logged, /No space|ENOSPC|Input\/output|SIGBUS/);
    expect(await store.get(before.operationId)).toEqual(before);
    skip(31_000);
    disk.free();
    await expectItIsMadeGood(store, logged, end, folder);
    expect(await onDisk(folder, (at) => at.get(before.operationId))).toEqual(before);
  });
});

it('a process of the store that hangs costs one short wait, and is asked again later', async () => {
  const { store, logged, skip } = openStore(freshFolder(), { callMs: 300 });
  await store.put(aRecord());
  process.kill(storeProcessOf(process.pid) ?? 0, 'SIGSTOP');
  const startedAt = performance.now();
  for (let i = 0; i < 20; i += 1) await store.put(aRecord());
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  expect(logged).toEqual([expect.stringMatching(/did not answer within 300 ms/)]);
  skip(31_000);
  await eventually('what was missing is written', async () => {
    await store.list();
    return logged.length === 2;
  });
  expect(await store.list()).toHaveLength(21);
});

it('the end of the process waits for records on their way', async () => {
  const folder = freshFolder();
  const { store } = openStore(folder);
  const record = aRecord();
  await store.put(record);
  void store.putDocuments(record.operationId, documentsOf({ a: 1 })).then(() => store.put(ended(record)));
  await store.close();
  expect(await onDisk(folder, (disk) => disk.get(record.operationId))).toMatchObject({ outcome: 'succeeded' });
});
