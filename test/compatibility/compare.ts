/** Compares what two servers say to the same call, and names each place where they differ. */

import { isDeepStrictEqual } from 'node:util';

export interface Difference {
  tool: string;
  /** The title of the call; null for what the list of tools says. */
  call: string | null;
  /**
   * `outcome`: one answers, the other refuses. `refusal`: both refuse, in their own form. `text`: what the content says.
   * `value`: another value, or another number of items (path `….length`). `missing`: ours does not have it. `additional`: only ours has it.
   */
  kind: 'outcome' | 'refusal' | 'text' | 'value' | 'missing' | 'additional';
  /** As in `documents[3].value`; an item with a name stands under it: `collections{orders}.type`. */
  path: string;
  stock: unknown;
  ours: unknown;
}

type Found = Omit<Difference, 'tool' | 'call'>;
type Json = Record<string, unknown>;

/** What moves between two calls of the same server: only that both have it, of the same kind, is compared. */
export const moving = [
  ['connectionId', /^connectionId$|^connections\{[^}]*\}\.connectionId$/],
  ['times of connections', /^connections\{[^}]*\}\.(createdAt|lastUsedAt)$/],
  ['sizes on disk and of the cache', /^databases\{[^}]*\}\.size$|^stats\.(storageSize|totalSize|indexSize|fsUsedSize)$/],
  ['milliseconds and yields in plans', /^explainResult.*\.(\w*[mM]illis\w*|saveState|restoreState)$/],
  ['texts of slots in plans', /^explainResult.*\.slotBasedPlan\.slots$/],
  ['number of log lines written so far', /^totalLinesWritten$/],
] as const;

const isMoving = (path: string) => moving.some(([, pattern]) => pattern.test(path));

/** The answer of one tool, as far as it can be compared. */
export interface Answer {
  isError: boolean;
  /** `structuredContent`, and of an export its link and its file as well. */
  body: Json;
  /** Of `structuredContent`. */
  fields: string[];
  text: string;
}

export function compareAnswers(stock: Answer, ours: Answer): Found[] {
  if (stock.isError !== ours.isError) return [{ kind: 'outcome', path: '', stock: outcomeOf(stock), ours: outcomeOf(ours) }];
  if (stock.isError) return [{ kind: 'refusal', path: '', stock: stock.body, ours: ours.body }];
  const text: Found[] = stock.text === ours.text ? [] : [{ kind: 'text', path: '', stock: stock.text, ours: ours.text }];
  return [...text, ...compareValues('', stock.body, ours.body)];
}

function outcomeOf({ isError, text }: Answer): string {
  return `${isError ? 'refused' : 'answered'}: ${text}`;
}

export function compareValues(path: string, stock: unknown, ours: unknown): Found[] {
  if (isMoving(path)) return kindOf(stock) === kindOf(ours) ? [] : [{ kind: 'value', path, stock, ours }];
  if (Array.isArray(stock) && Array.isArray(ours)) return compareArrays(path, stock, ours);
  if (isPlain(stock) && isPlain(ours)) return compareObjects(path, stock, ours);
  return isDeepStrictEqual(stock, ours) ? [] : [{ kind: 'value', path, stock, ours }];
}

/** A number is one in either spelling. */
function kindOf(value: unknown): string {
  return typeof value === 'object' && value !== null && '$numberLong' in value ? 'number' : typeof value;
}

function compareObjects(path: string, stock: Json, ours: Json): Found[] {
  const keys = [...new Set([...Object.keys(stock), ...Object.keys(ours)])];
  const order = Object.keys(stock).filter((key) => Object.hasOwn(ours, key));
  const found: Found[] = isDeepStrictEqual(order, Object.keys(ours).filter((key) => Object.hasOwn(stock, key))) || !isDocument(path) ? [] : [{ kind: 'value', path: `${path}.order`, stock: Object.keys(stock), ours: Object.keys(ours) }];
  for (const key of keys) {
    const at = path === '' ? key : `${path}.${key}`;
    if (!Object.hasOwn(ours, key)) found.push({ kind: 'missing', path: at, stock: stock[key], ours: undefined });
    else if (!Object.hasOwn(stock, key)) found.push({ kind: 'additional', path: at, stock: undefined, ours: ours[key] });
    else found.push(...compareValues(at, stock[key], ours[key]));
  }
  return found;
}

/** The order of keys is part of a document, and of nothing else. */
function isDocument(path: string): boolean {
  return /^(file\.)?documents\[/.test(path);
}

function compareArrays(path: string, stock: unknown[], ours: unknown[]): Found[] {
  const names = [namesOf(stock), namesOf(ours)] as const;
  if (!isDocument(path) && names[0] !== null && names[1] !== null) return compareNamed(path, names[0], names[1]);
  const length: Found[] = stock.length === ours.length ? [] : [{ kind: 'value', path: `${path}.length`, stock: stock.length, ours: ours.length }];
  const common = Math.min(stock.length, ours.length);
  return [...length, ...Array.from({ length: common }, (_, i) => compareValues(`${path}[${i}]`, stock[i], ours[i])).flat()];
}

/** By what an item is told apart from the others; null when they cannot be. */
function namesOf(items: unknown[]): Map<string, unknown> | null {
  const name = (item: unknown) => (isPlain(item) ? (item['name'] ?? item['bsonType']) : undefined);
  const named = new Map(items.map((item) => [withoutSuffix(name(item)), item]));
  return items.length > 0 && named.size === items.length && !named.has('') ? named : null;
}

/** The stock server puts four random digits behind the name of a connection. */
function withoutSuffix(name: unknown): string {
  return typeof name === 'string' ? name.replace(/^(side-by-side-\w+)-[0-9a-f]{4}$/, '$1') : '';
}

function itemPath(path: string, name: string): string {
  return `${path}{${name.replaceAll(/[{}]/g, '')}}`;
}

function compareNamed(path: string, stock: Map<string, unknown>, ours: Map<string, unknown>): Found[] {
  const order = [...stock.keys()].filter((name) => ours.has(name));
  const sameOrder = isDeepStrictEqual(order, [...ours.keys()].filter((name) => stock.has(name)));
  const found: Found[] = sameOrder ? [] : [{ kind: 'value', path: `${path}.order`, stock: [...stock.keys()], ours: [...ours.keys()] }];
  for (const [name, item] of stock) {
    const at = itemPath(path, name);
    if (ours.has(name)) found.push(...compareValues(at, item, ours.get(name)));
    else found.push({ kind: 'missing', path: at, stock: item, ours: undefined });
  }
  for (const [name, item] of ours) if (!stock.has(name)) found.push({ kind: 'additional', path: itemPath(path, name), stock: undefined, ours: item });
  return found;
}

/** An object whose keys are compared one by one: no value of Extended JSON. */
function isPlain(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isWrapper(value);
}

const wrappers: ReadonlySet<string> = new Set(['$numberInt', '$numberLong', '$numberDouble', '$numberDecimal', '$date', '$oid', '$uuid', '$binary', '$regularExpression', '$timestamp', '$minKey', '$maxKey', '$code', '$symbol', '$dbPointer', '$undefined']);

function isWrapper(value: object): boolean {
  const [key] = Object.keys(value);
  return key !== undefined && wrappers.has(key);
}
