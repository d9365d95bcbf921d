/** Keeps the README's table of options as the program has it: writes it between its two markers, or with `--check` says whether it stands there. */
import './node-version.mjs';
import process from 'node:process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { isMain, main, projectDir, say, SetupError } from './run.mjs';

const begin = '<!-- options -->';
const end = '<!-- /options -->';

const cell = (text) => text.replaceAll('|', '\\|').replaceAll('<', '\\<');

/** The table in Markdown. `rows` are those of `config/options`, in their order. */
export const tableOf = (rows) => {
  const lines = rows.map(({ flag, value, env, default: fallback, about }) => {
    const written = flag === null ? 'environment only' : `\`--${flag}${value === undefined ? '' : ` <${value}>`}\``;
    return `| ${written} | \`${env}\` | ${fallback === 'none' ? 'none' : `\`${fallback}\``} | ${cell(about)} |`;
  });
  return ['| flag | environment variable | default | what it does |', '|---|---|---|---|', ...lines].join('\n');
};

/** The text with the table between its markers. Throws when it does not have each marker once, in order. */
export const withTable = (text, table) => {
  const [before, inside, ...more] = text.split(begin);
  const [, after, ...evenMore] = (inside ?? '').split(end);
  if (after === undefined || more.length > 0 || evenMore.length > 0) throw new SetupError(`the README must hold ${begin} and, after it, ${end}, each once.`);
  return `${before}${begin}\n${table}\n${end}${after}`;
};

if (isMain(import.meta.url)) {
  await main(async () => {
    const check = process.argv.includes('--check');
    const path = process.argv.slice(2).find((argument) => !argument.startsWith('--')) ?? join(projectDir, 'README.md');
    const { optionRows } = await import('../dist/config/options.js').catch((error) => {
      throw new SetupError(`the program is not built (npm run build): ${error.message}`);
    });
    const text = await readFile(path, 'utf8');
    const wanted = withTable(text, tableOf(Object.values(optionRows)));
    if (text === wanted) return 0;
    if (check) throw new SetupError(`the table of options in ${path} is not that of the program: run node scripts/readme-options.mjs`);
    await writeFile(path, wanted);
    say(`wrote the table of options into ${path}`);
    return 0;
  });
}
