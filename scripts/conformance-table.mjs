/** What of the conformance suite concerns this server, scenario by scenario: nothing is left out without a reason in words. */

const run = { run: true, except: {} };
/** Checks that cannot apply, each with its reason. They are shown, and it is an error when one of them passes after all. */
const runExcept = (except) => ({ run: true, except });
const skip = (reason) => ({ run: false, reason });

const prompts = 'this server has no prompts';
const fixedResources = 'it reads resources with addresses of the suite: those of this server are of its operations';
const subscriptions = 'this server has no subscriptions to resources';
const noRequests = 'this server sends no requests to clients of the versions up to 2025-11-25';
const noState = 'this server keeps no state between the rounds of a call, so it never sends requestState';

/** By the suite's name of the scenario. One that the suite has and this table has not fails the run, and the other way round. */
export const scenarios = {
  'server-initialize': run,
  'server-session-lifecycle': run,
  'server-stateless': run,
  'logging-set-level': skip('this server sends no log messages to clients'),
  ping: run,
  'completion-complete': skip('this server completes no arguments: it has no prompts, and the ids of operations are not for guessing'),
  'tools-list': run,
  'tools-call-simple-text': run,
  'tools-call-image': run,
  'tools-call-audio': run,
  'tools-call-embedded-resource': run,
  'tools-call-mixed-content': run,
  'tools-call-with-logging': skip('this server sends no log messages to clients'),
  'tools-call-error': run,
  'tools-call-with-progress': run,
  'tools-call-sampling': skip(noRequests),
  'tools-call-elicitation': skip(noRequests),
  'json-schema-2020-12': runExcept({ 'json-schema-2020-12-$schema': 'schemas name no dialect: 2020-12 is the one that MCP assumes then' }),
  'elicitation-sep1034-defaults': skip(noRequests),
  'server-sse-polling': run,
  'server-sse-multiple-streams': run,
  'elicitation-sep1330-enums': skip(noRequests),
  'resources-list': run,
  'resources-read-text': skip(fixedResources),
  'resources-read-binary': skip(fixedResources),
  'resources-templates-read': skip(fixedResources),
  'resources-subscribe': skip(subscriptions),
  'resources-unsubscribe': skip(subscriptions),
  'sep-2164-resource-not-found': run,
  'sep-2640-skills-directory': skip('this server has no skills'),
  'sep-2640-skills-enumeration': skip('this server has no skills'),
  'sep-2640-skills-manifest': skip('this server has no skills'),
  'prompts-list': skip(prompts),
  'prompts-get-simple': skip(prompts),
  'prompts-get-with-args': skip(prompts),
  'prompts-get-embedded-resource': skip(prompts),
  'prompts-get-with-image': skip(prompts),
  'dns-rebinding-protection': run,
  caching: runExcept({
    'sep-2549-prompts-list-caching-hints': prompts,
  }),
  'http-header-validation': run,
  'http-custom-header-server-validation': skip('no tool of this server asks for a header of its own (x-mcp-header)'),
  'tasks-lifecycle': run,
  'tasks-capability-negotiation': run,
  'tasks-wire-fields': run,
  'tasks-request-state-removal': run,
  'tasks-mrtr-input': run,
  'tasks-request-headers': run,
  'tasks-dispatch-and-envelope': run,
  'tasks-status-notifications': skip('the suite itself checks nothing in it yet'),
  'tasks-required-task-error': run,
  'tasks-mrtr-composition': run,
  'input-required-result-basic-elicitation': run,
  'input-required-result-basic-sampling': run,
  'input-required-result-basic-list-roots': run,
  'input-required-result-request-state': skip(noState),
  'input-required-result-multiple-input-requests': run,
  'input-required-result-multi-round': skip(noState),
  'input-required-result-missing-input-response': run,
  'input-required-result-non-tool-request': skip(prompts),
  'input-required-result-result-type': run,
  'input-required-result-unsupported-methods': run,
  'input-required-result-tampered-state': skip(noState),
  'input-required-result-capability-check': skip('what a client has not declared is refused with -32021 (server-stateless checks it), never left out of the question'),
  'input-required-result-ignore-extra-params': run,
  'input-required-result-validate-input': run,
};

/** Two that begin with `initialize`, and the stateless one. A scenario of several is run at each: they are different protocols. */
const versions = ['2025-06-18', '2025-11-25', '2026-07-28'];

/**
 * Reads what `conformance list --server` prints.
 * @param {string} text
 * @returns {Map<string, string[]>} the versions to run each scenario at; none for an extension, which knows its own
 */
export const readList = (text) =>
  new Map([...text.matchAll(/^ +- (\S+) \[(.+)\]$/gm)].map(([, name, of]) => [name, versions.filter((version) => of.split(',').includes(version))]));

/**
 * @param {Iterable<string>} listed the names of the suite's scenarios
 * @returns {string[]} how the table and the suite disagree
 */
export const disagreements = (listed) => {
  const names = new Set(listed);
  return [
    ...[...names].filter((name) => !(name in scenarios)).map((name) => `${name} is a scenario of the suite, and the table does not know it`),
    ...Object.keys(scenarios).filter((name) => !names.has(name)).map((name) => `${name} stands in the table, and is no scenario of the suite`),
  ];
};

/** Added to every scenario: whether the messages had the right shape. A scenario has checks of its own besides. */
const shapeCheck = 'wire-schema-valid';

/**
 * Judges the checks of one scenario.
 * @param {{id: string, status: string, errorMessage?: string, description: string}[]} checks as the suite writes them
 * @param {Record<string, string>} except reasons of checks that cannot apply, by their id
 * @returns {{passed: number, failures: string[], remarks: string[]}} `failures` is empty when the scenario has passed
 */
export const judge = (checks, except) => {
  const told = ({ id, errorMessage, description }) => `${id}: ${errorMessage ?? description}`;
  const of = (...statuses) => checks.filter(({ status }) => statuses.includes(status));
  const passed = of('SUCCESS');
  const failed = of('FAILURE');
  const failures = failed.filter(({ id }) => !(id in except)).map(told);
  for (const id of Object.keys(except)) if (!failed.some((check) => check.id === id)) failures.push(`${id}: the table says that it cannot apply, and it did not fail`);
  // What checked nothing has shown nothing.
  if (failures.length === 0 && !passed.some(({ id }) => id !== shapeCheck)) failures.push('no check of its own passed');
  const remarks = [
    ...failed.filter(({ id }) => id in except).map(({ id }) => `cannot apply: ${id}: ${except[id]}`),
    ...of('WARNING').map((check) => `warning: ${told(check)}`),
    ...of('SKIPPED').map((check) => `skipped by the suite: ${told(check)}`),
  ];
  return { passed: passed.length, failures, remarks };
};
