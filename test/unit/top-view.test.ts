/** What top shows and which keys do what, without a terminal. */

import { describe, expect, test } from 'vitest';
import type { SurveyEntry, SurveyResult } from '../../src/core/survey.js';
import { type TopState, emptyState, keysOf, pressAll, render, selectedEntry } from '../../src/cli/top-view.js';
import { width } from '../../src/cli/text.js';

const entry = (id: string, more: Partial<SurveyEntry> = {}): SurveyEntry => ({
  operationId: id, requestId: 'n:1', principal: '#abc', session: 'sss', instance: 'iii', liveness: 'alive', orphan: false, client: '10.0.0.1:5', appName: null, users: [],
  node: 'db1:27017', op: 'command', opid: 7, cursorId: null, namespace: 'shop.orders', seconds: 12.34, plan: 'COLLSCAN', state: 'running', timeLeftMs: 5_000, writes: false, comment: null, internal: false, ...more,
});
const survey = (entries: SurveyEntry[], more: Partial<SurveyResult> = {}): SurveyResult => ({ entries, looked: ['db1:27017'], ownOnly: [], silent: [], processes: new Map(), ...more });
const state = (entries: SurveyEntry[], more: Partial<TopState> = {}): TopState => ({ ...emptyState, survey: survey(entries), at: '2026-01-01T00:00:00.000Z', ...more });
const press = (from: TopState, ...inputs: string[]) => inputs.reduce<{ state: TopState; actions: unknown[] }>((at, input) => pressAll(at.state, input), { state: from, actions: [] });
const texts = (of: TopState, columns = 120, rows = 20) => render(of, { columns, rows }).map(({ text }) => text);

describe('keys', () => {
  test('an escape sequence is one key, and every other character is one', () => {
    expect(keysOf('j\u001b[A\u001bOBx\u001b[1;5Cq')).toEqual(['j', '\u001b[A', '\u001bOB', 'x', '\u001b[1;5C', 'q']);
  });

  test('the selection stays with its operation when the order changes, and at the ends', () => {
    const moved = press(state([entry('a'), entry('b'), entry('c')]), 'j').state;
    expect(selectedEntry(moved)?.operationId).toBe('b');
    const later = { ...moved, survey: survey([entry('x'), entry('b'), entry('a')]) };
    expect(selectedEntry(later)?.operationId).toBe('b');
    expect(selectedEntry(press(later, 'k', 'k', 'k').state)?.operationId).toBe('x');
    expect(selectedEntry(press(later, '\u001b[B', '\u001b[B', '\u001b[B').state)?.operationId).toBe('a');
  });

  test('a kill needs two keys, one after the other, for the same operation', () => {
    const from = state([entry('a'), entry('b')]);
    expect(press(from, 'y').actions).toEqual([]);
    expect(press(from, 'j', 'x', 'y').actions).toMatchObject([{ kill: { operationId: 'b' } }]);
    expect(press(from, 'x', 'j', 'y').actions).toEqual([]);
    expect(press(from, 'x', 'n', 'y').actions).toEqual([]);
    expect(press(from, 'x', 'y', 'y').actions).toEqual([]);
  });

  test('pasted text never kills', () => {
    const from = state([entry('a')]);
    expect(press(from, 'xy').actions).toEqual([]);
    expect(press(from, 'x', 'zy').actions).toEqual([]);
    expect(press(from, 'xyxyxy').actions).toEqual([]);
  });

  test('the second key does not reach another operation that took the place of the one asked about', () => {
    const asked = press(state([entry('a')]), 'x').state;
    const { state: after, actions } = press({ ...asked, survey: survey([entry('b')]) }, 'y');
    expect(actions).toEqual([]);
    expect(after.notes[0]).toContain('a: no look sees it any more');
  });

  test('q and Ctrl-C leave, whatever is asked', () => {
    expect(press(state([entry('a')]), 'x', 'q').actions).toEqual(['quit']);
    expect(press(state([]), '\u0003').actions).toEqual(['quit']);
  });
});

describe('the screen', () => {
  test('has as many lines as the terminal, each as wide, at any size', () => {
    const full = state(Array.from({ length: 50 }, (_, i) => entry(`op${i}`, { namespace: '世界'.repeat(20) })), { notes: ['one', 'two', 'three', 'four'], confirming: 'op3' });
    for (const columns of [1, 10, 80, 300]) {
      for (const rows of [1, 2, 3, 5, 24, 100]) {
        const lines = texts(full, columns, rows);
        expect(lines).toHaveLength(rows);
        for (const line of lines) expect(width(line)).toBe(columns);
      }
    }
  });

  test('always shows the selected row, and what is asked', () => {
    let at = state(Array.from({ length: 50 }, (_, i) => entry(`op${i}`)));
    at = press(at, ...Array<string>(49).fill('j'), 'x').state;
    const lines = texts(at, 100, 10);
    expect(lines.some((line) => line.startsWith('> ') && line.includes('op49'))).toBe(true);
    expect(lines.at(-1)).toContain('kill op49');
    expect(texts(at, 100, 1)).toEqual([expect.stringContaining('kill op49')]);
  });

  test('says what it could not see', () => {
    const silent = state([], {});
    const seen = texts({ ...silent, survey: survey([], { silent: [{ node: 'db2:27017', reason: 'timed out' }], ownOnly: ['db1:27017'] }) });
    expect(seen.join('\n')).toMatch(/0 tagged operations on 1 of 2 nodes/);
    expect(seen.join('\n')).toMatch(/db2:27017 did not answer \(timed out\): what runs there is unknown/);
    expect(seen.join('\n')).toMatch(/only this user's own operations/);
    expect(texts({ ...silent, failure: 'all is lost' }).join('\n')).toMatch(/no look succeeded since 2026-01-01T00:00:00.000Z: all is lost/);
  });

  test('text of strangers cannot rewrite it', () => {
    const evil = '\u001b[2J\u001b]0;x\u0007\r\n\u009b31m\u202e';
    const lines = texts(state([entry('a', { namespace: evil, principal: evil, client: evil, plan: evil })], { notes: [evil], failure: evil }));
    expect(lines.join('')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
  });
});
