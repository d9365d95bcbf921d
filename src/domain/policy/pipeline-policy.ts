/** The pipeline policy's entry: nothing reaches the database that it has not let through. */

import { isDocument, readEntries, typeName } from './document.js';
import { checkNamespace, checkNamespaceAt } from './namespaces.js';
import { at, badArgument, pathOf, quote, rootPlace, type Place } from './place.js';
import { readingStages } from './reading-stages.js';
import type { Namespace, PipelineFacts, PolicySettings } from './settings.js';
import type { StageContext } from './stage-context.js';
import { checkStageName, checkWrites } from './stage-name.js';
import { expressionStages, isWriteStage, readStages } from './stages.js';
import { checkValues, type Position } from './values.js';
import { expressionWatch, stageWatch, writesTooEarly, type Watch } from './watches.js';
import { readWrite } from './writing-stages.js';

export { checkNamespace };
export type { Namespace, PipelineFacts, PolicySettings };

/**
 * Checks a whole pipeline, already converted from EJSON, before anything is sent. Views are not resolved here: the
 * caller looks up each of the facts' namespaces, and checks a view's definition by this same function.
 * @param on the namespace that the pipeline runs on; for a view's definition, its `viewOn`
 * @param path what errors call the pipeline
 * @throws LeashError `bad_argument` for what is no pipeline, `refused_by_policy` for what this server does not allow
 */
export function checkPipeline(
  pipeline: readonly unknown[],
  on: Namespace,
  settings: PolicySettings,
  path = 'pipeline',
): PipelineFacts {
  // What a view reads stands in its definition, and not in the caller's arguments.
  const onPath = path === 'pipeline' ? 'collection' : path;
  checkNamespace(on, settings, onPath);
  const facts: PipelineFacts = { writes: null, namespaces: [{ ns: on, path: onPath }] };
  checkStages(pipeline, on, rootPlace(path), { settings, facts, watch: stageWatch(settings) }, true);
  return facts;
}

/**
 * Checks an argument other than a pipeline's stages (`let`, a filter, projection, update, arrayFilters): no
 * server-side JavaScript and nothing internal to the server, at any depth.
 * @throws LeashError `refused_by_policy`; `bad_argument` for values that cannot be sent
 */
export function checkExpression(value: unknown, settings: PolicySettings, path: string): void {
  checkValues(value, rootPlace(path), expressionWatch(settings), 'names');
}

/** What one call of {@link checkPipeline} carries into each nested pipeline. */
interface Run {
  settings: PolicySettings;
  facts: PipelineFacts;
  watch: Watch;
}

function checkStages(pipeline: unknown, on: Namespace, place: Place, run: Run, isWhole: boolean): void {
  if (!Array.isArray(pipeline)) {
    throw badArgument(place, `a pipeline is an array of stages, not ${typeName(pipeline)}`);
  }
  const context = stageContext(on, run);
  for (let i = 0; i < pipeline.length; i++) {
    const [name, spec] = readStage(pipeline[i], at(place, i), run.settings);
    const here = at(at(place, i), name);
    checkStageName(name, here, run.settings);
    if (isWriteStage(name)) {
      if (!isWhole || i !== pipeline.length - 1) throw writesTooEarly(name, here);
      run.facts.writes = { stage: name, target: readWrite(name, spec, here, context) };
    } else {
      const read = readingStages.get(name);
      if (read) read(spec, here, context);
      else context.values(spec, here, positionOf(name));
    }
  }
}

function positionOf(stage: string): Position {
  if (expressionStages.has(stage)) return 'expression';
  return readStages.has(stage) ? 'names' : 'unknown';
}

function stageContext(on: Namespace, run: Run): StageContext {
  return {
    on,
    name: (ns, place) => {
      checkNamespaceAt(ns, run.settings, place);
      run.facts.namespaces.push({ ns, path: pathOf(place) });
    },
    nested: (stages, nestedOn, place) => checkStages(stages, nestedOn, place, run, false),
    values: (value, place, position) => checkValues(value, place, run.watch, position),
  };
}

/** The name and the specification of a stage. */
function readStage(stage: unknown, place: Place, settings: PolicySettings): [string, unknown] {
  if (!isDocument(stage)) {
    throw badArgument(place, `a stage is an object such as {"$match": {...}}, not ${typeName(stage)}`);
  }
  const entries = readEntries(stage, place);
  const [first] = entries;
  if (first === undefined) throw badArgument(place, 'a stage has one key, such as "$match", and this one has none');
  if (entries.length === 1) return first;
  // Which of the keys a server would run is its own affair: a write among them is a write.
  for (const [key] of entries) if (isWriteStage(key)) checkWrites(key, at(place, key), settings);
  const names = entries.slice(0, 4).map(([key]) => quote(key));
  throw badArgument(
    place,
    `a stage has one key, and this one has ${entries.length} (${names.join(', ')}${entries.length > 4 ? ', …' : ''})`,
    'Make each of them a stage of its own.',
  );
}
