/** Documents as rows of CSV (RFC 4180): a value that a cell can hold as it is stands there plain, everything else as Extended JSON. */

import { renderDocument } from './ejson-out-document.js';
import type { JsonValue } from './ejson-out-values.js';

/** Columns that are found by themselves; more than that is no table. */
const maxColumns = 1_000;
/** Wrappers whose text says all of the value. */
const plainWrappers: ReadonlySet<string> = new Set(['$oid', '$uuid', '$numberInt', '$numberLong', '$numberDouble', '$numberDecimal', '$symbol']);

type Fields = Record<string, JsonValue>;

export interface Csv {
  /** The columns' names as a row. */
  header(): string;
  row(bson: Uint8Array): string;
  /** Names of fields that were met and have no column, at most a few, and in how many documents there was any. */
  left(): { names: string[]; documents: number };
}

const maxNamed = 5;

/**
 * @param given the columns, as paths with dots; without, they are the fields of the first documents, nested ones with dots
 * @throws LeashError `internal` when the bytes are no BSON document, from `row` too
 */
export function createCsv(given: readonly string[] | undefined, first: readonly Uint8Array[], canonical: boolean): Csv {
  const columns = given ?? columnsOf(first, canonical);
  const known = new Set(columns);
  const unknown = new Set<string>();
  let incomplete = 0;

  /** Only where nobody has chosen the columns is one that is missing a loss. */
  function noteLeft(document: Fields): void {
    const before = unknown.size;
    let any = false;
    for (const name of flattened(document).keys()) {
      if (known.has(name)) continue;
      any = true;
      if (before < maxNamed && unknown.size < maxNamed) unknown.add(name);
    }
    if (any) incomplete += 1;
  }

  return {
    header: () => rowOf(columns.map(quoted)),
    row(bson) {
      const document = renderDocument(bson, { canonical }).value as Fields;
      if (given !== undefined) return rowOf(columns.map((path) => cell(valueAt(document, path))));
      noteLeft(document);
      const flat = flattened(document);
      return rowOf(columns.map((name) => cell(flat.get(name))));
    },
    left: () => ({ names: [...unknown], documents: incomplete }),
  };
}

function columnsOf(documents: readonly Uint8Array[], canonical: boolean): string[] {
  const names = new Set<string>();
  for (const bson of documents) {
    for (const name of flattened(renderDocument(bson, { canonical }).value as Fields).keys()) if (names.size < maxColumns) names.add(name);
  }
  return [...names];
}

/** Every value that is no plain document, by its path with dots. */
function flattened(document: Fields, prefix = '', into = new Map<string, JsonValue>()): Map<string, JsonValue> {
  for (const [key, value] of Object.entries(document)) {
    const name = prefix + key;
    if (isPlainDocument(value)) flattened(value, `${name}.`, into);
    else into.set(name, value);
  }
  return into;
}

function isPlainDocument(value: JsonValue | undefined): value is Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const keys = Object.keys(value);
  return keys.length > 0 && !keys.some((key) => key.startsWith('$'));
}

/** A key with dots in it is found before a path. */
function valueAt(document: Fields, path: string): JsonValue | undefined {
  if (Object.hasOwn(document, path)) return document[path];
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const head = path.slice(0, dot);
    const inner = Object.hasOwn(document, head) ? document[head] : undefined;
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) continue;
    const found = valueAt(inner, path.slice(dot + 1));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What is missing, and null, is an empty cell; an empty text is one in quotes. */
function cell(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return '';
  if (value === '') return '""';
  if (typeof value !== 'object') return quoted(String(value));
  return quoted(plainOf(value) ?? JSON.stringify(value));
}

/** The text of a wrapper that has one value. */
function plainOf(value: Exclude<JsonValue, string | number | boolean | null>): string | null {
  if (Array.isArray(value)) return null;
  const [entry, ...others] = Object.entries(value);
  if (entry === undefined || others.length > 0) return null;
  const [key, inner] = entry;
  if (key === '$date' && typeof inner === 'string') return inner;
  return plainWrappers.has(key) && typeof inner === 'string' ? inner : null;
}

function quoted(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function rowOf(cells: readonly string[]): string {
  return `${cells.join(',')}\r\n`;
}
