/** Installs what others wrote and we check ourselves against, outside the project: its size and its needs are no business of `npm ci`. */
import './node-version.mjs';
import process from 'node:process';
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { withLock } from './lock.mjs';
import { cacheDir } from './mongod.mjs';
import { say } from './run.mjs';

const installTimeoutMs = 300_000;
/** An install ends long before that: what is older was left by one that was killed. */
const abandonedAfterMs = 3_600_000;

const execFileAsync = promisify(execFile);

/** The last word of npm's own log lines, which come one fact a line behind `npm error`. */
const reasonOf = (error) => {
  const lines = String(error.stderr ?? '').split('\n').filter((line) => line.startsWith('npm error '));
  const told = lines.map((line) => line.slice('npm error '.length).trim()).filter((line) => line && !/complete log/.test(line));
  return told.slice(0, 2).join(', ') || (error.killed ? `no end in ${installTimeoutMs} ms` : error.message);
};

/** Scripts of the packages do not run: a binary is named by the package of this platform that holds it. */
const install = async (folder, packages, options, env) => {
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true }));
  const args = ['install', '--prefix', folder, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund', ...options];
  const patience = ['--fetch-retries=1', '--fetch-retry-mintimeout=1000', '--loglevel=error'];
  const npm = env.npm_execpath;
  const [command, before] = npm?.endsWith('npm-cli.js') ? [process.execPath, [npm]] : ['npm', []];
  await execFileAsync(command, [...before, ...args, ...patience, ...packages], {
    cwd: folder,
    env,
    timeout: installTimeoutMs,
    shell: command === 'npm' && process.platform === 'win32',
  });
};

const removeAbandoned = async (dir) => {
  for (const name of (await readdir(dir)).filter((name) => name.startsWith('install-'))) {
    const path = join(dir, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Infinity }));
    if (Date.now() - mtimeMs > abandonedAfterMs) await rm(path, { recursive: true, force: true });
  }
};

/**
 * Installs packages of the npm registry into the cache, once for each set of them.
 * @param {string[]} packages each with its exact version: `name@1.2.3`
 * @param {{env?: object, withoutOptional?: boolean}} options `withoutOptional` leaves out what the packages can do without
 * @returns {Promise<{folder: string} | {unavailable: string}>} the folder that has their `node_modules`, or why there is none
 * (no registry to reach, no such package for this platform), for a caller that then skips
 * @throws when a package has no exact version
 */
export const installOutside = async (packages, { env = process.env, withoutOptional = false } = {}) => {
  const inexact = packages.find((name) => !/.@\d+\.\d+\.\d+(-[\w.]+)?$/.test(name));
  if (packages.length === 0 || inexact !== undefined) throw new Error(`${inexact ?? 'no package'} is not an exact version`);
  const wanted = [...packages].sort();
  const options = withoutOptional ? ['--omit=optional'] : [];
  const machine = `${process.platform}-${process.arch}`;
  const hash = createHash('sha256').update([machine, ...wanted, ...options].join('\n')).digest('hex').slice(0, 16);
  const dir = cacheDir(env);
  const folder = join(dir, `outside-${wanted[0].replaceAll(/[^\w.-]+/g, '-').replace(/^-/, '')}-${machine}-${hash}`);
  return withLock(folder, async () => {
    if (existsSync(folder)) return { folder };
    await mkdir(dir, { recursive: true });
    await removeAbandoned(dir);
    const workDir = await mkdtemp(join(dir, 'install-'));
    say(`npm install ${wanted.join(' ')} (into ${dir})`);
    try {
      await install(workDir, wanted, options, env);
      // Only a whole install gets the name that counts.
      await rename(workDir, folder);
      return { folder };
    } catch (error) {
      return { unavailable: `npm could not install ${wanted.join(' ')}: ${reasonOf(error)}` };
    } finally {
      await rm(workDir, { recursive: true, force: true });
    }
  });
};
