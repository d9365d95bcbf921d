/** The table of Extended JSON wrappers: each reads its own body strictly and stands alone, since the library drops whatever else it finds beside one. */

import { Binary, BSON, BSONRegExp, BSONSymbol, Code, MaxKey, MinKey, ObjectId, Timestamp, UUID } from 'bson';
import { badArgument, childPath, shown } from './argument-path.js';
import { readDate } from './ejson-in-dates.js';
import { readDecimal, readDouble, readInt32, readInt64 } from './ejson-in-numbers.js';
import { checkRegexFlags, checkText } from './ejson-in-text.js';

const maxUint32 = 2 ** 32 - 1;
const vectorSubType = 9;

/** An object with a wrapper's key in it. */
export interface Wrapper {
  document: Readonly<Record<string, unknown>>;
  /** The path of the object, which is the path of the value it stands for. */
  path: string;
  /** The value below a key, converted: for a scope, which holds values of its own. */
  convertChild: (key: string) => unknown;
}

type Read = (body: unknown, wrapper: Wrapper) => object;

const readers: ReadonlyMap<string, Read> = new Map<string, Read>([
  ['$oid', readObjectId],
  ['$numberInt', (body, { path }) => readInt32(body, path)],
  ['$numberLong', (body, { path }) => readInt64(body, path)],
  ['$numberDouble', (body, { path }) => readDouble(body, path)],
  ['$numberDecimal', (body, { path }) => readDecimal(body, path)],
  ['$date', (body, { path }) => readDate(body, path)],
  ['$timestamp', readTimestamp],
  ['$binary', readBinary],
  ['$uuid', readUuid],
  ['$regularExpression', readRegularExpression],
  ['$minKey', (body, { path }) => readOne(body, '$minKey', new MinKey(), path)],
  ['$maxKey', (body, { path }) => readOne(body, '$maxKey', new MaxKey(), path)],
  ['$symbol', (body, { path }) => new BSONSymbol(textOf(body, '$symbol', path))],
  ['$code', readCode],
  ['$dbPointer', refuseDbPointer],
  ['$undefined', refuseUndefined],
]);

/** Whether an object with this key is a wrapper, wherever it is. */
export function isWrapperKey(key: string): boolean {
  return readers.has(key);
}

/** The first of an object's keys that makes it a wrapper and not a document; `undefined` for a document. */
export function wrapperKeyIn(keys: readonly string[]): string | undefined {
  return keys.find(isWrapperKey);
}

/** The BSON value that a wrapper stands for; a `bad_argument` when it does not stand for exactly one. */
export function readWrapper(key: string, wrapper: Wrapper): object {
  const companion = companionOf(key, wrapper.document[key]);
  const sibling = Object.keys(wrapper.document).find((other) => other !== key && other !== companion);
  if (sibling !== undefined) {
    throw badArgument(wrapper.path, `"${key}" stands for one value, but ${shown(sibling)} is beside it. Write {"${key}": …} as a value of its own.`);
  }
  const read = readers.get(key) as Read;
  return read(wrapper.document[key], wrapper);
}

/** `$type` is a query operator but for the legacy pair `{$binary: "<base64>", $type: "<hex>"}`. */
function companionOf(key: string, body: unknown): string | undefined {
  if (key === '$code') return '$scope';
  return key === '$binary' && typeof body === 'string' ? '$type' : undefined;
}

function readObjectId(body: unknown, { path }: Wrapper): ObjectId {
  if (typeof body === 'string' && /^[0-9a-f]{24}$/i.test(body)) return new ObjectId(body);
  throw badArgument(path, `$oid ${typeof body === 'string' ? shown(body) : 'that is not text'} is not 24 hexadecimal digits. Write {"$oid": "507f1f77bcf86cd799439011"}.`);
}

function readTimestamp(body: unknown, { path }: Wrapper): Timestamp {
  const { t, i } = fieldsOf(body, ['t', 'i']) ?? {};
  if (isUint32(t) && isUint32(i)) return new Timestamp({ t, i });
  throw badArgument(path, '$timestamp needs the numbers t (seconds) and i, each from 0 to 4294967295. Write {"$timestamp": {"t": 1700000000, "i": 1}}.');
}

