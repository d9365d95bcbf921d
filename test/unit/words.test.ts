import { describe, expect, it } from 'vitest';
import { isFinal, nextOutcome, nextWait, outcomes, verdicts, waits } from '../../src/domain/words.js';

describe("the client's side", () => {
  it('moves only forward', () => {
    expect(nextWait('waiting', 'detached')).toBe('detached');
    expect(nextWait('waiting', 'cancelled')).toBe('cancelled');
    expect(() => nextWait('cancelled', 'answered')).toThrow(/illegal/);
    expect(() => nextWait('answered', 'waiting')).toThrow(/illegal/);
  });
  it('may be set to what it is', () => {
    for (const wait of waits) expect(nextWait(wait, wait)).toBe(wait);
  });
});

describe('an outcome', () => {
  it('is never changed, but for lost, which a late reply settles', () => {
    for (const from of outcomes) {
      for (const to of outcomes) {
        if (from === to || from === 'lost') expect(nextOutcome(from, to)).toBe(to);
        else expect(() => nextOutcome(from, to)).toThrow(/illegal/);
      }
    }
  });
});

it('only stopped, ended_first, never_sent and gone are final', () => {
  expect(verdicts.filter(isFinal)).toEqual(['stopped', 'ended_first', 'never_sent', 'gone']);
});
