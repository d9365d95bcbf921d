/** What a command prints: a table for a person at a terminal, JSON lines for a script. */

import { styleText } from 'node:util';
import { shown } from '../core/evidence.js';
import { clean, fit, width } from './text.js';

export type Colour = 'red' | 'green' | 'yellow' | 'dim' | 'bold' | 'inverse';

/** Colours only on a terminal, and never where NO_COLOR is set. */
export function paint(colour: Colour, text: string, stream: { isTTY?: boolean } = process.stdout): string {
  const plain = stream.isTTY !== true || (process.env['NO_COLOR'] ?? '') !== '';
  return plain ? text : styleText(colour, text, { validateStream: false });
}

/** The text must be clean already. */
export function printLine(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** One object a line; 64-bit ids as text. A terminal obeys some characters that JSON may hold as they are: those are escaped. */
export function printJson(value: unknown): void {
  const json = JSON.stringify(value, (_key, inner: unknown) => (isLongLike(inner) ? inner.toString() : inner));
  printLine(json.replace(/[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`));
}

/** Something for the person, beside the output: to stderr, so that a script reads only what it asked for. */
export function say(text: string): void {
  process.stderr.write(`mongo-leash: ${clean(text)}\n`);
}

/** An opid or a cursor id as text; a dash for none. */
export function showId(id: unknown): string {
  return id === null || id === undefined ? '-' : shown(id);
}

function isLongLike(value: unknown): value is { toString(): string } {
  return typeof value === 'object' && value !== null && (value as { _bsontype?: unknown })._bsontype === 'Long';
}

/** Columns wide enough for their longest cell; the last one is left as it is. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const cells = [head, ...rows].map((row) => row.map(clean));
  const widths = head.map((_, column) => Math.max(...cells.map((row) => width(row[column] ?? ''))));
  return cells.map((row) => row.map((cell, column) => (column === head.length - 1 ? cell : fit(cell, widths[column] ?? 0))).join('  ').trimEnd());
}

/** @param colours one for each row, where it has one */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[], colours: readonly (Colour | undefined)[] = []): void {
  const [first = '', ...rest] = table(head, rows);
  printLine(paint('dim', first));
  for (const [i, line] of rest.entries()) {
    const colour = colours[i];
    printLine(colour === undefined ? line : paint(colour, line));
  }
}
