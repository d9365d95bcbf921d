/** Reads the stages that name other collections or hold pipelines of their own. */

import { isDocument, readEntries, readOptions, typeName } from './document.js';
import { readName, readNamespace } from './namespaces.js';
import { at, badArgument, type Place } from './place.js';
import type { Namespace } from './settings.js';
import type { StageContext, StageReader } from './stage-context.js';

const lookupOptions = ['from', 'as', 'localField', 'foreignField', 'let', 'pipeline'];
const graphLookupOptions = [
  'from', 'as', 'startWith', 'connectFromField', 'connectToField', 'maxDepth', 'depthField', 'restrictSearchWithMatch',
];

/** `from` may be missing: the pipeline then starts with `$documents` and reads no collection. */
function readLookup(known: readonly string[]): StageReader {
  return (spec, place, context) => {
    const options = readOptions(spec, place, known);
    let from: Namespace = { db: context.on.db, coll: null };
    if (options.has('from')) {
      from = readNamespace(options.get('from'), context.on.db, at(place, 'from'));
      context.name(from, at(place, 'from'));
    }
    checkRest(options, place, context, from);
  };
}

/** `coll` may be missing, as `from` in `$lookup`. Only Atlas Data Federation takes `db`. */
const readUnionWith: StageReader = (spec, place, context) => {
  if (typeof spec === 'string') return context.name({ db: context.on.db, coll: spec }, place);
  const options = readOptions(spec, place, ['coll', 'db', 'pipeline']);
  const from = {
    db: options.has('db') ? readName(options.get('db'), at(place, 'db')) : context.on.db,
    coll: options.has('coll') ? readName(options.get('coll'), at(place, 'coll')) : null,
  };
  if (options.has('coll') || options.has('db')) context.name(from, place);
  checkRest(options, place, context, from);
};

/** The options other than the collection's name; their pipeline runs on that collection, and in its database. */
function checkRest(options: Map<string, unknown>, place: Place, context: StageContext, on: Namespace): void {
  for (const [name, value] of options) {
    const here = at(place, name);
    if (name === 'pipeline') context.nested(value, on, here);
    else if (name !== 'from') context.values(value, here, name === 'startWith' ? 'expression' : 'names');
  }
}

const readFacet: StageReader = (spec, place, context) => checkNamedPipelines(spec, place, context);

/** `$rankFusion` and `$scoreFusion`: `input.pipelines` maps names to pipelines over the same collection. */
const readFusion: StageReader = (spec, place, context) => {
  const options = readOptions(spec, place, ['input', 'combination', 'scoreDetails']);
  const inputPlace = at(place, 'input');
  const input = readOptions(options.get('input'), inputPlace, ['pipelines', 'normalization']);
  checkNamedPipelines(input.get('pipelines'), at(inputPlace, 'pipelines'), context);
  context.values(input.get('normalization'), at(inputPlace, 'normalization'), 'names');
  context.values(options.get('combination'), at(place, 'combination'), 'names');
  context.values(options.get('scoreDetails'), at(place, 'scoreDetails'), 'names');
};

function checkNamedPipelines(spec: unknown, place: Place, context: StageContext): void {
  if (!isDocument(spec)) throw badArgument(place, `it must map names to pipelines, and is ${typeName(spec)}`);
  for (const [name, pipeline] of readEntries(spec, place)) context.nested(pipeline, context.on, at(place, name));
}

export const readingStages: ReadonlyMap<string, StageReader> = new Map([
  ['$lookup', readLookup(lookupOptions)],
  ['$graphLookup', readLookup(graphLookupOptions)],
  ['$unionWith', readUnionWith],
  ['$facet', readFacet],
  ['$rankFusion', readFusion],
  ['$scoreFusion', readFusion],
]);
