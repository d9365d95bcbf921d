/** The page docs/compatibility.md: each test writes its own parts of it when asked to, and otherwise checks that they stand there. */

import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { expect } from 'vitest';
import type { Ground } from './ground.js';

const page = new URL('../../docs/compatibility.md', import.meta.url);
const isWriting = process.env['WRITE_COMPATIBILITY'] === '1';

/** What a run measures differs from run to run: only its form is checked. */
function withoutMeasures(text: string): string {
  return text.replaceAll(/^Measured on .*$/gm, 'Measured on …').replaceAll(/\d[\d,]* (ms|bytes|times)\b/g, '… $1');
}

/** @param part between the markers `<!-- part -->` and `<!-- /part -->` of the page */
export function checkPart(part: string, text: string): void {
  const [begin, end] = [`<!-- ${part} -->\n`, `\n<!-- /${part} -->`];
  const whole = readFileSync(page, 'utf8');
  const [from, to] = [whole.indexOf(begin) + begin.length, whole.indexOf(end)];
  if (from < begin.length || to < from) throw new Error(`docs/compatibility.md has no place for ${part}: ${begin.trim()} and, after it, ${end.trim()}`);
  if (isWriting) writeFileSync(page, whole.slice(0, from) + text + whole.slice(to));
  else expect(withoutMeasures(whole.slice(from, to)), 'docs/compatibility.md is not what was met: write it anew with npm run compatibility').toBe(withoutMeasures(text));
}

export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}

export const code = (names: Iterable<string>) => [...names].map((name) => `\`${name}\``).join(', ');

/** With thousands apart. */
export const shownNumber = (value: number) => Math.round(value).toLocaleString('en-US');

export function measuredOn({ version }: Pick<Ground, 'version'>): string {
  return `Measured on ${new Date().toISOString().slice(0, 10)}: MongoDB ${version} on the same machine, ${cpus().length} cores, Node ${process.version}, ${process.platform}.`;
}
