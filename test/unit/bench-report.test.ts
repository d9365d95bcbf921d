/** What the measurement says of itself: a goal that was missed, or could not be measured, is never told as reached. */

import { expect, it } from 'vitest';
import { type Measured, goalsOf, pageOf, quantile, tableOf } from '../../scripts/bench/report.mjs';

function measured(who: string, one: number, many: number, start: number): Measured {
  return { who, one: [one], many: [many], start: [start], perSecondOne: 1_000 / one, perSecondMany: 16_000 / many, answerBytes: 2_938 };
}

const bare = measured('bare', 1, 10, 300);
const stock = measured('stock', 4, 30, 1_700);

it('a quantile is a time that was measured', () => {
  const times = [5, 1, 4, 2, 3];
  expect([quantile(times, 0.5), quantile(times, 0.99), quantile(times, 0)]).toEqual([3, 5, 1]);
});

it('a goal is reached at its limit, and missed beyond it', () => {
  const goals = goalsOf({ bare, ours: measured('ours', 1.25, 12.6, 301), stock });
  expect(goals.map(({ reached }) => reached)).toEqual([true, false, false, true, true, true]);
  expect(goals[1]?.found).toBe('1.26 times');
});

it('without the stock server what was to be compared with it is not measured, and the page says why', () => {
  const ours = measured('ours', 1.2, 11, 290);
  const goals = goalsOf({ bare, ours });
  expect(goals.map(({ reached }) => reached)).toEqual([true, true, true, null, null, null]);
  const page = pageOf({ facts: 'facts', table: tableOf({ bare, ours }), goals, skipped: 'no registry' });
  expect(page).toContain('The stock server was skipped: no registry.');
  expect(page.match(/\| reached \|/g)).toHaveLength(3);
  expect(page.match(/\| not measured \|/g)).toHaveLength(3);
});
