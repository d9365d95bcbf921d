import { describe, expect, it } from 'vitest';
import type { Look } from '../../src/core/ports.js';
import { createWatch } from '../../src/core/watch.js';

/** A node whose looks end when the test says so. */
function slowNode() {
  const begun: { node: string; end: () => void }[] = [];
  const watch = createWatch({
    look: (node) => new Promise<Look>((resolve) => {
      begun.push({ node, end: () => { resolve({ ok: true, node, startedAt: 0, endedAt: 0, process: { id: null, me: null }, hits: [] }); } });
    }),
  });
  return { begun, watch };
}

describe('looks', () => {
  it('one at a time and node: all who ask while one runs share the next, which begins after they asked', async () => {
    const { begun, watch } = slowNode();
    const first = watch.look(['a']);
    const second = watch.look(['a']);
    const third = watch.look(['a']);
    expect(begun).toHaveLength(1);
    begun[0]?.end();
    await first;
    await Promise.resolve();
    expect(begun).toHaveLength(2);
    begun[1]?.end();
    expect((await second)[0]).toBe((await third)[0]);
    expect(begun).toHaveLength(2);
  });
  it('of different nodes do not wait for each other', () => {
    const { begun, watch } = slowNode();
    void watch.look(['a', 'b']);
    expect(begun.map(({ node }) => node)).toEqual(['a', 'b']);
  });
});
