/** How the run of the conformance suite is judged: what it must not overlook. */

import { describe, expect, test } from 'vitest';
import { disagreements, judge, readList, scenarios } from '../../scripts/conformance-table.mjs';

const check = (id: string, status: string, errorMessage?: string) => ({ id, status, description: `about ${id}`, ...(errorMessage === undefined ? {} : { errorMessage }) });

describe('the table of scenarios', () => {
  test('gives a reason in words for everything that is not run, and for every check that cannot apply', () => {
    for (const [name, entry] of Object.entries(scenarios)) {
      const reasons = entry.run ? Object.values(entry.except) : [entry.reason];
      for (const reason of reasons) expect(reason, name).toMatch(/\w+ \w+ \w+/);
    }
  });

  test('agrees with the suite only when each knows the scenarios of the other', () => {
    const names = Object.keys(scenarios);
    expect(disagreements(names)).toEqual([]);
    expect(disagreements([...names, 'tasks-new'])).toEqual([expect.stringContaining('tasks-new')]);
    expect(disagreements(names.slice(1))).toEqual([expect.stringContaining(names[0] ?? '')]);
  });

  test('reads scenarios and their versions from what the suite lists', () => {
    const listed = readList('Server scenarios (test against a server):\n  - ping [2025-03-26,2025-11-25]\n  - tools-list [2025-11-25,2026-07-28]\n  - tasks-lifecycle [extension]\n');
    expect([...listed]).toEqual([['ping', ['2025-11-25']], ['tools-list', ['2025-11-25', '2026-07-28']], ['tasks-lifecycle', []]]);
  });
});

describe('a scenario', () => {
  test('passes when its checks pass, and shows warnings', () => {
    expect(judge([check('a', 'SUCCESS'), check('b', 'WARNING', 'should do'), check('c', 'INFO')], {})).toEqual({ passed: 1, failures: [], remarks: ['warning: b: should do'] });
  });

  test('fails with the message of each check that failed', () => {
    expect(judge([check('a', 'SUCCESS'), check('b', 'FAILURE', 'broken'), check('c', 'FAILURE')], {}).failures).toEqual(['b: broken', 'c: about c']);
  });

  test('fails when nothing was checked', () => {
    expect(judge([check('a', 'SKIPPED'), check('b', 'INFO')], {}).failures).toEqual(['no check of its own passed']);
    expect(judge([check('wire-schema-valid', 'SUCCESS')], {}).failures).toHaveLength(1);
    expect(judge([], {}).failures).toHaveLength(1);
  });

  test('passes with a failed check that cannot apply, and shows the reason', () => {
    expect(judge([check('a', 'SUCCESS'), check('b', 'FAILURE')], { b: 'no prompts here' })).toEqual({ passed: 1, failures: [], remarks: ['cannot apply: b: no prompts here'] });
  });

  test('fails when a check that cannot apply passes after all', () => {
    expect(judge([check('a', 'SUCCESS'), check('b', 'SUCCESS')], { b: 'no prompts here' }).failures).toEqual([expect.stringContaining('b: ')]);
    expect(judge([check('a', 'SUCCESS')], { b: 'no prompts here' }).failures).toHaveLength(1);
  });
});
