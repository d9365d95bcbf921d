/** The measurement itself: one database, all servers beside one another, asked in turn. */
import process from 'node:process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { MongoClient } from 'mongodb';
import { installOutside } from '../outside.mjs';
import { main, projectDir, say } from '../run.mjs';
import { startServer } from './client.mjs';
import { goalsOf, goalTableOf, pageOf, tableOf } from './report.mjs';

const stockPackage = 'mongodb-mcp-server@3.0.4';
const at = { database: 'bench', collection: 'orders' };
const documents = 20_000;
const perCustomer = 10;
const atOnce = 16;
const pipelineFor = (n) => [{ $match: { customer: (n * 7_919) % (documents / perCustomer) } }];
const full = { warmUp: 300, rounds: 40, callsOfOne: 25, callsOfMany: 160, starts: 10 };
const quick = { warmUp: 30, rounds: 3, callsOfOne: 10, callsOfMany: 48, starts: 2 };

const load = async (client) => {
  const into = client.db(at.database).collection(at.collection);
  await into.insertMany(Array.from({ length: documents }, (_, i) => ({ _id: i, customer: i % (documents / perCustomer), amount: (i % 5_000) / 100, status: 'shipped', placedAt: new Date(Date.UTC(2026, 0, 1) + i * 1_000) })));
  await into.createIndex({ customer: 1 });
  const { version } = await client.db('admin').command({ buildInfo: 1 });
  return version;
};

/** Calls one after the other in so many lanes, until all are made. */
const measure = async (call, count, lanes) => {
  const times = [];
  const startedAt = performance.now();
  let made = 0;
  await Promise.all(Array.from({ length: lanes }, async () => {
    while (made < count) {
      made += 1;
      const calledAt = performance.now();
      await call();
      times.push(performance.now() - calledAt);
    }
  }));
  return { times, ms: performance.now() - startedAt };
};

const serverSide = (who, server, more = {}) => {
  let running;
  let n = 0;
  return {
    who,
    server,
    async open() {
      running = startServer(server);
      await running.open();
    },
    async call() {
      const result = await running.call('aggregate', { ...at, ...more, pipeline: pipelineFor((n += 1)) });
      return JSON.stringify(result).length;
    },
    close: () => running.close(),
  };
};

const driverSide = (client) => {
  let n = 0;
  return {
    who: 'the driver alone',
    open: () => Promise.resolve(),
    async call() {
      const found = await client.db(at.database).collection(at.collection).aggregate(pipelineFor((n += 1))).toArray();
      if (found.length !== perCustomer) throw new Error(`${found.length} documents were found`);
    },
    close: () => Promise.resolve(),
  };
};

/** Whose turn is first moves on with each round. */
const inTurn = (sides, round) => sides.map((_, i) => sides[(i + round) % sides.length]);

const bareFor = (uri, padding) => serverSide('a bare server of the same SDK', { args: [join(projectDir, 'scripts/bench/bare-server.mjs')], env: { BENCH_URI: uri, BENCH_PADDING: String(padding) } });

/** How much the bare server must add for the same size; the text stands in an answer twice. */
const paddingFor = async (uri, ours) => {
  const bare = bareFor(uri, 0);
  await Promise.all([bare.open(), ours.open()]);
  const [bareBytes, ourBytes] = [await bare.call(), await ours.call()];
  await Promise.all([bare.close(), ours.close()]);
  return Math.max(0, Math.round((ourBytes - bareBytes) / 2));
};

const sidesOf = async (uri, client, folder) => {
  const ours = serverSide('mongo-leash', { args: [join(projectDir, 'dist/main.js')], env: { MONGO_LEASH_URI: uri, MONGO_LEASH_STATE_FOLDER: join(folder, 'state') } });
  const stock = await installOutside([stockPackage], { withoutOptional: true });
  const home = join(folder, 'home');
  await mkdir(home);
  const stockSide = 'folder' in stock && serverSide('mongodb-mcp-server 3.0.4', {
    args: [join(stock.folder, 'node_modules/mongodb-mcp-server/dist/esm/index.js'), '--readOnly'],
    env: { HOME: home, MDB_MCP_CONNECTION_STRING: uri, MDB_MCP_TELEMETRY: 'disabled', DO_NOT_TRACK: '1' },
  }, { connectionId: 'preconfigured' });
  return {
    skipped: 'folder' in stock ? null : stock.unavailable,
    sides: { driver: driverSide(client), bare: bareFor(uri, await paddingFor(uri, ours)), ours, ...(stockSide ? { stock: stockSide } : {}) },
  };
};

