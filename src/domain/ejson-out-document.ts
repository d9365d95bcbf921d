/** Shows stored documents as Extended JSON from their raw bytes, because a look through the library's classes would change some of them without a word. */

import { childPath } from './argument-path.js';
import { readBytes, type BsonBytes, type StoredText } from './bson-bytes.js';
import { isWrapperKey } from './ejson-in-wrappers.js';
import { binaryToJson, dateToJson, decimalToJson, doubleToJson, int32ToJson, int64ToJson, objectIdToJson, type JsonValue } from './ejson-out-values.js';
import { LeashError } from './errors.js';
import { setOwn } from './own-property.js';

const maxNotes = 5;

export interface RenderOptions {
  /** Every number and date with its type, as Extended JSON's canonical form has it. */
  canonical: boolean;
}

export interface RenderedDocument {
  value: JsonValue;
  /** At most 5, each starting with the path of its place: what the value alone would let a reader misunderstand. */
  notes: string[];
}

/** What the walk carries along. */
export interface Walk {
  bytes: BsonBytes;
  canonical: boolean;
  /** Keys and indexes down to the current value: joined only where a note needs them. */
  path: (string | number)[];
  note: (problem: string) => void;
}

/**
 * One BSON document as a value that JSON holds without loss, and that `parseArgument` reads back.
 *
 * Relaxed (`canonical: false`): 32-bit integers, 64-bit ones up to 2^53 - 1, fractions and whole
 * doubles up to 2^53 - 1 are plain numbers (so a double 7.0 shows as 7); other 64-bit integers are
 * `$numberLong`; other whole doubles, -0, NaN and the infinities are `$numberDouble`; dates of the
 * years 1970 to 9999 are ISO 8601; a UUID (subtype 4) is `$uuid`. All else is canonical. Canonical:
 * everything is, as the Extended JSON v2 specification has it.
 *
 * Keys that look like type markers, `_bsontype` and `__proto__` are own properties like any other,
 * with a note. Bytes that are not UTF-8 show as U+FFFD, with a note. Of a key stored twice the last
 * value shows, with a note. JSON's own order holds: integer-like keys come first.
 * Not read back: the deprecated `$undefined` and `$dbPointer`, dates that no `Date` holds, and keys
 * and texts that a note is about.
 *
 * @throws LeashError `internal` when the bytes are not one whole BSON document.
 */
export function renderDocument(bson: Uint8Array, options: RenderOptions): RenderedDocument {
  const notes: string[] = [];
  const path: (string | number)[] = [];
  const note = (problem: string) => notes.push(`${path.reduce<string>(childPath, '')}: ${problem}`);
  const bytes = readBytes(bson);
  try {
    const value = readFields({ bytes, canonical: options.canonical, path, note }, {});
    if (bytes.position() !== bson.byteLength) throw new RangeError(`the document ends at ${bytes.position()} of ${bson.byteLength}`);
    return { value, notes: firstNotes(notes, maxNotes) };
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new LeashError('internal', `A document of the database cannot be read as BSON: ${cause.message}.`, { cause });
  }
}

/** The first `max` notes; where there are more, the last one says how many. */
export function firstNotes(notes: readonly string[], max: number): string[] {
  if (notes.length <= max) return [...notes];
  return [...notes.slice(0, max - 1), `${notes.length - max + 1} more notes of this kind are left out.`];
}

/** The fields or items that follow, up to the end of their container, put into `target`. */
function readFields(walk: Walk, target: Record<string, JsonValue> | JsonValue[]): JsonValue {
  const { bytes, path } = walk;
  const end = bytes.position() + bytes.int32();
  for (let type = bytes.int8(); type !== 0; type = bytes.int8()) {
    const key = bytes.cstring();
    if (Array.isArray(target)) {
      path.push(target.length);
      target.push(readValue(type, walk));
    } else {
      path.push(key.text);
      noteKey(key, target, walk);
      setOwn(target, key.text, readValue(type, walk));
    }
    path.pop();
  }
  if (bytes.position() !== end) throw new RangeError(`a document ends at ${bytes.position()}, not at ${end}`);
  return target;
}

