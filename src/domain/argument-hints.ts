/** Hints about arguments that are valid but seldom meant: they are sent as written, and the caller is told why they may find nothing. */

import { childPath, shown } from './argument-path.js';

const maxHints = 5;
/** As deep as an argument may be: what is deeper is refused elsewhere. */
const maxDepth = 100;

const filterKeys: ReadonlySet<string> = new Set(['$match', 'query', 'restrictSearchWithMatch']);
const comparisons: ReadonlySet<string> = new Set(['$eq', '$ne', '$gt', '$gte', '$lt', '$lte', '$in', '$nin', '$all']);
const inequalities: ReadonlySet<string> = new Set(['$gt', '$gte', '$lt', '$lte']);
const regexExpressions: ReadonlySet<string> = new Set(['$regexMatch', '$regexFind', '$regexFindAll']);
const keepsField: ReadonlySet<string> = new Set(['$not', '$elemMatch']);

const idField = /ids?$/i;
const objectIdText = /^(?:ObjectId\(["'])?([0-9a-f]{24})(?:["']\))?$/i;
const slashedRegex = /^\/(.+)\/([a-z]*)$/s;
const dateText = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(\.\d+)?(Z|[+-]\d\d:?\d\d)?)?$/;

interface Place {
  path: string;
  depth: number;
  /** The keys here are field names of a filter. */
  inFilter: boolean;
  /** The field that an operator here compares; `undefined` in an expression, which names it itself. */
  field: string | undefined;
}

/**
 * At most 5 hints, each starting with the path of its place, about a raw JSON argument: an array is
 * a pipeline, an object a filter. Text that looks like an ObjectId compared with an id field, text
 * that looks like a date compared by order, a regular expression between slashes.
 * Never throws and never changes the value.
 */
export function hintsFor(value: unknown, path = 'pipeline'): string[] {
  const hints: string[] = [];
  walk(value, { path, depth: 0, inFilter: !Array.isArray(value), field: undefined }, hints);
  return hints;
}

function walk(value: unknown, place: Place, hints: string[]): void {
  if (typeof value !== 'object' || value === null || place.depth >= maxDepth) return;
  if (!Array.isArray(value)) addOrderHint(value, place.path, hints);
  const entries: [string | number, unknown][] = Array.isArray(value) ? [...value.entries()] : Object.entries(value);
  for (const [key, item] of entries) {
    if (hints.length >= maxHints) return;
    const path = childPath(place.path, key);
    const depth = place.depth + 1;
    if (typeof key === 'number') {
      walk(item, { ...place, path, depth }, hints);
      continue;
    }
    if (key === '$regex') addRegexHint(item, path, hints);
    if (regexExpressions.has(key)) addRegexHint((item as { regex?: unknown } | null)?.regex, childPath(path, 'regex'), hints);
    if (comparisons.has(key)) addComparisonHints(key, item, { ...place, path }, hints);
    const namesField = place.inFilter && !key.startsWith('$');
    if (namesField) addValueHints(key, '$eq', item, path, hints);
    const inFilter = filterKeys.has(key) || (place.inFilter && key !== '$expr');
    const field = namesField ? key : keepsField.has(key) ? place.field : undefined;
    walk(item, { path, depth, inFilter, field }, hints);
  }
}

/** Nobody can tell in which order such keys were written: JSON in this language puts them first, by number. */
function addOrderHint(value: object, path: string, hints: string[]): void {
  const keys = Object.keys(value);
  const numeric = keys.find((key) => /^(0|[1-9]\d{0,9})$/.test(key));
  if (numeric === undefined || keys.length < 2 || hints.length >= maxHints) return;
  hints.push(`${path}: the key ${shown(numeric)} was sent before the others, whatever the order it was written in; a comparison with a whole document depends on the order of its keys.`);
}

/** In a filter the field is the key above; in an expression it is the operand that starts with `$`. */
function addComparisonHints(operator: string, operand: unknown, { path, field }: Place, hints: string[]): void {
  if (field !== undefined) return addValueHints(field, operator, operand, path, hints);
  if (!Array.isArray(operand) || operand.length !== 2) return;
  const at = operand.findIndex((item) => typeof item === 'string' && item.startsWith('$'));
  if (at === -1) return;
  const other = 1 - at;
  addValueHints(String(operand[at]), operator, operand[other], childPath(path, other), hints);
}

/** One hint for a list, however long: the first value stands for the others. */
function addValueHints(field: string, operator: string, operand: unknown, path: string, hints: string[]): void {
  const texts = (Array.isArray(operand) ? operand : [operand]).filter((item) => typeof item === 'string');
  const id = idField.test(field) ? texts.find((text) => objectIdText.test(text)) : undefined;
  if (id !== undefined) {
    const digits = objectIdText.exec(id)?.[1];
    add(hints, `${path}: ${shown(id)} looks like an ObjectId: write {"$oid": "${digits}"} if the field holds ObjectIds. It is sent as text.`);
  }
  const date = inequalities.has(operator) ? texts.find((text) => dateText.test(text)) : undefined;
  if (date !== undefined) {
    add(hints, `${path}: ${shown(date)} looks like a date: write {"$date": "${isoOf(date)}"} if the field holds dates. It is sent as text, and no date compares with text.`);
  }
}

function addRegexHint(pattern: unknown, path: string, hints: string[]): void {
  const parts = typeof pattern === 'string' ? slashedRegex.exec(pattern) : null;
  if (parts === null) return;
  const [whole, bare = '', flags = ''] = parts;
  const advice = flags === '' ? shown(bare) : `${shown(bare)} with the options ${shown(flags)}`;
  add(hints, `${path}: the slashes in ${shown(whole)} are taken literally: write ${advice} if they only mark a regular expression.`);
}

function add(hints: string[], hint: string): void {
  if (hints.length < maxHints) hints.push(hint);
}

function isoOf(text: string): string {
  const [, day = '', time = '00:00:00', fraction = '', offset = 'Z'] = dateText.exec(text) ?? [];
  return `${day}T${time}${fraction.slice(0, 4)}${offset}`;
}
