/** The README's table of options is read as its reader reads it, and held against the program; and so is the script that keeps it. */
import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { tableOf, withTable } from '../../scripts/readme-options.mjs';
import { type OptionName, type OptionRow, optionRows } from '../../src/config/options.js';
import { loadConfig } from '../../src/config/load.js';

const readmePath = fileURLToPath(new URL('../../README.md', import.meta.url));
const script = fileURLToPath(new URL('../../scripts/readme-options.mjs', import.meta.url));
const options = Object.entries(optionRows) as [OptionName, OptionRow][];

/** The cells of each row of the README's tables that begins with a flag, or says that there is none; code marks taken off. */
function rowsOf(text: string): string[][] {
  return text.split('\n').filter((line) => /^\| (`--|environment only)/.test(line)).map((line) => line.slice(1, -1).split(/(?<!\\)\|/).map((each) => each.trim().replace(/^`(.*)`$/, '$1')));
}

describe("the README's table of options", () => {
  it.each(options)('has %s with its flag, its variable and its default', (_name, { flag, value, env, default: fallback }) => {
    const rows = rowsOf(readFileSync(readmePath, 'utf8')).filter(([, cell]) => cell === env);
    expect(rows).toHaveLength(1);
    const written = flag === null ? 'environment only' : `--${flag}${value === undefined ? '' : ` <${value}>`}`;
    expect(rows[0]?.slice(0, 3)).toEqual([written, env, fallback]);
  });

  it('has no option that the program has not', () => {
    const variables = options.map(([, { env }]) => env);
    expect(rowsOf(readFileSync(readmePath, 'utf8')).map(([, cell]) => cell)).toEqual(variables);
  });

  it('is the one that the script would write', () => {
    expect(spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
  });
});

it.each(options.filter(([, { default: fallback }]) => fallback !== 'none'))('the default of %s that is shown is the one that is used', (name, { default: fallback }) => {
  expect(String(loadConfig({}, {}).config[name])).toBe(fallback);
});

describe('the script', () => {
  let folder: string;
  let copy: string;
  const run = (...args: string[]) => spawnSync(process.execPath, [script, ...args, copy], { encoding: 'utf8' });
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'readme-options-'));
    copy = join(folder, 'README.md');
    copyFileSync(readmePath, copy);
  });
  afterEach(() => { rmSync(folder, { recursive: true, force: true }); });

  it('refuses with --check a table that differs, and writes nothing then', () => {
    const differs = readFileSync(copy, 'utf8').replace(/<!-- options -->[^]*<!-- \/options -->/, '<!-- options -->\nold\n<!-- /options -->');
    writeFileSync(copy, differs);
    expect(run('--check')).toMatchObject({ status: 1, stderr: expect.stringContaining('readme-options.mjs') });
    expect(readFileSync(copy, 'utf8')).toBe(differs);
    expect(run()).toMatchObject({ status: 0 });
    expect(run('--check')).toMatchObject({ status: 0 });
  });

  it('keeps everything outside of the markers as it is', () => {
    expect(withTable('a\n<!-- options -->\nold\n<!-- /options -->\nb $& $1', 'T $1')).toBe('a\n<!-- options -->\nT $1\n<!-- /options -->\nb $& $1');
  });

  it.each(['no markers', '<!-- options --> alone', '<!-- /options --> <!-- options -->', '<!-- options --><!-- /options --><!-- options --><!-- /options -->'])('refuses a README with %j', (text) => {
    expect(() => withTable(text, 'table')).toThrow('<!-- options -->');
  });

  it('does not let a text break the table', () => {
    expect(tableOf([{ flag: 'x', value: 'n', env: 'X', default: 'none', about: 'a | b <c>' }]).split('\n')[2]).toBe('| `--x <n>` | `X` | none | a \\| b \\<c> |');
  });

  it('says of an option without a flag that only the environment gives it', () => {
    expect(tableOf([{ flag: null, env: 'X', default: 'none', about: 'a' }]).split('\n')[2]).toBe('| environment only | `X` | none | a |');
  });
});
