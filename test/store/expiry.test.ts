import { describe, expect, it } from 'vitest';
import type { Store } from '../../src/core/ports.js';
import type { OperationRecord } from '../../src/domain/operation.js';
import { openLocalStore } from '../../src/store/local.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { aRecord, documentsOf, ended, freshFolder, newOperationId } from '../support/records.js';

const limits = { retentionMs: 3_600_000, maxRetentionMs: 86_400_000, maxResultBytes: 1_000_000 };
const minuteMs = 60_000;
const dayMs = 86_400_000;

/** Time stands until a test moves it. */
function handTime() {
  const startedAt = Date.now();
  let passedMs = 0;
  return { passed: () => passedMs, now: () => startedAt + passedMs, iso: () => new Date(startedAt + passedMs).toISOString(), pass: (ms: number) => void (passedMs += ms) };
}
type HandTime = ReturnType<typeof handTime>;

const kinds: { name: string; open(time: HandTime): Store }[] = [
  { name: 'memory', open: (time) => createMemoryStore(limits, { now: time.passed }) },
  { name: 'local', open: (time) => openLocalStore({ folder: freshFolder(), ...limits }, time.now) },
];

describe.each(kinds)('the $name store', ({ open }) => {
  function start() {
    const time = handTime();
    return { time, store: open(time), endedNow: (changes: Partial<OperationRecord> = {}) => ended(aRecord({ createdAt: time.iso() }), { endedAt: time.iso(), ...changes }) };
  }

  it('keeps what has ended for as long as its record says, and for its own time when that says nothing', async () => {
    const { store, time, endedNow } = start();
    const [usual, longer, shorter] = [endedNow(), endedNow({ keepMs: 5 * limits.retentionMs }), endedNow({ keepMs: minuteMs })];
    const kept = async () => {
      const left: string[] = [];
      for (const [name, { operationId }] of Object.entries({ usual, longer, shorter })) {
        const isThere = (await store.get(operationId)) !== null;
        expect((await store.getDocuments(operationId)) !== null).toBe(isThere);
        expect((await store.list()).some((record) => record.operationId === operationId)).toBe(isThere);
        expect((await store.expired(operationId)) === null).toBe(isThere);
        if (isThere) left.push(name);
      }
      return left;
    };
    for (const record of [usual, longer, shorter]) {
      await store.put(record);
      await store.putDocuments(record.operationId, documentsOf({ a: 1 }));
    }
    expect(await kept()).toEqual(['usual', 'longer', 'shorter']);
    time.pass(minuteMs + 1);
    expect(await kept()).toEqual(['usual', 'longer']);
    time.pass(limits.retentionMs - minuteMs - 1);
    expect(await kept()).toEqual(['usual', 'longer']);
    time.pass(1);
    await store.put(aRecord());
    expect(await kept()).toEqual(['longer']);
    time.pass(4 * limits.retentionMs);
    expect(await kept()).toEqual([]);
    await store.close();
  });

  it('never drops what has not ended, however short it is to be kept', async () => {
    const { store, time } = start();
    const running = aRecord({ keepMs: 1, createdAt: time.iso(), deadlineAt: time.iso() });
    await store.put(running);
    for (let day = 0; day < 6; day += 1) {
      time.pass(dayMs);
      await store.put(aRecord());
      expect(await store.get(running.operationId)).toEqual(running);
      expect(await store.expired(running.operationId)).toBeNull();
    }
    await store.put(ended(running, { endedAt: time.iso() }));
    time.pass(2);
    expect(await store.get(running.operationId)).toBeNull();
    await store.close();
  });

  it('says of what it dropped how that ended, and nothing more', async () => {
    const { store, time, endedNow } = start();
    const record = endedNow({ outcome: 'killed', cause: 'kill_tool', keepMs: minuteMs, principal: 'somebody@somewhere' });
    const { operationId, endedAt } = record;
    await store.put(record);
    expect(await store.expired(operationId)).toBeNull();
    time.pass(minuteMs + 1);
    const left = { operationId, principal: 'somebody@somewhere', outcome: 'killed', cause: 'kill_tool', endedAt, expiredAt: new Date(time.now() - 1).toISOString() };
    expect(await store.expired(operationId)).toEqual(left);
    // Something else is put, which is when what is too old is dropped.
    for (let i = 0; i < 2; i += 1) {
      time.pass(2 * minuteMs);
      await store.put(aRecord());
      expect(await store.expired(operationId)).toEqual(left);
    }
    expect(await store.expired(newOperationId())).toBeNull();
    await store.close();
  });

  it('has again what was put again after it was dropped, and says so when that is dropped too', async () => {
    const { store, time, endedNow } = start();
    const lost = endedNow({ outcome: 'lost', keepMs: minuteMs });
    await store.put(lost);
    time.pass(2 * minuteMs);
    await store.put(aRecord());
    expect(await store.expired(lost.operationId)).toMatchObject({ outcome: 'lost' });
    await store.put({ ...lost, outcome: 'succeeded', endedAt: time.iso() });
    expect(await store.get(lost.operationId)).toMatchObject({ outcome: 'succeeded' });
    expect(await store.expired(lost.operationId)).toBeNull();
    time.pass(2 * minuteMs);
    await store.put(aRecord());
    expect(await store.expired(lost.operationId)).toMatchObject({ outcome: 'succeeded' });
    await store.close();
  });
});

it('the memory store remembers 10,000 that it dropped, and forgets the oldest first', async () => {
  const time = handTime();
  const store = createMemoryStore(limits, { now: time.passed });
  const dropped: string[] = [];
  for (let i = 0; i < 10_002; i += 1) {
    const record = ended(aRecord(), { keepMs: 1 });
    await store.put(record);
    dropped.push(record.operationId);
    time.pass(2);
  }
  const known = await Promise.all(dropped.map(async (id) => (await store.expired(id)) !== null));
  expect(known.slice(0, 4)).toEqual([false, false, true, true]);
  expect(known.filter(Boolean)).toHaveLength(10_000);
});
