/** What a record says of an operation that has been answered stays as it went to the store. */
import { describe, expect, it } from 'vitest';
import { addFact } from '../../src/domain/facts.js';
import { addLook, createLive, refreshRecord } from '../../src/core/live.js';
import type { Look } from '../../src/core/ports.js';
import { createHandClock } from '../support/hand-clock.js';
import { aRecord } from '../support/records.js';

const emptyLook = (): Look => ({ ok: true, node: 'a:1', startedAt: 0, endedAt: 2, process: { id: 'p', me: null }, hits: [] });

function answered(outcome: 'succeeded' | null) {
  const clock = createHandClock();
  const operation = createLive(clock, aRecord({ node: 'a:1', outcome }), { foreign: false, writes: false, deadlineInMs: 60_000 });
  addFact(operation.facts, { kind: 'sent', t: 0, node: 'a:1' });
  refreshRecord(clock, operation);
  const before = structuredClone(operation.record);
  addLook(operation, emptyLook());
  refreshRecord(clock, operation);
  return { before, after: operation.record };
}

describe('a look that ends after the reply has come', () => {
  it('adds nothing to the evidence of the end', () => {
    const { before, after } = answered('succeeded');
    expect(after).toEqual(before);
  });

  it('is evidence where there is no reply', () => {
    const { after } = answered(null);
    expect(after.evidence).toContainEqual(expect.objectContaining({ node: 'a:1', saw: 'nothing' }));
  });
});
