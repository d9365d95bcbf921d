import { describe, expect, it } from 'vitest';
import { laterForm } from '../../src/domain/later-form.js';
import type { KillReport } from '../../src/domain/operation.js';
import { outcomes } from '../../src/domain/words.js';
import { aRecord, ended } from '../support/records.js';

const running = aRecord();
const kill: KillReport = { verdict: 'stopped', reason: 'seen, killed, absent', cause: 'command_line', requestedAt: '', before: [], sent: [], after: [], elapsedMs: 1 };

describe('a record that is kept again', () => {
  it('replaces one that has not ended', () => {
    expect(laterForm(null, running)).toBe(running);
    const later = { ...running, documentsRead: 5 };
    expect(laterForm(running, later)).toBe(later);
  });

  it('never takes an end away', () => {
    for (const outcome of outcomes) expect(laterForm(ended(running, { outcome }), running)).toMatchObject({ outcome });
  });

  it('changes no outcome but lost', () => {
    for (const from of outcomes) {
      for (const to of outcomes) expect(laterForm(ended(running, { outcome: from }), ended(running, { outcome: to })).outcome).toBe(from === 'lost' ? to : from);
    }
  });
});

describe('one end that two processes saw', () => {
  const byOwner = ended(running, { outcome: 'killed', by: 'others', documentsRead: 7, error: { message: 'interrupted', code: 11601 }, endedAt: '2026-01-01T00:00:00.000Z' });
  const byKiller = ended(running, { outcome: 'killed', by: 'us', cause: 'command_line', kill, endedAt: '2026-01-01T00:00:00.100Z' });

  it.each([
    ['the one that killed it', byOwner, byKiller],
    ['the one that ran it', byKiller, byOwner],
  ])('has the kill and what was read, also when %s says it last', (_who, first, second) => {
    expect(laterForm(first, second)).toMatchObject({ by: 'us', cause: 'command_line', kill, documentsRead: 7, error: { code: 11601 }, endedAt: first.endedAt });
  });
});
