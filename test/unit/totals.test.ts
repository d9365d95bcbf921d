/** CI believes one line, so a run in which something broke must never end in `0 failed`. */
import { expect, test } from 'vitest';
import { totalsLine } from '../../scripts/totals.mjs';

const report = { numPassedTests: 5, numFailedTests: 0, numPendingTests: 0, numTodoTests: 0, testResults: [] };
const passed = { status: 'passed' };
const failed = { status: 'failed' };

test('the line holds the totals of the report', () => {
  expect(totalsLine(report)).toBe('5 passed, 0 failed');
  expect(totalsLine({ ...report, numPendingTests: 1, numTodoTests: 2 })).toBe('5 passed, 0 failed, 3 skipped');
});

test('a test file that could not be loaded counts as one failure', () => {
  const testResults = [{ ...failed, assertionResults: [] }];
  expect(totalsLine({ ...report, testResults })).toBe('5 passed, 1 failed');
});

test('a test file whose hook threw after its tests passed counts as one failure', () => {
  const testResults = [{ ...failed, assertionResults: [passed, passed] }];
  expect(totalsLine({ ...report, testResults })).toBe('5 passed, 1 failed');
});

test('a failed test is not counted again for its file', () => {
  const testResults = [{ ...failed, assertionResults: [passed, failed] }];
  expect(totalsLine({ ...report, numFailedTests: 1, testResults })).toBe('5 passed, 1 failed');
});
