import { describe, expect, it } from 'vitest';
import { createAdmission } from '../../src/core/admission.js';

const never = new AbortController().signal;

describe('admission', () => {
  it('lets so many in at once, and the next when one leaves', async () => {
    const admission = createAdmission({ maxOperations: 2, maxQueued: 10 });
    const leave = await admission.enter('a', never);
    await admission.enter('a', never);
    const third = admission.enter('a', never);
    expect(admission.load()).toEqual({ running: 2, queued: 1 });
    leave();
    await third;
    expect(admission.load()).toEqual({ running: 2, queued: 0 });
  });
  it('is fair between principals: one with a long queue does not starve another', async () => {
    const admission = createAdmission({ maxOperations: 1, maxQueued: 100 });
    const order: string[] = [];
    const leave = await admission.enter('busy', never);
    const all = ['busy', 'busy', 'busy', 'quiet'].map(async (principal, i) => {
      const done = await admission.enter(principal, never);
      order.push(`${principal}${i}`);
      done();
    });
    leave();
    await Promise.all(all);
    expect(order).toEqual(['busy0', 'quiet3', 'busy1', 'busy2']);
  });
  it('refuses as busy when the queue is full, and says how full it is', async () => {
    const admission = createAdmission({ maxOperations: 1, maxQueued: 0 });
    await admission.enter('a', never);
    await expect(admission.enter('b', never)).rejects.toMatchObject({ code: 'busy', message: expect.stringContaining('1 operations run and 0 wait') as string });
  });
  it('a place given back twice is given back once', async () => {
    const admission = createAdmission({ maxOperations: 1, maxQueued: 5 });
    const leave = await admission.enter('a', never);
    leave();
    leave();
    await admission.enter('a', never);
    expect(admission.load()).toEqual({ running: 1, queued: 0 });
    const waiting = admission.enter('a', never);
    expect(admission.load().queued).toBe(1);
    void waiting;
  });
  it('one that is cancelled while it waits takes no place, and the others keep theirs', async () => {
    const admission = createAdmission({ maxOperations: 1, maxQueued: 5 });
    const leave = await admission.enter('a', never);
    const cancel = new AbortController();
    const cancelled = admission.enter('a', cancel.signal);
    const next = admission.enter('a', never);
    cancel.abort(new Error('cancelled'));
    await expect(cancelled).rejects.toThrow('cancelled');
    leave();
    await next;
    expect(admission.load()).toEqual({ running: 1, queued: 0 });
  });
});
