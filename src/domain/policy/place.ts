/** Keeps track of where in the arguments a check stands, so that each refusal can name the place without a path string per value. */

import { LeashError } from '../errors.js';

/** A value's place, linked to the one that holds it: the path is only written out when an error needs it. */
export interface Place {
  readonly key: string | number;
  readonly within: Place | null;
  readonly depth: number;
}

/**
 * Levels of arrays and objects that a pipeline may nest. The server takes 200 in all (BSON depth), and the checks
 * recurse: the limit keeps them far from the end of the stack.
 */
export const maxDepth = 100;

/** The place where a checked argument begins, named as the caller names it (`pipeline`, `let`). */
export function rootPlace(path: string): Place {
  return { key: path, within: null, depth: 0 };
}

/**
 * The place of a member or element of the value at `place`.
 * @throws LeashError `bad_argument` below {@link maxDepth}
 */
export function at(place: Place, key: string | number): Place {
  if (place.depth >= maxDepth) throw badArgument(place, `it is nested more than ${maxDepth} levels deep`);
  return { key, within: place, depth: place.depth + 1 };
}

/** The path of a place, as `pipeline[0].$match["a.b"]`, its middle cut out when it is long. */
export function pathOf(place: Place): string {
  const parts: string[] = [];
  for (let here: Place | null = place; here !== null; here = here.within) parts.unshift(partOf(here));
  const path = parts.join('');
  return path.length > 240 ? `${path.slice(0, 140)}…${path.slice(-80)}` : path;
}

function partOf({ key, within }: Place): string {
  if (typeof key === 'number') return `[${key}]`;
  if (within === null) return key;
  return /^[$A-Za-z_][$\w]{0,59}$/.test(key) ? `.${key}` : `[${quote(key)}]`;
}

/** A name out of the arguments, made safe to show: quoted, escaped and cut. */
export function quote(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 59)}…` : name);
}

/** The error for an argument that means nothing: `why` follows the path in the message. */
export function badArgument(place: Place, why: string, next?: string): LeashError {
  return errorAt('bad_argument', place, why, next);
}

/** The error for something that the database would run and the policy does not let through. */
export function refused(place: Place, why: string, next?: string): LeashError {
  return errorAt('refused_by_policy', place, why, next);
}

function errorAt(code: 'bad_argument' | 'refused_by_policy', place: Place, why: string, next?: string): LeashError {
  const path = pathOf(place);
  return new LeashError(code, `${path}: ${why}.`, { path, next });
}
