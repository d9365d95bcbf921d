/** Turns JSON arguments into BSON-ready values in one strict walk, because the library's own parser changes and drops what it does not expect. */

import { badArgument, childPath, shown } from './argument-path.js';
import { bareNumber } from './ejson-in-numbers.js';
import { checkRegexFlags, checkText } from './ejson-in-text.js';
import { readWrapper, wrapperKeyIn } from './ejson-in-wrappers.js';
import { setOwn } from './own-property.js';

export { jsonTextToValue } from './json-text.js';

/**
 * Containers inside one another, the outermost counted. The server takes 200 in a whole command,
 * and the stages around an argument and a view's own pipeline need a part of them.
 */
const maxDepth = 100;

/** Below these keys the order of keys is part of what is asked for. */
const orderedKeys: ReadonlySet<string> = new Set(['$sort', 'sortBy', 'hint']);

/** The largest key that JavaScript keeps in numeric order, before all others, is 2^32 - 2. */
const maxArrayIndex = 2 ** 32 - 2;

export interface ParseArgumentOptions {
  /** The order of keys is meant, as in a sort, a hint or an index key: here and at every level below. */
  orderMatters?: boolean;
}

interface Position {
  path: string;
  depth: number;
  orderMatters: boolean;
}

/**
 * Checks a value that came out of `JSON.parse` and gives the same value with BSON types: plain
 * objects and arrays that hold `Int32`, `Long`, `Double` and the other `bson` classes.
 * Nothing is changed or dropped: what cannot be kept exactly is an error that names the place.
 *
 * - Extended JSON wrappers, canonical and relaxed, become their type and stand alone. Also taken:
 *   `{$binary: "…", $type: "…"}`, `{$uuid}`, a JSON number in `$numberInt`, `$numberLong` and
 *   `$numberDouble`, and a bare number of milliseconds in `$date` where it cannot mean seconds.
 * - `$regex`, `$options`, `$type` and `$ref` stay the plain keys they are in queries and documents.
 * - A whole number is an `Int32` or a `Long`, a fraction and -0 a `Double`; an integer beyond
 *   2^53 - 1 is an error, since `JSON.parse` may have rounded it.
 * - Integer-like keys beside other keys are an error where order matters: below `$sort`, `sortBy`
 *   and `hint`, and everywhere with `orderMatters`.
 * - `$undefined`, `$dbPointer`, a key `_bsontype`, a key with a NUL, a lone surrogate and more
 *   than 100 levels are errors: `bson` 7 cannot send them as written.
 *
 * @param path the argument's name, as `pipeline`: every message starts with the path of the place.
 * @throws LeashError `bad_argument`, and nothing else.
 */
export function parseArgument(value: unknown, path: string, options: ParseArgumentOptions = {}): unknown {
  return convert(value, { path, depth: 0, orderMatters: options.orderMatters === true });
}

function convert(value: unknown, position: Position): unknown {
  if (value === null || typeof value === 'boolean') return value;
  if (typeof value === 'number') return bareNumber(value, position.path);
  if (typeof value === 'string') return checkText(value, position.path);
  if (typeof value !== 'object') {
    throw badArgument(position.path, `a value of type ${typeof value} is not JSON. Write a JSON value.`);
  }
  if (position.depth >= maxDepth) {
    throw badArgument(position.path, `nested more than ${maxDepth} levels deep. Write it flatter.`);
  }
  if (Array.isArray(value)) return Array.from(value, (item, index) => convert(item, below(position, index)));
  return convertObject(value, position);
}

function below(position: Position, key: string | number): Position {
  return {
    path: childPath(position.path, key),
    depth: position.depth + 1,
    orderMatters: position.orderMatters || (typeof key === 'string' && orderedKeys.has(key)),
  };
}

function convertObject(value: object, position: Position): object {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) {
    throw badArgument(position.path, 'an object of a class is not JSON. Write a plain JSON object.');
  }
  const document = value as Readonly<Record<string, unknown>>;
  const keys = Object.keys(document);
  const wrapperKey = wrapperKeyIn(keys);
  if (wrapperKey !== undefined) {
    const convertChild = (key: string) => convert(document[key], below(position, key));
    return readWrapper(wrapperKey, { document, path: position.path, convertChild });
  }
  checkOrder(keys, position);
  checkRegexOptions(document, position.path);
  const converted = {};
  for (const key of keys) {
    const at = below(position, key);
    checkKey(key, at.path);
    setOwn(converted, key, convert(document[key], at));
  }
  return converted;
}

function checkKey(key: string, path: string): void {
  if (key === '_bsontype') {
    // bson 7 takes any object with this key for one of its classes, and throws a version error.
    throw badArgument(path, 'a key with this name cannot be sent. Read the field as "$_bsontype" in an expression ($expr).');
  }
  if (key.includes('\0')) throw badArgument(path, 'a key cannot hold a NUL character. Write the key without it.');
  checkText(key, path);
}

function checkOrder(keys: readonly string[], position: Position): void {
  if (!position.orderMatters || keys.length < 2) return;
  const moved = keys.find(isArrayIndex);
  if (moved === undefined) return;
  throw badArgument(
    position.path,
    `the order of keys is lost here, since JSON moves a key like ${shown(moved)} to the front. ` +
      'Write it as the only key, or copy that field to a name that is not a number ($set) and use the name.',
  );
}

function isArrayIndex(key: string): boolean {
  return /^(?:0|[1-9]\d{0,9})$/.test(key) && Number(key) <= maxArrayIndex;
}

function checkRegexOptions(document: Readonly<Record<string, unknown>>, path: string): void {
  if (!Object.hasOwn(document, '$regex') || !Object.hasOwn(document, '$options')) return;
  const flags = document['$options'];
  if (typeof flags === 'string') checkRegexFlags(flags, childPath(path, '$options'));
}
