/** One way to name a place in an argument or a document, so that errors, hints and notes all point at it in the same words. */

import { LeashError } from './errors.js';

const plainKey = /^[$\w]+$/;
const maxShownChars = 60;

/** A text as it appears in messages: JSON-quoted, cut at 60 characters. */
export function shown(text: string): string {
  return JSON.stringify(text.length > maxShownChars ? `${text.slice(0, maxShownChars)}…` : text);
}

/** The path of a key or index below `parent`: `pipeline[0]`, `a.b`, `a["b.c"]` for a key that needs quotes. */
export function childPath(parent: string, key: string | number): string {
  if (typeof key === 'number') return `${parent}[${key}]`;
  if (!plainKey.test(key) || key.length > maxShownChars) return `${parent}[${shown(key)}]`;
  return parent === '' ? key : `${parent}.${key}`;
}

/** The `bad_argument` error for a problem at `path`; the message starts with the path. */
export function badArgument(path: string, problem: string, cause?: unknown): LeashError {
  return new LeashError('bad_argument', `${path}: ${problem}`, { path, cause });
}
