/** Claude Code at work: one question and its end, or a terminal in which somebody types. */
import { spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { now, until } from './clock.mjs';
import { openTerminal } from './terminal.mjs';
import { answerTo, sentTo } from './wire.mjs';

const prompt = 'go';
const startMs = 30_000;
const confirmMs = 10_000;
/** Text and Enter in one piece would be a paste. */
const betweenKeysMs = 300;
const shownCharacters = 1_000;

/** @typedef {{ pid: number, ended: Promise<unknown>, shown(): string }} Conversation `shown` is the last that was on its screen */

/** Asks one question, and ends with the answer. @returns {Conversation} */
export function startPrinting({ prepared: { print, cwd, env }, atEnd }) {
  const [command, ...args] = print(prompt);
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise((resolve) => { child.on('exit', resolve); });
  atEnd(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  let written = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => { written = (written + chunk.toString('utf8')).slice(-shownCharacters); });
  return { pid: child.pid, ended, shown: () => written };
}

/**
 * Opens a terminal and types the question, or goes `back` to the last conversation and types nothing.
 * @returns {Promise<Conversation & { leave(): Promise<number>, confirm(choice: string): Promise<number> }>}
 *   both resolve to the moment of the last key, in ms of `now()`
 */
export async function startInteractive({ prepared: { interactive, comeBack, cwd, env }, folder, line, atEnd }, { back = false } = {}) {
  const connectedBefore = listsOfTools(line).length;
  const terminal = await openTerminal({ command: back ? comeBack : interactive, cwd, env, folder, atEnd });
  const shown = () => terminal.shown().slice(-shownCharacters);
  const press = () => {
    terminal.type('\r');
    return now();
  };
  const enter = async (text) => {
    terminal.type(text);
    await delay(betweenKeysMs);
    return press();
  };
  try {
    await until('Claude Code has the list of tools', () => listsOfTools(line).length > connectedBefore, startMs);
    await until('Claude Code shows its prompt', () => terminal.shown().includes('❯'), startMs);
    if (!back) await enter(prompt);
  } catch (error) {
    throw new Error(`${error.message}; on the screen: ${shown()}`, { cause: error });
  }
  return {
    pid: terminal.pid,
    ended: terminal.ended,
    shown,
    leave: () => enter('/exit'),
    async confirm(choice) {
      await until(`Claude Code offers "${choice}"`, () => terminal.shown().includes(`❯1.${choice.replaceAll(' ', '')}`), confirmMs).catch((error) => {
        throw new Error(`${error.message}; on the screen: ${shown()}`, { cause: error });
      });
      return press();
    },
  };
}

/** The answers to tools/list that have passed. */
function listsOfTools(line) {
  const entries = line.entries();
  return sentTo(entries, 'tools/list').filter((sent) => answerTo(entries, sent) !== undefined);
}
