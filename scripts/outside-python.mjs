/** Installs what others wrote in Python and we check ourselves against, as `outside.mjs` does for packages of npm. */
import './node-version.mjs';
import process from 'node:process';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { withLock } from './lock.mjs';
import { cacheDir } from './mongod.mjs';
import { say } from './run.mjs';

const installTimeoutMs = 300_000;

const execFileAsync = promisify(execFile);

/** Where the interpreter of a virtual environment is. */
const pythonOf = (folder) => (process.platform === 'win32' ? join(folder, 'Scripts', 'python.exe') : join(folder, 'bin', 'python'));

/** The interpreter that everything is made for: another one gets an environment of its own. */
const describePython = async (python, env) => {
  const code = 'import sys; print(sys.version.split()[0]); print(sys.base_prefix)';
  const { stdout } = await execFileAsync(python, ['-c', code], { env, timeout: 30_000 });
  const [version, prefix] = stdout.trim().split(/\r?\n/);
  return { version, prefix };
};

const reasonOf = (error) => {
  const errors = String(error.stderr ?? '').split('\n').filter((line) => /^(ERROR|Error): /.test(line)).map((line) => line.trim());
  return errors.at(-1) ?? (error.killed ? `no end in ${installTimeoutMs} ms` : error.message.split('\n')[0]);
};

/** Only whole packages are taken: one that must be built would run code of its own. */
const install = async (python, folder, requirements, env) => {
  const options = { env, timeout: installTimeoutMs };
  await execFileAsync(python, ['-m', 'venv', folder], options);
  const args = ['install', '--quiet', '--no-input', '--disable-pip-version-check', '--only-binary', ':all:', '--retries', '1'];
  await execFileAsync(pythonOf(folder), ['-m', 'pip', ...args, ...requirements], options);
};

/**
 * Installs packages of PyPI into a virtual environment in the cache, once for each set of them and each Python.
 * @param {string[]} requirements each with its exact version: `name==1.2.3`
 * @returns {Promise<{python: string} | {unavailable: string}>} the interpreter that can import them, or why there is none
 * (no Python 3, no registry to reach, no such package for it), for a caller that then skips
 * @throws when a requirement has no exact version
 */
export const installOutsidePython = async (requirements, { env = process.env, python = process.platform === 'win32' ? 'python' : 'python3' } = {}) => {
  const inexact = requirements.find((name) => !/^[\w.-]+==\d+(\.\d+)+$/.test(name));
  if (requirements.length === 0 || inexact !== undefined) throw new Error(`${inexact ?? 'no requirement'} is not an exact version`);
  const wanted = [...requirements].sort();
  let found;
  try {
    found = await describePython(python, env);
  } catch (error) {
    return { unavailable: `there is no Python 3: ${error.code === 'ENOENT' ? `no ${python} on the PATH` : reasonOf(error)}` };
  }
  const hash = createHash('sha256').update([found.prefix, ...wanted].join('\n')).digest('hex').slice(0, 16);
  const dir = cacheDir(env);
  const folder = join(dir, `outside-${wanted[0].replaceAll(/[^\w.-]+/g, '-')}-python-${found.version}-${hash}`);
  return withLock(folder, async () => {
    if (existsSync(folder)) return { python: pythonOf(folder) };
    await mkdir(dir, { recursive: true });
    // Named as those of npm are, which are cleared away when one was left.
    const workDir = await mkdtemp(join(dir, 'install-'));
    say(`pip install ${wanted.join(' ')} (into ${dir})`);
    try {
      await install(python, workDir, wanted, env);
      // Only a whole install gets the name that counts. The programs in it hold the old path; its interpreter does not.
      await rename(workDir, folder);
      return { python: pythonOf(folder) };
    } catch (error) {
      return { unavailable: `pip could not install ${wanted.join(' ')}: ${reasonOf(error)}` };
    } finally {
      await rm(workDir, { recursive: true, force: true });
    }
  });
};
