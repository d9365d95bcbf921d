/** What the scripts share: the project's folder, progress that is not stdout, child processes, and an end on errors. */
import process from 'node:process';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { createReadStream, realpathSync } from 'node:fs';
import { constants } from 'node:os';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';

export const projectDir = fileURLToPath(new URL('..', import.meta.url));

/** An error whose message is all that its reader needs: it is shown without a stack. */
export class SetupError extends Error {
  constructor(message, { exitCode = 1 } = {}) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** Progress goes to stderr: stdout belongs to the answer of a script. */
export const say = (text) => {
  process.stderr.write(`mongo-leash: ${text}\n`);
};

/** Child stdio for commands that speak on stdout: all that they say goes to stderr. */
export const quietStdio = ['ignore', 2, 2];

/**
 * Runs a command to its end and resolves to its exit code (128 + the signal's number when a signal ended it).
 * A signal to this process is passed on, and this process waits for the command. Then it rejects, so that a Ctrl-C ends
 * everything and not one step; with `ownsSignals` the command's exit code is the answer all the same.
 * @throws the spawn error (`ENOENT`) when the command cannot be started; {SetupError} when a signal came
 */
export const run = (command, args, { ownsSignals = false, ...options } = {}) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: projectDir, stdio: 'inherit', ...options });
    let received;
    const onSignal = (signal) => {
      received = signal;
      // A terminal sends its SIGINT to the child as well, and a second one may mean "end at once" there.
      if (signal !== 'SIGINT') child.kill(signal);
    };
    const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'];
    for (const signal of signals) process.on(signal, onSignal);
    const settle = (conclude) => {
      for (const signal of signals) process.off(signal, onSignal);
      if (received && !ownsSignals) reject(new SetupError(`ended by ${received}`, { exitCode: 128 + constants.signals[received] }));
      else conclude();
    };
    child.on('error', (error) => settle(() => reject(error)));
    child.on('exit', (code, signal) => settle(() => resolve(code ?? 128 + constants.signals[signal])));
  });

/** Runs a JavaScript file of an installed package, or of this project, with this Node. */
export const runNode = (args, options) => run(process.execPath, args, options);

/** The SHA-256 of a file's content in hexadecimal. */
export const sha256Of = async (path) => {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
};

/** Whether the module is the program itself (and not imported). */
export const isMain = (moduleUrl) =>
  process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(moduleUrl);

/** Runs a script's body, which may return an exit code; an error is shown, and its exit code is 1 unless it has its own. */
export const main = async (body) => {
  try {
    process.exitCode = (await body()) ?? 0;
  } catch (error) {
    process.stderr.write(`${error instanceof SetupError ? `mongo-leash: ${error.message}` : error.stack}\n`);
    process.exitCode = error.exitCode ?? 1;
  }
};
