import { readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { afterEach, describe, expect, it } from 'vitest';
import type { Store } from '../../src/core/ports.js';
import { createIsolatedStore } from '../../src/store/isolated.js';
import { localStorePath } from '../../src/store/local-path.js';
import { eventually } from '../support/mongo.js';
import { isAlive, storeProcessOf } from '../support/processes.js';
import { aRecord, documentsOf, ended, freshFolder } from '../support/records.js';

type Isolated = Omit<Store, 'problem'>;

const program = new URL('../../dist/store/isolated-process.js', import.meta.url);
const opened: Isolated[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await eventually('no process of a store is left', () => storeProcessOf(process.pid) === null);
});

function openStore(folder: string, times: { openMs?: number; callMs?: number } = {}): Isolated {
  const store = createIsolatedStore({ folder, retentionMs: 3_600_000, maxResultBytes: 1_000_000, openMs: 20_000, callMs: 20_000, ...times, program });
  opened.push(store);
  return store;
}

describe('several processes on one store', () => {
  it('lose nothing of each other, and see what another has just put', async () => {
    const folder = freshFolder();
    const stores = [openStore(folder), openStore(folder), openStore(folder), openStore(folder)];
    const records = stores.map(() => Array.from({ length: 25 }, () => aRecord()));
    await Promise.all(stores.map(async (store, at) => {
      await Promise.all((records[at] ?? []).map((record) => store.put(record)));
    }));
    const ids = records.flat().map(({ operationId }) => operationId).sort();
    for (const store of stores) expect((await store.list()).map(({ operationId }) => operationId).sort()).toEqual(ids);
    const [first, second] = stores;
    for (const record of records.flat().slice(0, 20)) {
      await first?.put(ended(record));
      expect(await second?.get(record.operationId)).toMatchObject({ outcome: 'succeeded' });
    }
  });

  it('agree on one end when they record two at once', async () => {
    const folder = freshFolder();
    const [a, b] = [openStore(folder), openStore(folder)];
    const records = Array.from({ length: 30 }, () => aRecord());
    await Promise.all(records.map((record) => a.put(record)));
    await Promise.all(records.flatMap((record) => [a.put(ended(record, { outcome: 'succeeded' })), b.put(ended(record, { outcome: 'killed' }))]));
    for (const { operationId } of records) {
      const [one, other] = await Promise.all([a.get(operationId), b.get(operationId)]);
      expect(one?.outcome).toMatch(/succeeded|killed/);
      expect(other).toEqual(one);
    }
  });
});

describe('the process that holds the store', () => {
  it('starts with the first call, and ends with the last', async () => {
    const store = openStore(freshFolder());
    expect(storeProcessOf(process.pid)).toBeNull();
    const record = ended(aRecord());
    await store.put(record);
    await store.putDocuments(record.operationId, documentsOf({ a: 1 }));
    expect(await store.getDocuments(record.operationId)).toEqual(documentsOf({ a: 1 }));
    const holder = storeProcessOf(process.pid) ?? 0;
    expect(isAlive(holder)).toBe(true);
    await store.close();
    await eventually('it is gone', () => !isAlive(holder));
  });

  it('has the record on its disk when put is answered, though it is killed right after', async () => {
    const folder = freshFolder();
    const store = openStore(folder);
    for (let i = 0; i < 5; i += 1) {
      const record = aRecord();
      await store.put(record);
      process.kill(storeProcessOf(process.pid) ?? 0, 'SIGKILL');
      const other = openStore(folder);
      expect(await other.get(record.operationId)).toEqual(record);
      await other.close();
    }
  });

  it('is given up in time when it is stopped, and the next call has another one', async () => {
    const store = openStore(freshFolder(), { callMs: 300 });
    const record = aRecord();
    await store.put(record);
    const holder = storeProcessOf(process.pid) ?? 0;
    process.kill(holder, 'SIGSTOP');
    const startedAt = performance.now();
    await expect(store.get(record.operationId)).rejects.toMatchObject({ kind: 'gone', message: expect.stringMatching(/did not answer within 300 ms/) });
    expect(performance.now() - startedAt).toBeLessThan(1_500);
    await eventually('it is gone', () => !isAlive(holder));
    expect(await store.get(record.operationId)).toEqual(record);
  });

  it('that was killed is an error of the call, and the next call has another one', async () => {
    const store = openStore(freshFolder());
    const record = aRecord();
    await store.put(record);
    const holder = storeProcessOf(process.pid) ?? 0;
    process.kill(holder, 'SIGSTOP');
    const asked = store.get(record.operationId);
    process.kill(holder, 'SIGKILL');
    await expect(asked).rejects.toMatchObject({ kind: 'gone', message: expect.stringMatching(/ended \(SIGKILL\)/) });
    expect(await store.get(record.operationId)).toEqual(record);
  });
});

describe('a damaged file', () => {
  async function filled(): Promise<{ folder: string; path: string }> {
    const folder = freshFolder();
    const store = openStore(folder);
    await Promise.all(Array.from({ length: 200 }, () => store.put(ended(aRecord({ reason: 'x'.repeat(2_000) })))));
    await store.close();
    return { folder, path: localStorePath(folder) };
  }

  it.each([
    ['cut in the middle', (path: string) => { truncateSync(path, Math.floor(statSync(path).size / 2)); }],
    ['cut in its first page', (path: string) => { truncateSync(path, 100); }],
    ['of other bytes', (path: string) => { writeFileSync(path, 'not a store at all\n'.repeat(1_000)); }],
  ])('%s is an error that names the file, and never ends this process', async (_how, damage) => {
    const { folder, path } = await filled();
    damage(path);
    const store = openStore(folder);
    const asked = store.list();
    await expect(asked).rejects.toMatchObject({ kind: 'gone' });
    await expect(asked).rejects.toThrow(path);
  });

  it('that was moved away is followed by a new one', async () => {
    const { folder, path } = await filled();
    truncateSync(path, 100);
    const store = openStore(folder);
    await expect(store.list()).rejects.toMatchObject({ kind: 'gone' });
    writeFileSync(path, '');
    await store.put(aRecord());
    expect(await store.list()).toHaveLength(1);
    expect(readFileSync(path).length).toBeGreaterThan(0);
  });
});