function noteKey(key: StoredText, siblings: object, walk: Walk): void {
  if (Object.hasOwn(siblings, key.text)) walk.note('this key is stored more than once. Its last value is shown.');
  noteName(key, walk);
}

/** What a reader of the key alone could misunderstand. */
export function noteName(key: StoredText, { note }: Walk): void {
  if (!key.isUtf8) note('the stored key is not valid UTF-8. What could not be read shows as U+FFFD.');
  if (isWrapperKey(key.text)) note('this key is stored data, not a type marker.');
  if (key.text === '_bsontype' || key.text === '__proto__') note('this key is stored data, and nothing more.');
}

export function readText(stored: StoredText, { note }: Walk): string {
  if (!stored.isUtf8) note('the stored text is not valid UTF-8. What could not be read shows as U+FFFD.');
  return stored.text;
}

/** The value at the position. */
function readValue(type: number, walk: Walk): JsonValue {
  switch (type) {
    case 0x03:
      return readFields(walk, {});
    case 0x04:
      return readFields(walk, []);
    case 0x0f:
      return readCodeWithScope(walk);
    default:
      return readScalar(type, walk);
  }
}

/** A value at the position that holds no others. Types are those of bsonspec.org; MinKey is the signed byte -1. */
export function readScalar(type: number, walk: Walk): JsonValue {
  const { bytes, canonical } = walk;
  switch (type) {
    case 0x01:
      return doubleToJson(bytes.double(), canonical);
    case 0x02:
      return readText(bytes.string(), walk);
    case 0x05:
      return readBinary(walk);
    case 0x06:
      return { $undefined: true };
    case 0x07:
      return objectIdToJson(bytes.take(12));
    case 0x08:
      return bytes.uint8() !== 0;
    case 0x09:
      return dateToJson(bytes.int64(), canonical);
    case 0x0a:
      return null;
    case 0x0b:
      return { $regularExpression: { pattern: readText(bytes.cstring(), walk), options: readText(bytes.cstring(), walk) } };
    case 0x0c:
      return { $dbPointer: { $ref: readText(bytes.string(), walk), $id: objectIdToJson(bytes.take(12)) } };
    case 0x0d:
      return { $code: readText(bytes.string(), walk) };
    case 0x0e:
      return { $symbol: readText(bytes.string(), walk) };
    case 0x10:
      return int32ToJson(bytes.int32(), canonical);
    case 0x11: {
      const i = bytes.uint32();
      return { $timestamp: { t: bytes.uint32(), i } };
    }
    case 0x12:
      return int64ToJson(bytes.int64(), canonical);
    case 0x13:
      return decimalToJson(bytes.take(16));
    case 0x7f:
      return { $maxKey: 1 };
    case -1:
      return { $minKey: 1 };
    default:
      throw new RangeError(`unknown type ${type} at ${bytes.position()}`);
  }
}

/** The deprecated subtype 2 holds its length a second time, before its bytes; where it does not, the bytes show as they are. */
function readBinary({ bytes, canonical, note }: Walk): JsonValue {
  const length = bytes.int32();
  const subType = bytes.uint8();
  const content = bytes.take(length);
  if (subType !== 2) return binaryToJson(content, subType, canonical);
  if (length >= 4 && readBytes(content).int32() === length - 4) return binaryToJson(content.subarray(4), subType, canonical);
  note('the stored binary of subtype 02 lacks its inner length. Its bytes are shown as they are.');
  return binaryToJson(content, subType, canonical);
}

function readCodeWithScope(walk: Walk): JsonValue {
  // The length of both together: each has its own.
  walk.bytes.int32();
  const code = readText(walk.bytes.string(), walk);
  walk.path.push('$scope');
  const scope = readFields(walk, {});
  walk.path.pop();
  return { $code: code, $scope: scope };
}
