/** Drives the real Claude Code, without an account, against the server, and lets the database say what became of its queries. */
import './node-version.mjs';
import process from 'node:process';
import { readFile, writeFile } from 'node:fs/promises';
import { parseArgs } from 'node:util';
import { installClaudeCode, version } from './claude-code/install.mjs';
import { reportOf, wireReport } from './claude-code/report.mjs';
import { whyNoTerminal } from './claude-code/terminal.mjs';
import { main, say, SetupError } from './run.mjs';
import { setUp } from './setup.mjs';

const usage = 'usage: node scripts/claude-code.mjs [--only <part of a scenario\'s title>] [--write]\n  --write puts the output into docs/claude-code.md';
const page = new URL('../docs/claude-code.md', import.meta.url);
const marked = /(<!-- measured -->\n)[^]*(<!-- \/measured -->)/;
/** For the whole run, which takes a fifth of that: each part has a deadline of its own. */
const runMs = 480_000;

const readOptions = () => {
  try {
    const { values } = parseArgs({ options: { only: { type: 'string', default: '' }, write: { type: 'boolean', default: false } } });
    if (values.write && values.only !== '') throw new Error('--write takes a whole run');
    return values;
  } catch (error) {
    throw new SetupError(`${error.message}\n${usage}`);
  }
};

const output = [];
const print = (text) => {
  output.push(text);
  process.stdout.write(`${text}\n`);
};

/** What must be undone, latest first, also when a signal ends the run. */
const cleaners = [];
let isEnding = false;
const undo = (cleaner) => cleaner().catch((error) => { say(`cleaning up: ${error.message}`); });
/** What is started while everything ends is undone at once. */
const atEnd = (cleaner) => (isEnding ? void undo(cleaner) : cleaners.push(cleaner));
let cleaning = Promise.resolve();
/** One at a time: who waits for it finds all undone, also what another one had begun to undo. */
const clean = (downTo = 0) => {
  cleaning = cleaning.then(async () => {
    while (cleaners.length > downTo) await undo(cleaners.pop());
  });
  return cleaning;
};

async function playOne({ play, judge, database, scenario, transport, title, program }) {
  const before = cleaners.length;
  try {
    const seen = await play({ program, database, transport, scenario, atEnd });
    const checks = judge(scenario, seen);
    const passed = checks.every(({ holds }) => holds);
    print(`\n${title}: ${passed ? 'passed' : 'FAILED'}`);
    for (const line of reportOf(seen, scenario.action(seen), checks)) print(line);
    return passed;
  } catch (error) {
    print(`\n${title}: FAILED\n  ${error.message}`);
    for (const line of wireReport(error.entries ?? [])) print(line);
    return false;
  } finally {
    await clean(before);
    if (!isEnding) await database.clear();
  }
}

async function playAll(only) {
  const skip = (reason) => print(`claude-code: skipped (${reason})`);
  const noTerminal = await whyNoTerminal();
  if (noTerminal !== undefined) return void skip(noTerminal);
  const { program, unavailable } = await installClaudeCode();
  if (unavailable !== undefined) return void skip(unavailable);
  Object.assign(process.env, await setUp());

  // What they import exists only after the set-up.
  const { startDatabase } = await import('./claude-code/database.mjs');
  const { play } = await import('./claude-code/stage.mjs');
  const { judge, scenarios } = await import('./claude-code/scenarios.mjs');
  const { transports } = await import('./claude-code/transports.mjs');
  const database = await startDatabase();
  atEnd(() => database.stop());
  print(`Claude Code ${version}, MongoDB ${database.version}, Node ${process.versions.node}, ${process.platform}-${process.arch}`);

  let passed = 0;
  let failed = 0;
  for (const transport of Object.keys(transports)) {
    for (const scenario of scenarios) {
      const title = `${transport}: ${scenario.name}`;
      if (isEnding || !title.includes(only)) continue;
      if (await playOne({ play, judge, program, database, scenario, transport, title })) passed += 1;
      else failed += 1;
    }
  }
  print(`\nclaude-code: ${passed} passed, ${failed} failed`);
  return { passed, failed };
}

const writePage = async () => {
  const text = await readFile(page, 'utf8');
  if (!marked.test(text)) throw new SetupError('docs/claude-code.md has no place for the output');
  await writeFile(page, text.replace(marked, (_all, before, after) => `${before}\`\`\`\n${output.join('\n')}\n\`\`\`\n${after}`));
};

const endBy = (reason, exitCode) => {
  isEnding = true;
  say(`claude-code: ${reason}`);
  void clean().finally(() => process.exit(exitCode));
};

await main(async () => {
  const options = readOptions();
  for (const [signal, number] of [['SIGINT', 2], ['SIGTERM', 15], ['SIGHUP', 1]]) process.once(signal, () => { endBy(`ended by ${signal}`, 128 + number); });
  const timer = setTimeout(() => { endBy(`not finished in ${runMs} ms`, 1); }, runMs);
  try {
    const totals = await playAll(options.only);
    if (totals === undefined) return 0;
    if (options.write) await writePage();
    return totals.failed === 0 && totals.passed > 0 ? 0 : 1;
  } finally {
    clearTimeout(timer);
    await clean();
  }
});
