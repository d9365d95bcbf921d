/** Reads where `$out` and `$merge` write to: only a collection of this cluster can be checked, so nothing else passes. */

import { isDocument, readEntries, readOptions, typeName } from './document.js';
import { readName, readNamespace } from './namespaces.js';
import { at, badArgument, quote, refused, type Place } from './place.js';
import type { Namespace } from './settings.js';
import type { StageContext } from './stage-context.js';
import type { WriteStage } from './stages.js';

/**
 * Checks a write stage and returns its target, which has passed the namespace check.
 * @throws LeashError `bad_argument`, `refused_by_policy`
 */
export function readWrite(stage: WriteStage, spec: unknown, place: Place, context: StageContext): Namespace {
  return stage === '$out' ? readOut(spec, place, context) : readMerge(spec, place, context);
}

/** `"coll"` in the same database, or `{db, coll, timeseries}`; the server has no default for `db` here. */
function readOut(spec: unknown, place: Place, context: StageContext): Namespace {
  if (typeof spec === 'string') return named({ db: context.on.db, coll: spec }, place, context);
  if (!isDocument(spec)) throw badArgument(place, `$out takes a string or {db, coll}, not ${typeName(spec)}`);
  const options = readTarget(spec, place, ['db', 'coll', 'timeseries']);
  context.values(options.get('timeseries'), at(place, 'timeseries'), 'names');
  return named(
    { db: readName(options.get('db'), at(place, 'db')), coll: readName(options.get('coll'), at(place, 'coll')) },
    place,
    context,
  );
}

/** `"coll"`, or `{into: "coll" | {db, coll}, ...}`; `whenMatched` may be a pipeline. */
function readMerge(spec: unknown, place: Place, context: StageContext): Namespace {
  if (typeof spec === 'string') return named({ db: context.on.db, coll: spec }, place, context);
  const options = readOptions(spec, place, ['into', 'on', 'let', 'whenMatched', 'whenNotMatched']);
  const intoPlace = at(place, 'into');
  const into = options.get('into');
  if (isDocument(into)) readTarget(into, intoPlace, ['db', 'coll']);
  const target = named(readNamespace(into, context.on.db, intoPlace), intoPlace, context);
  for (const [name, value] of options) {
    const here = at(place, name);
    if (name === 'whenMatched' && typeof value !== 'string') context.nested(value, target, here);
    else if (name !== 'into') context.values(value, here, 'names');
  }
  return target;
}

function named(target: Namespace, place: Place, context: StageContext): Namespace {
  context.name(target, place);
  return target;
}

/** Atlas Data Federation knows targets outside the cluster: `{s3}`, `{azure}`, `{gcs}`, `{atlas}`. */
function readTarget(
  target: Record<string, unknown>,
  place: Place,
  known: readonly string[],
): Map<string, unknown> {
  const options = new Map(readEntries(target, place));
  for (const key of options.keys()) {
    if (!known.includes(key)) {
      throw refused(
        place,
        `writing to anything but a collection is refused, and ${quote(key)} is no part of a collection's name`,
        `Name the target by a string or by {${known.join(', ')}}.`,
      );
    }
  }
  return options;
}
