/** A program in a pseudo-terminal, made by `script` of util-linux: what it shows, what is typed, and its process id. */
import process from 'node:process';
import { execFile, spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { until } from './clock.mjs';

/** Why there is no pseudo-terminal here, or undefined. */
export async function whyNoTerminal() {
  const said = await promisify(execFile)('script', ['--version'], { timeout: 10_000 }).then(({ stdout }) => stdout, (error) => error.message);
  return said.includes('util-linux') ? undefined : `no pseudo-terminal: ${'`script`'} of util-linux is needed (${said.split('\n')[0]})`;
}

const quoted = (word) => `'${word.replaceAll("'", String.raw`'\''`)}'`;

/**
 * Starts `command` (a program and its arguments) in a terminal of 50 rows and 160 columns.
 * @param {{ command: string[], cwd: string, env: Record<string, string>, folder: string, atEnd(clean: () => Promise<void>): void }} options
 *   `folder` holds the process id's file; `atEnd` takes what ends both, whatever they do
 */
export async function openTerminal({ command, cwd, env, folder, atEnd }) {
  const pidFile = join(folder, 'terminal.pid');
  await rm(pidFile, { force: true });
  const line = `stty rows 50 cols 160; echo $$ > ${quoted(pidFile)}; exec ${command.map(quoted).join(' ')}`;
  const script = spawn('script', ['--quiet', '--return', '--flush', '--command', line, '/dev/null'], { cwd, env: { ...env, SHELL: '/bin/sh' }, stdio: ['pipe', 'pipe', 'inherit'] });
  let screen = '';
  let hasEnded = false;
  script.stdout.on('data', (chunk) => { screen = (screen + chunk.toString('utf8')).slice(-200_000); });
  script.stdin.on('error', () => undefined);
  const ended = new Promise((resolve) => { script.on('exit', resolve); });
  void ended.then(() => { hasEnded = true; });
  const readPid = async () => Number(await readFile(pidFile, 'utf8').catch(() => 0));
  atEnd(async () => {
    // The process id of the program may belong to another one when both have ended.
    if (hasEnded) return;
    const pid = await readPid();
    if (pid > 0) kill(pid);
    kill(script.pid);
    await ended;
  });
  const pid = await until('the terminal runs the program', readPid, 10_000);
  return {
    /** Of the program itself, not of `script`. */
    pid,
    /** What it has written lately, without the control sequences and without spaces: a terminal program moves instead of writing them. */
    shown: () => withoutControls(screen),
    type: (text) => { script.stdin.write(text); },
    /** Resolves when the program and the terminal have ended. */
    ended,
  };
}

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

const withoutControls = (text) => text.replaceAll(/\u001b\[[0-9;?<>=]*[a-zA-Z]|\u001b\][^\u0007\u001b]*(\u0007|\u001b\\)|\u001b[()=>78].?/g, '').replaceAll(/\s+/g, '');
