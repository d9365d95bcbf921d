/** Text of strangers as a terminal can show it: harmless, and as wide as it is counted. */

/** Control characters would let a comment or an application name rewrite the terminal, and direction marks reorder it. */
const harmful = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;
const wide = /^[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]$/u;
const mark = /^[\p{M}\u200b-\u200d]$/u;

/** One line without anything that a terminal obeys. */
export function clean(text: string): string {
  return text.toWellFormed().replace(harmful, '?');
}

function widthOf(character: string): number {
  if (mark.test(character)) return 0;
  return wide.test(character) ? 2 : 1;
}

/** Columns that a cleaned text takes on a terminal. */
export function width(text: string): number {
  let columns = 0;
  for (const character of text) columns += widthOf(character);
  return columns;
}

/** The text in just so many columns: cut, or filled with spaces. */
export function fit(text: string, columns: number): string {
  let taken = 0;
  let kept = '';
  for (const character of text) {
    const next = widthOf(character);
    if (taken + next > columns) break;
    kept += character;
    taken += next;
  }
  return kept + ' '.repeat(columns - taken);
}
