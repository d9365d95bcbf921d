/** Reads numbers exactly or not at all, because the library wraps, rounds and truncates those that do not fit. */

import { Decimal128, Double, Int32, Long } from 'bson';
import { badArgument, shown } from './argument-path.js';

const minInt32 = -(2n ** 31n);
const maxInt32 = 2n ** 31n - 1n;
const minInt64 = -(2n ** 63n);
const maxInt64 = 2n ** 63n - 1n;
const integerText = /^-?\d{1,60}$/;
const numberText = /^([+-]?)(?=\.?\d)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,10}))?$/;

/** Decimal128 (IEEE 754-2008): a coefficient of 34 digits, times ten to a power between these. */
const maxDigits = 34;
const minExponent = -6176;
const maxExponent = 6111;

/** A JSON number: `Int32`, `Long` (up to 2^53 - 1, beyond which JSON rounds) or `Double` (fractions and -0). */
export function bareNumber(value: number, path: string): Int32 | Long | Double {
  if (!Number.isFinite(value)) {
    throw badArgument(path, 'the number is beyond the range of a double. Write {"$numberDecimal": "…"} with its digits.');
  }
  if (!Number.isInteger(value) || Object.is(value, -0)) return new Double(value);
  if (Number.isSafeInteger(value)) return inRange(BigInt(value), minInt32, maxInt32) ? new Int32(value) : Long.fromNumber(value);
  const exact = Math.abs(value) < 2 ** 63 ? '{"$numberLong": "…"} with its exact digits' : '{"$numberDecimal": "…"} with its exact digits';
  throw badArgument(path, `the integer ${value} is beyond 2^53, where JSON rounds. Write ${exact}, or {"$numberDouble": "${value}"}.`);
}

/** The body of `$numberInt`: the digits as text, or a JSON integer. */
export function readInt32(body: unknown, path: string): Int32 {
  const value = integerOf(body, '$numberInt', path);
  if (inRange(value, minInt32, maxInt32)) return new Int32(Number(value));
  throw badArgument(path, `$numberInt ${value} does not fit in 32 bits. Write {"$numberLong": "${value}"}.`);
}

/** The body of `$numberLong`: the digits as text, or a JSON integer up to 2^53 - 1. */
export function readInt64(body: unknown, path: string): Long {
  const value = integerOf(body, '$numberLong', path);
  if (inRange(value, minInt64, maxInt64)) return Long.fromBigInt(value);
  throw badArgument(path, `$numberLong ${value} does not fit in 64 bits. Write {"$numberDecimal": "${value}"}.`);
}

/** The body of `$numberDouble`: a decimal number, `NaN`, `Infinity` or `-Infinity` as text, or a JSON number. Rounded to the nearest double, as any double is. */
export function readDouble(body: unknown, path: string): Double {
  if (typeof body === 'number' && Number.isFinite(body)) return new Double(body);
  if (body === 'NaN' || body === 'Infinity' || body === '-Infinity') return new Double(Number(body));
  if (typeof body !== 'string' || !numberText.test(body)) {
    throw badArgument(path, `$numberDouble ${shownBody(body)} is not a number. Write {"$numberDouble": "1.5"}, "NaN", "Infinity" or "-Infinity".`);
  }
  const value = Number(body);
  const vanished = value === 0 && /^[^eE]*[1-9]/.test(body);
  if (!Number.isFinite(value) || vanished) {
    throw badArgument(path, `$numberDouble ${shown(body)} is beyond the range of a double. Write {"$numberDecimal": ${shown(body)}}.`);
  }
  return new Double(value);
}

/** The body of `$numberDecimal`: a decimal number, `NaN`, `Infinity` or `-Infinity` as text, that 34 digits hold exactly. */
export function readDecimal(body: unknown, path: string): Decimal128 {
  if (body === 'NaN' || body === 'Infinity' || body === '-Infinity') return Decimal128.fromString(body);
  const parts = typeof body === 'string' ? numberText.exec(body) : null;
  if (parts === null) {
    throw badArgument(path, `$numberDecimal ${shownBody(body)} is not a decimal number in text. Write {"$numberDecimal": "1.5"}.`);
  }
  const [, sign = '', whole = '', fraction = '', power = '0'] = parts;
  const fitted = fitDecimal(`${whole}${fraction}`.replace(/^0+(?=\d)/, ''), Number(power) - fraction.length);
  if (fitted === undefined) {
    throw badArgument(path, `$numberDecimal ${shown(parts[0])} does not fit: a decimal has 34 digits, and exponents from -6176 to 6144. Write fewer digits.`);
  }
  return Decimal128.fromString(`${sign}${fitted.digits}E${fitted.exponent}`);
}

/**
 * The same value within the limits of Decimal128, or `undefined` where there is none. Done here
 * since `bson` 7.3, given leading zeros, rounds some numbers silently and refuses others that fit.
 */
function fitDecimal(digits: string, exponent: number): { digits: string; exponent: number } | undefined {
  if (/^0*$/.test(digits)) {
    return { digits: '0', exponent: Math.min(Math.max(exponent, minExponent), maxExponent) };
  }
  const surplus = Math.max(digits.length - maxDigits, minExponent - exponent, 0);
  if (surplus > 0) {
    const kept = digits.length - surplus;
    if (kept < 1 || /[1-9]/.test(digits.slice(kept))) return undefined;
    return fitDecimal(digits.slice(0, kept), exponent + surplus);
  }
  const padding = Math.max(exponent - maxExponent, 0);
  if (digits.length + padding > maxDigits) return undefined;
  return { digits: digits + '0'.repeat(padding), exponent: exponent - padding };
}

function integerOf(body: unknown, wrapper: string, path: string): bigint {
  if (typeof body === 'number' && Number.isSafeInteger(body) && !Object.is(body, -0)) return BigInt(body);
  if (typeof body === 'string' && integerText.test(body)) return BigInt(body);
  throw badArgument(path, `${wrapper} ${shownBody(body)} is not an integer in text. Write {"${wrapper}": "123"}.`);
}

function inRange(value: bigint, min: bigint, max: bigint): boolean {
  return value >= min && value <= max;
}

function shownBody(body: unknown): string {
  if (typeof body === 'string') return shown(body);
  return typeof body === 'number' ? String(body) : `of type ${body === null ? 'null' : typeof body}`;
}
