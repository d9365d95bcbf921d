/** Runs the official conformance suite against the real server over HTTP, with fixture tools beside its own, on a real mongod. */
import './node-version.mjs';
import process from 'node:process';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { disagreements, judge, readList, scenarios } from './conformance-table.mjs';
import { installOutside } from './outside.mjs';
import { isMain, main, projectDir, say, SetupError } from './run.mjs';
import { setUp } from './setup.mjs';

const suitePackage = '@modelcontextprotocol/conformance@0.2.0-alpha.12';
/** The suite needs `fs.globSync`. */
const suiteNodeMajor = 22;
const nodePackage = `node-linux-${process.arch}@24.21.0`;
const scenarioTimeoutMs = 90_000;
const serverStartMs = 30_000;
const serverEndMs = 10_000;
const goneWithinMs = 10_000;

const print = (line) => process.stdout.write(`${line}\n`);

/** Resolves to how to run the suite: `{command, args}`, or `{unavailable}` with the reason. */
const installSuite = async () => {
  const ownNode = Number(process.versions.node.split('.')[0]) >= suiteNodeMajor;
  if (!ownNode && process.platform !== 'linux') return { unavailable: `the suite needs Node ${suiteNodeMajor}, and this is Node ${process.versions.node}` };
  const installed = await installOutside(ownNode ? [suitePackage] : [suitePackage, nodePackage]);
  if (installed.unavailable) return installed;
  const inFolder = (...parts) => join(installed.folder, 'node_modules', ...parts);
  return {
    command: ownNode ? process.execPath : inFolder(nodePackage.split('@')[0], 'bin', 'node'),
    args: [inFolder('@modelcontextprotocol', 'conformance', 'dist', 'index.js')],
  };
};

/** Runs a program to its end, or to the end of its time. Resolves to its exit code (null: it was ended) and all that it said. */
const collect = (command, args) =>
  new Promise((resolve, reject) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], timeout: scenarioTimeoutMs, killSignal: 'SIGKILL' });
    const said = [];
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => said.push(text));
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output: said.join('') }));
  });

/** Starts the server with the fixtures in a process of its own, which ends when its stdin does. */
const startServer = async (uri) => {
  const child = spawn(process.execPath, ['test/conformance/server.mjs'], { cwd: projectDir, env: { ...process.env, MONGO_LEASH_URI: uri }, stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve(signal ?? code)));
  const first = new Promise((resolve) => createInterface({ input: child.stdout }).once('line', resolve));
  const url = await Promise.race([first, ended.then((how) => { throw new Error(`the server ended (${how}) before it listened`); }), timeout(serverStartMs, 'the server did not listen')]);
  return {
    url,
    async stop() {
      child.stdin.end();
      return Promise.race([ended, timeout(serverEndMs, 'the server did not end').finally(() => child.kill('SIGKILL'))]);
    },
  };
};

const timeout = (ms, what) => delay(ms, undefined, { ref: false }).then(() => { throw new Error(`${what} within ${ms} ms`); });

/** The checks of one scenario at one version; a run that leaves none behind has failed, and `problem` says how. */
const runScenario = async (suite, url, name, version) => {
  const folder = await mkdtemp(join(tmpdir(), 'mongo-leash-conformance-'));
  try {
    const at = version === undefined ? [] : ['--spec-version', version];
    const { code, output } = await collect(suite.command, [...suite.args, 'server', '--url', url, '--scenario', name, ...at, '--output-dir', folder]);
    const file = (await readdir(folder, { recursive: true })).find((path) => path.endsWith('checks.json'));
    if (file !== undefined) return { checks: JSON.parse(await readFile(join(folder, file), 'utf8')) };
    return { problem: `${code === null ? `no end within ${scenarioTimeoutMs} ms` : `exit code ${code} without checks`}: ${output.trim().split('\n').at(-1) ?? ''}` };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

/** Runs a scenario at each version that it has, prints it, and resolves to whether it has passed. */
const report = async (suite, url, name, versions, except) => {
  const failures = [];
  const remarks = [];
  const counts = [];
  for (const version of versions.length === 0 ? [undefined] : versions) {
    const at = version === undefined ? '' : `${version}: `;
    const { checks, problem } = await runScenario(suite, url, name, version);
    const judged = problem === undefined ? judge(checks, except) : { passed: 0, failures: [problem], remarks: [] };
    counts.push(`${at}${judged.passed}`);
    failures.push(...judged.failures.map((line) => `${at}${line}`));
    remarks.push(...judged.remarks.map((line) => `${at}${line}`));
  }
  print(`${failures.length === 0 ? 'passed ' : 'FAILED '} ${name} (checks passed ${counts.join(', ')})`);
  for (const line of failures) print(`        FAILED: ${line}`);
  for (const line of remarks) print(`        ${line}`);
  return failures.length === 0;
};

/** Every cancel was a kill, so the database runs nothing of ours once the suite has ended. Asked by a connection of its own. */
const leftOn = async (uri) => {
  const { MongoClient } = await import('mongodb');
  const witness = await new MongoClient(uri, { appName: 'witness' }).connect();
  try {
    const ours = /^mongo-leash\.1\./;
    const stages = [{ $currentOp: { allUsers: true, idleCursors: true } }, { $match: { $or: [{ 'command.comment': ours }, { 'cursor.originatingCommand.comment': ours }] } }];
    for (const deadline = Date.now() + goneWithinMs; ; await delay(100)) {
      const rows = await witness.db('admin').aggregate(stages).toArray();
      if (rows.length === 0 || Date.now() > deadline) return rows;
    }
  } finally {
    await witness.close();
  }
};

const runSuite = async (suite, only) => {
  const { code, output } = await collect(suite.command, [...suite.args, 'list', '--server']);
  const listed = readList(output);
  if (code !== 0 || listed.size === 0) throw new Error(`the suite does not list its scenarios (exit code ${code}):\n${output}`);
  const unknown = only.filter((name) => !listed.has(name));
  if (unknown.length > 0) throw new SetupError(`the suite has no scenario ${unknown.join(', ')}`);
  const wrong = disagreements(listed.keys());
  for (const line of wrong) print(`FAILED  ${line}`);

  const { startEmbedded } = await import('../dist/cli/embedded.js');
  const database = await startEmbedded();
  const counts = { passed: 0, failed: wrong.length, skipped: 0 };
  try {
    const server = await startServer(database.uri);
    try {
      for (const [name, versions] of listed) {
        const entry = scenarios[name];
        if (entry === undefined || (only.length > 0 && !only.includes(name))) continue;
        if (!entry.run) {
          counts.skipped += 1;
          print(`skipped ${name}: ${entry.reason}`);
        } else if (await report(suite, server.url, name, versions, entry.except)) counts.passed += 1;
        else counts.failed += 1;
      }
      const left = await leftOn(database.uri);
      if (left.length > 0) counts.failed += 1;
      print(left.length === 0 ? 'passed  the database runs nothing of ours any more' : `FAILED  ${left.length} operations still run ${goneWithinMs} ms after the suite`);
    } finally {
      await server.stop();
    }
  } finally {
    await database.stop();
  }
  print(`conformance: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped`);
  return counts.failed === 0 ? 0 : 1;
};

if (isMain(import.meta.url)) {
  await main(async () => {
    Object.assign(process.env, await setUp());
    const suite = await installSuite();
    if (suite.unavailable) {
      print(`conformance: skipped (${suite.unavailable})`);
      return 0;
    }
    say(`${suitePackage} against the server over HTTP`);
    // Names of scenarios as arguments: only these.
    return runSuite(suite, process.argv.slice(2));
  });
}
