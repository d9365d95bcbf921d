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
export class SetupError extends Error {}

/** Progress goes to stderr: stdout belongs to the answer of a script. */
export const say = (text) => {
  process.stderr.write(`mongo-leash: ${text}\n`);
};

/** Child stdio for commands that speak on stdout: all that they say goes to stderr. */
export const quietStdio = ['ignore', 2, 2];

/**
 * Runs a command to its end and resolves to its exit code (128 + the signal's number when a signal ended it).
 * A signal to this process is passed on, and the command decides when to end.
 * @throws the spawn error (`ENOENT`) when the command cannot be started
 */
export const run = (command, args, options = {}) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: projectDir, stdio: 'inherit', ...options });
    const passOn = (signal) => child.kill(signal);
    // A terminal sends its SIGINT to the child as well: here it only must not end the parent first.
    const stay = () => {};
    process.on('SIGTERM', passOn).on('SIGHUP', passOn).on('SIGINT', stay);
    const settled = () => {
      process.off('SIGTERM', passOn).off('SIGHUP', passOn).off('SIGINT', stay);
    };
    child.on('error', (error) => {
      settled();
      reject(error);
    });
    child.on('exit', (code, signal) => {
      settled();
      resolve(code ?? 128 + constants.signals[signal]);
    });
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

/** Runs a script's body, which may return an exit code; an error is shown, and the exit code is 1. */
export const main = async (body) => {
  try {
    process.exitCode = (await body()) ?? 0;
  } catch (error) {
    process.stderr.write(`${error instanceof SetupError ? `mongo-leash: ${error.message}` : error.stack}\n`);
    process.exitCode = 1;
  }
};
