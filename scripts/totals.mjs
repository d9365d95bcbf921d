/** Turns vitest's json report into the one line that tells whether all is well. */

/**
 * `N passed, N failed`, and `, N skipped` when some were. A test file that failed outside its tests (it could not be
 * loaded, a hook threw) counts as one failure: none of its tests failed, and some never ran.
 */
export const totalsLine = ({ numPassedTests, numFailedTests, numPendingTests, numTodoTests, testResults }) => {
  const brokenFiles = testResults.filter(
    ({ status, assertionResults }) => status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  );
  const skipped = numPendingTests + numTodoTests;
  return `${numPassedTests} passed, ${numFailedTests + brokenFiles.length} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
};
