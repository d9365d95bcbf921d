/** `--index-check`: asks the database for the plan first, and lets nothing run that would scan a whole collection. */

import { BSON } from 'bson';
import { LeashError } from '../domain/errors.js';
import type { Namespace } from '../domain/policy/pipeline-policy.js';
import { type UnseenJoin, readPlan } from '../domain/query-plan.js';
import { failureAnswer } from './operation-answer.js';
import { type Read, runRead } from './read.js';
import type { ToolAnswer, ToolCaller, ToolDeps } from './tool.js';

/** What is to run, and the command that it is. */
export interface Checked extends Pick<Read, 'tool' | 'connectionId' | 'on' | 'namespaces' | 'maxTimeMS' | 'comment' | 'readPreference'> {
  explainable: Record<string, unknown>;
}

/** Explains for one call at most: joins within joins ask for one each. */
const maxExplains = 20;

/**
 * Each explain is an operation on the leash like any other, and ended before this settles.
 * @returns null when it may run; the answer of an explain that failed, was killed or timed out, when it may not
 * @throws LeashError refused_by_policy naming what would be scanned, or why that cannot be known
 */
export async function checkIndexes(checked: Checked, caller: ToolCaller, deps: Pick<ToolDeps, 'leash' | 'limits'>): Promise<ToolAnswer | null> {
  if (!deps.limits.indexCheck) return null;
  const { tool } = checked;
  const waiting: Explained[] = [{ on: checked.on, namespaces: checked.namespaces, command: checked.explainable, variables: [], path: null }];
  for (let asked = 0; asked < waiting.length; asked += 1) {
    if (asked >= maxExplains) throw refusal(tool, `it joins so much that more than ${maxExplains} plans would have to be looked at`);
    const { on, namespaces, command, variables, path } = waiting[asked]!;
    const answer = await runRead({ ...checked, on, namespaces, command: { kind: 'reply', db: on.db, command: { explain: command, verbosity: 'queryPlanner' } }, limit: 1, responseBytes: deps.limits.responseBytes, notes: [`This is the explain of the index check: ${tool} itself was not sent.`] }, caller, deps);
    const failure = failureAnswer(answer, deps.limits);
    if (failure !== null) return failure;
    const { scans, unseen, readable } = readPlan(BSON.deserialize(answer.documents[0] ?? BSON.serialize({})), deps.limits.maxLimit + 1);
    if (!readable) throw refusal(tool, 'the plan that the database gave cannot be read');
    if (scans.length > 0) throw refusal(tool, `${path === null ? '' : `${path} `}would scan the whole of ${scans.join(', ')}`);
    for (const join of unseen) waiting.push(explainOf(join, on, variables, checked.namespaces));
  }
  return null;
}

interface Explained {
  on: Namespace;
  namespaces: Checked['namespaces'];
  command: Record<string, unknown>;
  /** Those of the joins around it. */
  variables: readonly string[];
  path: string | null;
}

/** The join's own pipeline on the joined collection, with any value for what would come from outside. */
function explainOf({ stage, from, pipeline, variables }: UnseenJoin, within: Namespace, outer: readonly string[], known: Checked['namespaces']): Explained {
  const on = { db: from.db ?? within.db, coll: from.coll };
  const all = [...outer, ...variables];
  const path = known.find(({ ns }) => ns.db === on.db && ns.coll === on.coll)?.path ?? stage;
  const command = { aggregate: on.coll, pipeline, cursor: {}, ...(all.length === 0 ? {} : { let: Object.fromEntries(all.map((name) => [name, 1])) }) };
  return { on, namespaces: [{ ns: on, path }], command, variables: all, path: `its ${stage}` };
}

function refusal(tool: string, what: string): LeashError {
  return new LeashError('refused_by_policy', `The index check refused this ${tool}: ${what}.`, {
    database: 'Only its plan was asked for: it has not run.',
    next: 'Use a filter on an indexed field (explain shows the plan, collection-indexes the indexes), or ask the operator of this server to start it without --index-check.',
  });
}
