/** Many small operations in a row: what is on the disk leaves this process, what can wait is one message, and nothing is asked out of order. */

import { afterEach, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Store } from '../../src/core/ports.js';
import { createIsolatedStore } from '../../src/store/isolated.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { createResilientStore } from '../../src/store/resilient.js';
import { eventually } from '../support/mongo.js';
import { storeProcessOf } from '../support/processes.js';
import { aRecord, documentsOf, ended, freshFolder } from '../support/records.js';

const program = new URL('../../dist/store/isolated-process.js', import.meta.url);
const limits = { retentionMs: 3_600_000, maxResultBytes: 10_000_000 };
const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const opened: Omit<Store, 'problem'>[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  await eventually('no process of a store is left', () => storeProcessOf(process.pid) === null);
});

function openIsolated() {
  const store = createIsolatedStore({ folder: freshFolder(), ...limits, openMs: 20_000, callMs: 20_000, program });
  opened.push(store);
  return store;
}

function openResilient({ keepDocuments = true } = {}) {
  const clock = systemClock();
  const memory = createMemoryStore(limits, clock);
  const store = createResilientStore({ local: openIsolated(), memory, clock, log, keepDocuments });
  return { store, memory };
}

it('of records that have ended and are on the disk the newest 1,000 stay in memory, and all that run', async () => {
  const { store, memory } = openResilient();
  const running = aRecord();
  await store.put(running);
  const records = Array.from({ length: 1_200 }, () => ended(aRecord()));
  await Promise.all(records.map((record) => store.put(record)));
  expect(await memory.list()).toHaveLength(1_001);
  expect(await memory.get(running.operationId)).not.toBeNull();
  const [first] = records;
  expect(await memory.get(first?.operationId ?? '')).toBeNull();
  expect(await store.get(first?.operationId ?? '')).toMatchObject({ outcome: 'succeeded' });
  expect(await store.list()).toHaveLength(1_201);
});

it('documents that are in this process only stay with their records', async () => {
  const { store } = openResilient({ keepDocuments: false });
  const records = Array.from({ length: 1_100 }, () => ended(aRecord()));
  for (const record of records) {
    const kept = store.put(record);
    await store.putDocuments(record.operationId, documentsOf({ a: 1 }));
    await kept;
    if (records.indexOf(record) > 2 && records.indexOf(record) < 1_090) continue;
    expect(await store.getDocuments(record.operationId)).toEqual(documentsOf({ a: 1 }));
  }
  expect(await store.getDocuments(records[0]?.operationId ?? '')).toEqual(documentsOf({ a: 1 }));
});

it('whoever asks sees what was put before, though it was left to wait for more', async () => {
  const store = openIsolated();
  const record = aRecord();
  await store.put(record);
  const waiting = [store.putDocuments(record.operationId, documentsOf({ a: 1 }, { a: 2 })), store.put(ended(record))];
  expect(await store.get(record.operationId)).toMatchObject({ outcome: 'succeeded' });
  expect(await store.getDocuments(record.operationId)).toEqual(documentsOf({ a: 1 }, { a: 2 }));
  await Promise.all(waiting);
});

it('what waits for more is on the disk without anybody asking', async () => {
  const store = openIsolated();
  const record = aRecord();
  await store.put(record);
  await store.put(ended(record));
  expect(await store.unended()).toEqual([]);
});
