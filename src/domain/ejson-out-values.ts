/** Extended JSON of single values, kept exact: relaxed where plain JSON says the same, canonical where it does not. */

import { Binary, Decimal128 } from 'bson';

/** What `JSON.stringify` writes without loss. */
export type JsonValue = string | number | boolean | null | JsonValue[] | { [key: string]: JsonValue };

const yearTenThousandMs = 253_402_300_800_000n;
const maxSafe = BigInt(Number.MAX_SAFE_INTEGER);

/** A double: a plain number in relaxed form unless JSON or a reader of JSON would change it. */
export function doubleToJson(value: number, canonical: boolean): JsonValue {
  const isWhole = Number.isInteger(value);
  const isPlain = Number.isFinite(value) && !Object.is(value, -0) && (!isWhole || Number.isSafeInteger(value));
  if (!canonical && isPlain) return value;
  if (Object.is(value, -0)) return { $numberDouble: '-0.0' };
  return { $numberDouble: isWhole ? value.toFixed(1) : String(value) };
}

/** A 32-bit integer. */
export function int32ToJson(value: number, canonical: boolean): JsonValue {
  return canonical ? { $numberInt: String(value) } : value;
}

/** A 64-bit integer: a plain number in relaxed form up to 2^53 - 1. */
export function int64ToJson(value: bigint, canonical: boolean): JsonValue {
  const isSafe = value <= maxSafe && value >= -maxSafe;
  return canonical || !isSafe ? { $numberLong: String(value) } : Number(value);
}

/** A date in milliseconds: ISO 8601 in relaxed form for the years 1970 to 9999. */
export function dateToJson(ms: bigint, canonical: boolean): JsonValue {
  if (canonical || ms < 0n || ms >= yearTenThousandMs) return { $date: { $numberLong: String(ms) } };
  return { $date: new Date(Number(ms)).toISOString().replace('.000Z', 'Z') };
}

/** A decimal, from its 16 bytes. */
export function decimalToJson(bytes: Uint8Array): JsonValue {
  return { $numberDecimal: new Decimal128(bytes).toString() };
}

/** Binary data: `$uuid` in relaxed form for the 16 bytes of a subtype 4, else `$binary`. */
export function binaryToJson(bytes: Uint8Array, subType: number, canonical: boolean): JsonValue {
  if (!canonical && subType === Binary.SUBTYPE_UUID && bytes.length === 16) {
    return { $uuid: hexOf(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5') };
  }
  return { $binary: { base64: new Binary(bytes).toString('base64'), subType: subType.toString(16).padStart(2, '0') } };
}

/** An ObjectId, from its 12 bytes. */
export function objectIdToJson(bytes: Uint8Array): JsonValue {
  return { $oid: hexOf(bytes) };
}

function hexOf(bytes: Uint8Array): string {
  return new Binary(bytes).toString('hex');
}
