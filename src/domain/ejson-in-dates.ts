/** Reads `$date` strictly, because `Date.parse` makes a date of almost anything: "5" is the year 2001, and no offset is the machine's own time zone. */

import { badArgument, shown } from './argument-path.js';
import { readInt64 } from './ejson-in-numbers.js';

const isoDate =
  /^(?<year>\d{4})-(?<month>\d\d)-(?<day>\d\d)(?:T(?<hour>\d\d):(?<minute>\d\d)(?::(?<second>\d\d)(?:\.(?<fraction>\d{1,9}))?)?(?<offset>Z|[+-]\d\d(?::?\d\d)?)?)?$/;

/** What a JavaScript `Date` holds, in milliseconds from 1970; `bson` sends 1970 for anything beyond. */
const maxDateMs = 8.64e15;

/** From here on a number of seconds would be past the year 5138, so a bare number can only mean milliseconds. */
const minBareMs = 1e11;

const example = 'Write {"$date": "2024-01-31T09:30:00Z"}.';

/**
 * The body of `$date`: ISO 8601 text with `Z` or an offset and at most milliseconds (a date alone
 * is midnight UTC), `{$numberLong: "<ms>"}`, or a bare number of ms: 0, or 1e11 and more either way.
 */
export function readDate(body: unknown, path: string): Date {
  if (typeof body === 'string') return dateOfText(body, path);
  if (typeof body === 'number') return dateOfBareNumber(body, path);
  if (typeof body === 'object' && body !== null && Object.keys(body).join() === '$numberLong') {
    return dateOfMs(readInt64((body as { $numberLong: unknown }).$numberLong, path).toNumber(), path);
  }
  throw badArgument(path, `$date holds neither text nor {"$numberLong": "<milliseconds>"}. ${example}`);
}

function dateOfMs(ms: number, path: string): Date {
  if (Math.abs(ms) <= maxDateMs) return new Date(ms);
  throw badArgument(path, `$date ${ms} is more than 8.64e15 milliseconds from 1970. Write a date nearer to it.`);
}

function dateOfBareNumber(ms: number, path: string): Date {
  if (Number.isSafeInteger(ms) && (ms === 0 || Math.abs(ms) >= minBareMs)) return dateOfMs(ms, path);
  throw badArgument(path, `$date ${ms} may be seconds or milliseconds. Write the date as text, or {"$date": {"$numberLong": "<milliseconds>"}}.`);
}

function dateOfText(text: string, path: string): Date {
  const parts = isoDate.exec(text)?.groups;
  if (parts === undefined) throw badArgument(path, `$date ${shown(text)} is not an ISO 8601 date. ${example}`);
  if (parts['hour'] !== undefined && parts['offset'] === undefined) {
    throw badArgument(path, `$date ${shown(text)} has no time zone. Write it with Z or an offset, as {"$date": ${shown(`${text}Z`)}}.`);
  }
  const fraction = (parts['fraction'] ?? '').padEnd(3, '0');
  if (/[1-9]/.test(fraction.slice(3))) {
    throw badArgument(path, `$date ${shown(text)} is finer than a millisecond, which a date cannot hold. Write at most three digits after the seconds.`);
  }
  const [year, month, day, hour, minute, second] = ['year', 'month', 'day', 'hour', 'minute', 'second'].map((name) => Number(parts[name] ?? 0)) as [
    number, number, number, number, number, number,
  ];
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const offset = offsetMinutes(parts['offset'] ?? 'Z');
  const real = date.getUTCMonth() === month - 1 && date.getUTCDate() === day && hour < 24 && minute < 60 && second < 60;
  if (!real || offset === undefined) throw badArgument(path, `$date ${shown(text)} is not in the calendar or not on the clock. ${example}`);
  date.setUTCHours(hour, minute, second, Number(fraction.slice(0, 3)));
  return new Date(date.getTime() - offset * 60_000);
}

function offsetMinutes(offset: string): number | undefined {
  if (offset === 'Z') return 0;
  const hours = Number(offset.slice(1, 3));
  const minutes = Number(offset.slice(3).replace(':', ''));
  if (hours > 23 || minutes > 59) return undefined;
  return (offset.startsWith('-') ? -1 : 1) * (hours * 60 + minutes);
}
