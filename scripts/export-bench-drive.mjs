/** The measurement itself: one database, each reader in a process of its own, one after the other; peak memory is the system's own count. */
import process from 'node:process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { EJSON } from 'bson';
import { MongoClient } from 'mongodb';
import { isMain, main, projectDir, say, SetupError } from './run.mjs';

const count = 1_000_000;
const at = { database: 'bench', collection: 'orders' };
const begin = '<!-- export-bench -->';
const end = '<!-- /export-bench -->';
const program = join(projectDir, 'dist/main.js');
const mib = (bytes) => Math.round(bytes / 1_048_576);

/** The most memory that a process has had, in bytes. */
const peakOf = (pid) => {
  const kb = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  if (kb === undefined) throw new SetupError('peak memory is read from /proc, which only Linux has');
  return Number(kb) * 1_024;
};

/** As a process of its own: the driver's cursor as a program would use it, read only, or written as JSON Lines too. */
async function read(uri, path) {
  const client = await new MongoClient(uri).connect();
  const file = path === undefined ? null : createWriteStream(path);
  const startedAt = performance.now();
  let documents = 0;
  for await (const document of client.db(at.database).collection(at.collection).find()) {
    documents += 1;
    if (file !== null && !file.write(`${EJSON.stringify(document)}\n`)) await once(file, 'drain');
  }
  if (file !== null) await new Promise((resolve, reject) => { file.end((error) => (error ? reject(error) : resolve())); });
  process.stdout.write(JSON.stringify({ documents, ms: performance.now() - startedAt, peak: peakOf('self'), bytes: file?.bytesWritten ?? null }));
  await client.close();
}

async function byDriver(uri, path) {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), '--read', uri, ...(path === undefined ? [] : [path])], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (chunk) => { text += chunk; });
  const [code] = await once(child, 'close');
  if (code !== 0) throw new SetupError(`the driver's process ended with ${code}`);
  return JSON.parse(text);
}

async function byExport(uri, folder, format) {
  const transport = new StdioClientTransport({ command: process.execPath, args: [program, '--log-level', 'error'], env: { ...process.env, MONGO_LEASH_URI: uri, MONGO_LEASH_STATE_FOLDER: folder }, stderr: 'inherit' });
  const client = new Client({ name: 'export-bench', version: '1.0.0' });
  await client.connect(transport);
  try {
    const startedAt = performance.now();
    const { structuredContent: answer } = await client.callTool({ name: 'export', arguments: { ...at, exportTarget: [{ name: 'find', arguments: {} }], format, waitMs: 600_000 } }, undefined, { timeout: 600_000 });
    const ms = performance.now() - startedAt;
    if (answer.complete !== true || answer.documents !== count) throw new SetupError(`the export went wrong: ${JSON.stringify(answer)}`);
    return { documents: answer.documents, ms, peak: peakOf(transport.pid), bytes: (await stat(answer.path)).size };
  } finally {
    await client.close();
  }
}

async function load(uri) {
  const client = await new MongoClient(uri).connect();
  const into = client.db(at.database).collection(at.collection);
  for (let from = 0; from < count; from += 10_000) {
    await into.insertMany(Array.from({ length: 10_000 }, (_, i) => ({ customer: (i * 7_919) % 2_000, amount: ((from + i) % 50_000) / 100, status: 'shipped', placedAt: new Date(Date.UTC(2026, 0, 1) + (from + i) * 1_000) })), { ordered: false });
  }
  // Read once, so that the first reader finds the cache as the others do.
  await into.aggregate([{ $group: { _id: null, n: { $sum: 1 } } }]).toArray();
  const [{ storageStats }] = await into.aggregate([{ $collStats: { storageStats: {} } }]).toArray();
  const { version } = await client.db('admin').command({ buildInfo: 1 });
  await client.close();
  return { bsonBytes: storageStats.size, version };
}

function table(measured, { bsonBytes, version }) {
  const rows = measured.map(({ who, documents, ms, peak, bytes }) => `| ${who} | ${(ms / 1_000).toFixed(1)} s | ${Math.round(documents / (ms / 1_000)).toLocaleString('en')} | ${bytes === null ? '' : `${mib(bytes)} MiB`} | ${mib(peak)} MiB |`);
  return [
    `${count.toLocaleString('en')} documents of ${Math.round(bsonBytes / count)} bytes of BSON each, in one run on ${new Date().toISOString().slice(0, 10)}: MongoDB ${version} on the same machine, ${cpus().length} cores with a load of ${loadavg()[0].toFixed(1)} at the end, Node ${process.version}.`,
    '',
    '| reader | time | documents a second | file | peak memory of the process |',
    '|---|---|---|---|---|',
    ...rows,
  ].join('\n');
}

async function writePage(text) {
  const path = join(projectDir, 'docs/exports.md');
  const page = await readFile(path, 'utf8');
  const [before, inside] = page.split(begin);
  const after = inside?.split(end)[1];
  if (after === undefined) throw new SetupError(`${path} must hold ${begin} and, after it, ${end}`);
  await writeFile(path, `${before}${begin}\n${text}\n${end}${after}`);
}

async function measure() {
  const folder = await mkdtemp(join(tmpdir(), 'mongo-leash-bench-'));
  const { MongoMemoryReplSet } = await import('mongodb-memory-server-core');
  const set = await MongoMemoryReplSet.create({ replSet: { count: 1, storageEngine: 'wiredTiger' } });
  try {
    const uri = set.getUri();
    say(`loading ${count} documents`);
    const facts = await load(uri);
    const readers = [
      ["the driver's cursor, read only", () => byDriver(uri)],
      ["the driver's cursor, written with its `EJSON.stringify`", () => byDriver(uri, join(folder, 'driver.jsonl'))],
      ['`export`, jsonl', () => byExport(uri, join(folder, 'jsonl'), 'jsonl')],
      ['`export`, csv', () => byExport(uri, join(folder, 'csv'), 'csv')],
    ];
    const measured = [];
    for (const [who, act] of readers) {
      say(who);
      measured.push({ who, ...(await act()) });
    }
    const text = table(measured, facts);
    await writePage(text);
    process.stdout.write(`${text}\n`);
  } finally {
    await set.stop({ doCleanup: true });
    await rm(folder, { recursive: true, force: true });
  }
}

if (isMain(import.meta.url)) {
  await main(async () => {
    const [mode, uri, path] = process.argv.slice(2);
    if (mode === '--read') await read(uri, path);
    else await measure();
    return 0;
  });
}