function isUint32(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= maxUint32 && !Object.is(value, -0);
}

function readBinary(body: unknown, { document, path }: Wrapper): Binary {
  const { base64, subType } = typeof body === 'string' ? { base64: body, subType: document['$type'] } : (fieldsOf(body, ['base64', 'subType']) ?? {});
  if (typeof base64 !== 'string' || typeof subType !== 'string' || !/^[0-9a-f]{1,2}$/i.test(subType)) {
    throw badArgument(path, '$binary needs base64 text and a subType of two hexadecimal digits. Write {"$binary": {"base64": "AAEC", "subType": "00"}}.');
  }
  const binary = Binary.createFromBase64(base64, Number.parseInt(subType, 16));
  // What is not base64 is skipped there: only text that comes out again was all read.
  if (binary.toString('base64') !== base64) {
    throw badArgument(path, `$binary ${shown(base64)} is not base64. Write it in the alphabet A-Z a-z 0-9 + / with its = padding.`);
  }
  if (binary.sub_type === vectorSubType) checkVector(binary, path);
  return binary;
}

/** `bson` refuses a broken vector only when the command is built, without naming a place. */
function checkVector(binary: Binary, path: string): void {
  try {
    BSON.serialize({ binary });
  } catch (cause) {
    throw badArgument(path, '$binary of subType 09 is not a valid vector. Write its type byte, its padding byte and whole elements.', cause);
  }
}

function readUuid(body: unknown, { path }: Wrapper): UUID {
  if (typeof body === 'string' && UUID.isValid(body)) return new UUID(body);
  throw badArgument(path, '$uuid needs 32 hexadecimal digits. Write {"$uuid": "0e1b8c1e-7c3f-4b8e-9f8a-1b2c3d4e5f60"}.');
}

function readRegularExpression(body: unknown, { path }: Wrapper): BSONRegExp {
  const { pattern, options = '' } = fieldsOf(body, ['pattern', 'options']) ?? {};
  if (typeof pattern !== 'string' || typeof options !== 'string') {
    throw badArgument(path, '$regularExpression needs the texts pattern and options. Write {"$regularExpression": {"pattern": "^a", "options": "i"}}.');
  }
  if (pattern.includes('\0')) throw badArgument(path, 'a pattern cannot hold a NUL character. Write \\x00 in the pattern.');
  checkRegexFlags(options, path);
  return new BSONRegExp(checkText(pattern, path), options);
}

function readOne(body: unknown, key: string, value: MinKey | MaxKey, path: string): MinKey | MaxKey {
  if (body === 1) return value;
  throw badArgument(path, `${key} holds something other than 1. Write {"${key}": 1}.`);
}

function readCode(body: unknown, { document, path, convertChild }: Wrapper): Code {
  const code = textOf(body, '$code', path);
  if (!Object.hasOwn(document, '$scope')) return new Code(code);
  const scope = convertChild('$scope');
  if (typeof scope === 'object' && scope !== null && Object.getPrototypeOf(scope) === Object.prototype) return new Code(code, scope);
  throw badArgument(childPath(path, '$scope'), 'a scope is a document. Write an object of variables, or leave $scope out.');
}

function refuseDbPointer(_body: unknown, { path }: Wrapper): never {
  throw badArgument(path, '$dbPointer is a type that can no longer be sent. Write {"$ref": "collection", "$id": …} for a reference.');
}

function refuseUndefined(_body: unknown, { path }: Wrapper): never {
  throw badArgument(path, '$undefined is a type that can no longer be sent. Write null for null or missing, or leave the condition out.');
}

function textOf(body: unknown, key: string, path: string): string {
  if (typeof body === 'string') return checkText(body, path);
  throw badArgument(path, `${key} holds something other than text. Write {"${key}": "…"}.`);
}

/** The body's fields when it is an object with none but the allowed ones. */
function fieldsOf(body: unknown, allowed: readonly string[]): Record<string, unknown> | undefined {
  if (typeof body !== 'object' || body === null || !Object.keys(body).every((key) => allowed.includes(key))) return undefined;
  return body as Record<string, unknown>;
}
