/** Walks everything that a stage or an argument holds, at any depth, and shows each key to a watch. */

import { bsonTypeOf, isDocument, readEntries, typeName } from './document.js';
import { at, badArgument, type Place } from './place.js';
import { noWatch, type Watch } from './watches.js';

/**
 * What an object may be here: an expression, such as `{$literal: ...}`; a document whose keys are names of fields,
 * variables or options; or, in a stage that is not known here, anything, so that nothing in it counts as data.
 */
export type Position = 'expression' | 'names' | 'unknown';

/**
 * Below these keys an object maps names to expressions. The server refuses a name that starts with `$` in each of
 * them (measured on 6.0.5), so `$literal` as a name hides nothing today; should a version take it as a name, the
 * content would run. A field of a user's that has one of these names only loses the exemption.
 */
const nameMaps: ReadonlySet<string> = new Set(['let', 'vars', 'output', '$addFields', '$group', '$project', '$set']);

/**
 * Shows every key and Code value in `value` to `watch`, except for the content of `{$literal: ...}`: data wherever
 * an expression may stand, and only as the sole key (with a second one the object is no `$literal`).
 * @throws LeashError whatever the watch throws; `bad_argument` for values that BSON does not know, and for depth
 */
export function checkValues(value: unknown, place: Place, watch: Watch, position: Position): void {
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) checkValues(value[i], at(place, i), watch, position);
  } else if (isDocument(value)) {
    const entries = readEntries(value, place);
    const isLiteral = position === 'expression' && entries.length === 1 && entries[0]![0] === '$literal';
    checkEntries(entries, place, isLiteral ? noWatch : watch, position);
  } else {
    checkLeaf(value, place, watch, position);
  }
}

function checkEntries(entries: readonly [string, unknown][], place: Place, watch: Watch, position: Position): void {
  for (const [key, value] of entries) {
    const here = at(place, key);
    watch.key(key, here);
    const below = position === 'unknown' ? position : nameMaps.has(key) ? 'names' : 'expression';
    checkValues(value, here, watch, below);
  }
}

function checkLeaf(value: unknown, place: Place, watch: Watch, position: Position): void {
  const type = bsonTypeOf(value);
  if (type === 'Code') return watch.code(place);
  // The one bson class that holds documents of the caller's: it is sent as {$ref, $id, $db, ...fields}.
  if (type === 'DBRef') {
    const { oid, fields } = value as { oid: unknown; fields: Record<string, unknown> };
    return checkEntries([['$id', oid], ...readEntries(fields, place)], place, watch, position);
  }
  if (type === null && !isPlainLeaf(value)) throw badArgument(place, `${typeName(value)} of this kind is no BSON value`);
}

/** Values that the driver sends as they are. A Map is none of them: the driver would send it as a document. */
function isPlainLeaf(value: unknown): boolean {
  if (typeof value === 'object' && value !== null) {
    return value instanceof Date || value instanceof RegExp || value instanceof Uint8Array;
  }
  return typeof value !== 'function' && typeof value !== 'symbol';
}
