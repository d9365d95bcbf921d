/** Reads plain objects of a pipeline so that what is checked is what the driver will serialize. */

import { badArgument, quote, type Place } from './place.js';

/** A plain object, own `__proto__` keys included; bson instances, dates, maps and the like are not. */
export function isDocument(value: unknown): value is Record<string, unknown> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** The `_bsontype` of a bson instance (`Code`, `DBRef`, `Long`, ...); null for everything else. */
export function bsonTypeOf(value: unknown): string | null {
  if (typeof value !== 'object' || value === null || isDocument(value)) return null;
  const type: unknown = (value as { _bsontype?: unknown })._bsontype;
  return typeof type === 'string' ? type : null;
}

/**
 * The members of a document in order.
 * @throws LeashError `bad_argument` for keys that the driver cannot send: with a NUL (BSON would end the name
 *   there, and `$out\0x` become `$out`), or an own `_bsontype` (bson takes the object for one of its instances)
 */
export function readEntries(document: Record<string, unknown>, place: Place): [string, unknown][] {
  const entries = Object.entries(document);
  for (const [key] of entries) {
    if (key.includes('\0')) throw badArgument(place, `the key ${quote(key)} contains a NUL character`);
    if (key === '_bsontype') throw badArgument(place, 'the key "_bsontype" cannot be sent: the driver reserves it');
  }
  return entries;
}

/**
 * The options of a stage by name. Options outside `known` are an error, not passed on: one that is not known
 * could name a collection that nothing has checked (6.0.5 takes `_internalCollation` in `$lookup` from anyone).
 * @throws LeashError `bad_argument`
 */
export function readOptions(spec: unknown, place: Place, known: readonly string[]): Map<string, unknown> {
  if (!isDocument(spec)) throw badArgument(place, `it must be an object, not ${typeName(spec)}`);
  const options = new Map(readEntries(spec, place));
  for (const name of options.keys()) {
    if (!known.includes(name)) {
      throw badArgument(place, `${quote(name)} is no option that is known here; known are ${known.join(', ')}`);
    }
  }
  return options;
}

/** What a value is, in words for an error. */
export function typeName(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'an array';
  if (typeof value === 'object') return bsonTypeOf(value) ?? 'an object';
  return value === undefined ? 'undefined' : `a ${typeof value}`;
}