const measureStarts = async (sides, counts, measured) => {
  for (let round = 0; round < counts.starts; round += 1) {
    for (const name of inTurn(Object.keys(sides).filter((each) => sides[each].server), round)) {
      const server = startServer(sides[name].server);
      await server.open();
      measured[name].start.push(performance.now() - server.startedAt);
      await server.close();
    }
  }
};

const measureCalls = async (sides, counts, measured) => {
  const names = Object.keys(sides);
  for (const name of names) {
    await sides[name].open();
    measured[name].answerBytes = await sides[name].call();
    await measure(sides[name].call, counts.warmUp, 1);
    await measure(sides[name].call, counts.warmUp, atOnce);
  }
  for (let round = 0; round < counts.rounds; round += 1) {
    for (const name of inTurn(names, round)) {
      const of = measured[name];
      const one = await measure(sides[name].call, counts.callsOfOne, 1);
      of.one.push(...one.times);
      of.msOne += one.ms;
      const many = await measure(sides[name].call, counts.callsOfMany, atOnce);
      of.many.push(...many.times);
      of.msMany += many.ms;
    }
  }
  for (const name of names) await sides[name].close();
};

await main(async () => {
  const { values } = parseArgs({ options: { quick: { type: 'boolean' }, write: { type: 'boolean' } } });
  const counts = values.quick ? quick : full;
  const folder = await mkdtemp(join(tmpdir(), 'mongo-leash-bench-'));
  const { MongoMemoryReplSet } = await import('mongodb-memory-server-core');
  const set = await MongoMemoryReplSet.create({ replSet: { count: 1, storageEngine: 'wiredTiger' } });
  const client = new MongoClient(set.getUri());
  try {
    const loadBefore = loadavg()[0];
    const version = await load(client);
    const { sides, skipped } = await sidesOf(set.getUri(), client, folder);
    if (skipped !== null) say(`the stock server is skipped: ${skipped}`);
    const measured = Object.fromEntries(Object.entries(sides).map(([name, { who }]) => [name, { who, one: [], many: [], msOne: 0, msMany: 0, start: [] }]));
    say(`${counts.starts} starts of each`);
    await measureStarts(sides, counts, measured);
    say(`${counts.rounds} rounds of calls`);
    await measureCalls(sides, counts, measured);
    for (const of of Object.values(measured)) Object.assign(of, { perSecondOne: (of.one.length / of.msOne) * 1_000, perSecondMany: (of.many.length / of.msMany) * 1_000 });
    const facts = `${new Date().toISOString().slice(0, 10)}: MongoDB ${version} (a replica set of one) on the same machine, ${cpus().length} cores (${cpus()[0]?.model.trim()}) with a load of ${loadBefore.toFixed(1)} before and ${loadavg()[0].toFixed(1)} after, Node ${process.version}. ${counts.starts} starts, ${measured.ours.one.length.toLocaleString('en')} calls 1 at a time and ${measured.ours.many.length.toLocaleString('en')} with ${atOnce} at once, of each.`;
    const table = tableOf(measured);
    const goals = goalsOf(measured);
    process.stdout.write(`${facts}\n\n${table}\n\n${goalTableOf(goals)}\n`);
    if (values.write) await writeFile(join(projectDir, 'docs/bench.md'), pageOf({ facts, table, goals, skipped }));
    return 0;
  } finally {
    await client.close();
    await set.stop({ doCleanup: true });
    await rm(folder, { recursive: true, force: true });
  }
});
