/** Makes a clone ready to run: packages, build, mongod. What is already done is skipped, so every command can start with it. */
import './node-version.mjs';
import process from 'node:process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { withLock } from './lock.mjs';
import { findMongod } from './mongod.mjs';
import { isMain, main, projectDir, quietStdio, run, runNode, say, SetupError } from './run.mjs';

const inProject = (...parts) => join(projectDir, ...parts);
const nodeMajor = process.versions.node.split('.')[0];
const installStamp = inProject('node_modules', '.mongo-leash-setup.json');
const buildStamp = inProject('dist', '.mongo-leash-build.json');

const readJson = async (path) => JSON.parse(await readFile(path, 'utf8').catch(() => 'null'));

/** Why `npm ci` is needed, or undefined. npm's own record of what it installed counts, so `npm install` by hand does too. */
const reasonToInstall = async () => {
  const wanted = await readJson(inProject('package-lock.json'));
  const installed = await readJson(inProject('node_modules', '.package-lock.json'));
  if (!installed) return 'no packages are installed';
  const stamp = await readJson(installStamp);
  if (stamp && stamp.nodeMajor !== nodeMajor) return `packages were installed by Node ${stamp.nodeMajor}`;
  const names = new Set([...Object.keys(wanted.packages), ...Object.keys(installed.packages)].filter(Boolean));
  for (const name of names) {
    const want = wanted.packages[name];
    const have = installed.packages[name];
    // An optional package for another kind of machine is in the lock only.
    if (!have && want.optional) continue;
    if (want?.version !== have?.version || want?.integrity !== have?.integrity) return `${name} is not as in package-lock.json`;
  }
  return undefined;
};

const install = async () => {
  const reason = await reasonToInstall();
  if (!reason) return;
  say(`npm ci (${reason})`);
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund'];
  const npm = process.env.npm_execpath;
  // The npm that started this script, where one did; otherwise the one on the PATH (a .cmd file on Windows, hence the shell).
  const code = npm?.endsWith('npm-cli.js')
    ? await runNode([npm, ...args], { stdio: quietStdio })
    : await run('npm', args, { stdio: quietStdio, shell: process.platform === 'win32' });
  if (code !== 0) {
    throw new SetupError(
      `npm ci failed (exit code ${code}; its error is above).\n` +
        'Check that the npm registry can be reached (`npm ping`), delete node_modules, and run the same command again.',
    );
  }
  await writeFile(installStamp, JSON.stringify({ nodeMajor }));
};

const sourceFiles = async () =>
  (await readdir(inProject('src'), { recursive: true })).filter((name) => name.endsWith('.ts')).sort();

const hashOfSources = async (names) => {
  const hash = createHash('sha256');
  const lock = await readJson(inProject('package-lock.json'));
  hash.update(lock.packages['node_modules/typescript'].version);
  for (const path of [inProject('tsconfig.json'), ...names.map((name) => inProject('src', name))]) {
    hash.update(`\0${path.slice(projectDir.length)}\0`).update(await readFile(path));
  }
  return hash.digest('hex');
};

/** Output whose source is gone would still be imported, and hide the missing file. */
const removeStaleOutput = async (names) => {
  const expected = new Set(names.flatMap((name) => [name.replace(/ts$/, 'js'), name.replace(/ts$/, 'js.map')]));
  for (const name of await readdir(inProject('dist'), { recursive: true })) {
    if (/\.js(\.map)?$/.test(name) && !expected.has(name)) await rm(inProject('dist', name));
  }
};

const build = async () => {
  const names = await sourceFiles();
  const sources = await hashOfSources(names);
  if ((await readJson(buildStamp))?.sources === sources) return;
  say('build (the sources changed since the last one)');
  // A build that fails half-way must not pass for the last good one.
  await rm(buildStamp, { force: true });
  const code = await runNode([inProject('node_modules/typescript/bin/tsc'), '-p', 'tsconfig.json'], { stdio: quietStdio });
  if (code !== 0) throw new SetupError(`the build failed (tsc exit code ${code}; its errors are above).`);
  await mkdir(inProject('dist'), { recursive: true });
  await removeStaleOutput(names);
  await writeFile(buildStamp, JSON.stringify({ sources }));
};

/**
 * Installs, builds and finds a mongod, each only when needed. Says what it does on stderr.
 * @returns {Promise<NodeJS.ProcessEnv>} the environment that makes mongodb-memory-server use that mongod
 * @throws {SetupError} saying what failed and what to do
 */
export const setUp = () =>
  withLock(projectDir, async () => {
    if (!existsSync(inProject('package-lock.json'))) throw new SetupError(`${projectDir} has no package-lock.json.`);
    await install();
    await build();
    const { path, source, version } = await findMongod();
    say(`mongod ${version} from ${source}`);
    return { ...process.env, MONGOMS_SYSTEM_BINARY: path, MONGOMS_SYSTEM_BINARY_VERSION_CHECK: 'false' };
  });

if (isMain(import.meta.url)) {
  await main(async () => {
    await setUp();
  });
}
