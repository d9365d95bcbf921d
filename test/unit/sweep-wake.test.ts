/** The sweep's own timer, with a clock that can jump as it does when a machine sleeps. */

import { afterEach, describe, expect, it, vi } from 'vitest';
import { createLive } from '../../src/core/live.js';
import type { Clock, Deployment, Look } from '../../src/core/ports.js';
import { createRegistry } from '../../src/core/registry.js';
import { createSweep } from '../../src/core/sweep.js';
import { createMemoryStore } from '../../src/store/memory.js';
import { aRecord } from '../support/records.js';

const logged: { message: string; fields: any }[] = [];
const note = (fields: object, message: string) => { logged.push({ fields, message }); };
const log = { debug: () => undefined, info: note, warn: note, error: note };

interface Timer { atMs: number; call: () => void; background: boolean }

/** Time stands until a test moves it. */
function handClock() {
  let nowMs = 0;
  let timers: Timer[] = [];
  const clock: Clock = {
    now: () => nowMs,
    iso: (at = nowMs) => new Date(Date.UTC(2026, 0, 1) + at).toISOString(),
    after(ms, call, options) {
      const timer = { atMs: nowMs + ms, call, background: options?.background === true };
      timers.push(timer);
      return () => { timers = timers.filter((each) => each !== timer); };
    },
  };
  return {
    clock,
    timers: () => timers,
    /** Whatever is due fires only when the time has come to an end, as after a sleep. */
    async jump(ms: number) {
      nowMs += ms;
      const due = timers.filter(({ atMs }) => atMs <= nowMs);
      timers = timers.filter(({ atMs }) => atMs > nowMs);
      for (const { call } of due) call();
      await vi.waitUntil(() => timers.some(({ atMs }) => atMs > nowMs));
    },
  };
}

async function start(mode: 'kill' | 'off') {
  logged.length = 0;
  const hand = handClock();
  const { clock } = hand;
  const looks: string[] = [];
  const empty = (node: string): Look => ({ ok: true, node, startedAt: clock.now(), endedAt: clock.now(), process: { id: 'p', me: null }, hits: [] });
  const deployment = { ready: async () => undefined, nodes: () => ['a:1'] } as unknown as Deployment;
  const registry = createRegistry();
  const judged: string[] = [];
  const own = createLive(clock, aRecord({ instance: 'self000000', node: 'a:1' }), { foreign: false, writes: false, deadlineInMs: 60_000 });
  own.execution = {} as NonNullable<typeof own.execution>;
  registry.add(own);
  const sweep = createSweep({
    deployment,
    clock,
    log,
    registry,
    store: createMemoryStore({ retentionMs: 1_000, maxResultBytes: 1_000 }, clock),
    watch: { look: async (nodes) => (looks.push(...nodes), nodes.map(empty)) },
    adopt: () => { throw new Error('nothing is to be adopted here'); },
    killer: { kill: () => { throw new Error('nothing is to be killed here'); } },
    conclude: (operation) => { judged.push(operation.record.operationId); return { verdict: 'pending', server: 'running', outcome: null, by: null, reason: '' }; },
    settle: async () => new Map(),
    self: { instance: 'self000000', startedAt: '', hostname: 'h', machineId: null, pid: 1, bootId: null, pidNamespace: null, processStart: null },
    livenessOf: async () => 'unknown',
    mode,
  });
  sweep.start();
  await vi.waitUntil(() => hand.timers().length > 0);
  return { ...hand, sweep, looks, judged, own };
}

let stop: () => void = () => undefined;
afterEach(() => { stop(); });

describe('the sweep', () => {
  it('looks at once and every minute, on a timer that keeps no process alive', async () => {
    const { sweep, looks, timers, jump } = await start('kill');
    stop = sweep.stop;
    expect(looks).toHaveLength(1);
    await jump(60_000);
    await jump(60_000);
    expect(looks).toHaveLength(3);
    expect(timers().every(({ background }) => background)).toBe(true);
    expect(logged).toEqual([]);
    sweep.stop();
    expect(timers()).toEqual([]);
  });

  it('takes its own operations for possibly ended after a long sleep: it says so, and judges them by a look', async () => {
    const { sweep, jump, judged, own } = await start('kill');
    stop = sweep.stop;
    await jump(60_000 + 119_000);
    expect(judged).toEqual([]);
    await jump(60_000 + 121_000);
    expect(judged).toEqual([own.record.operationId]);
    expect(own.facts).toMatchObject([{ kind: 'absent', node: 'a:1' }]);
    expect(logged).toEqual([{ message: expect.stringMatching(/did not run for a while/), fields: { sleptForMs: 121_000, operations: [own.record.operationId] } }]);
  });

  it('looks at nothing when it is off', async () => {
    const { sweep, looks, jump } = await start('off');
    stop = sweep.stop;
    await jump(60_000);
    expect(looks).toEqual([]);
  });
});
