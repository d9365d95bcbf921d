/** A mongod, a proxy in front of it and an engine behind that: what every test of a fault needs, and the check that nothing is left. */

import { expect } from 'vitest';
import type { Document, MongoClient } from 'mongodb';
import { type Engine, type EngineOptions, type RunSpec, type Started, startEngine } from './engine.js';
import { type TestMongo, type TestMongoOptions, eventually, startMongo, tagged, taggedAs } from './mongo.js';
import { type TcpProxy, type Wire, startProxy } from './tcp-proxy.js';

export interface Bench {
  proxy: TcpProxy;
  engine: Engine;
  /** Runs it, and comes back when the witness sees it. */
  runs(spec: RunSpec): Promise<Started>;
  /** The connection that carried an operation last. */
  dataWire(id: string): Wire;
  controlWires(): Wire[];
  close(): Promise<void>;
}

export interface BenchSite {
  mongo: TestMongo;
  host: string;
  witness: MongoClient;
  /** A proxy and an engine of their own, closed and checked by `settle`. */
  bench(options?: EngineOptions): Promise<Bench>;
  /** For `afterEach`: closes what the test has opened, and holds what the database still has of it against nothing. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

/** Documents `{_id: 0…n-1, pad}` in `app.things`, which the loads of these tests read. */
const things = 20;

export async function startSite(options: TestMongoOptions = {}): Promise<BenchSite> {
  const mongo = await startMongo(options);
  const host = mongo.hosts[0] ?? '';
  const witness = mongo.client;
  const db = witness.db('app');
  await db.collection('things').insertMany(Array.from({ length: things }, (_, i) => ({ _id: i as never, pad: 'x'.repeat(100) })));
  await db.collection('one').insertOne({ _id: 0 as never });
  await profileTagged(witness);
  const benches: Bench[] = [];
  return {
    mongo,
    host,
    witness,
    async bench(engineOptions) {
      const bench = await startBench(host, witness, engineOptions);
      benches.push(bench);
      return bench;
    },
    async settle() {
      for (const bench of benches.splice(0)) await bench.close();
      // What a wire that was cut on one side only left behind is the proxy's, and ends with it.
      await eventually('no connection of an engine is left', async () => (await connections(witness)).length === 0);
      expect(await tagged(witness)).toEqual([]);
    },
    stop: () => mongo.stop(),
  };
}

async function startBench(host: string, witness: MongoClient, options?: EngineOptions): Promise<Bench> {
  const proxy = await startProxy(host);
  const engine = await startEngine(proxy.uri, options);
  return {
    proxy,
    engine,
    async runs(spec) {
      const started = engine.run(spec);
      await eventually('the database shows the operation', async () => (await taggedAs(witness, started.id)).length > 0);
      return started;
    },
    dataWire(id) {
      const wire = proxy.wires().findLast((each) => each.kind === 'data' && each.carried(id));
      if (wire === undefined) throw new Error(`no connection carried ${id}`);
      return wire;
    },
    controlWires: () => proxy.wires().filter((wire) => wire.kind === 'control' && wire.open),
    async close() {
      await engine.close();
      await proxy.close();
    },
  };
}

/** The connections of engines and programs on this node. */
export async function connections(witness: MongoClient): Promise<Document[]> {
  return await witness.db('admin').aggregate([{ $currentOp: { allUsers: true, idleConnections: true } }, { $match: { appName: { $regex: '^mongo-leash' } } }]).toArray();
}

/** Lets the server itself write down every tagged command that ends in the database `app`. */
export async function profileTagged(witness: MongoClient, bytes = 16 * 1024 * 1024): Promise<void> {
  const db = witness.db('app');
  await db.command({ profile: 0 });
  await db.collection('system.profile').drop();
  await db.createCollection('system.profile', { capped: true, size: bytes });
  await db.command({ profile: 2, filter: { 'command.comment': { $regex: '^mongo-leash\\.1\\.' } } });
}

/** A command that the server wrote down when it ended; `errCode` is null where it succeeded. */
export interface Profiled {
  op: string;
  errCode: number | null;
}

/** What the server wrote down of one operation, in its order. A getMore that finds no cursor is not written down. */
export async function profiled(witness: MongoClient, id: string): Promise<Profiled[]> {
  return (await notes(witness, id)).map((row) => ({ op: String(row['op']), errCode: (row['errCode'] as number | undefined) ?? null }));
}

/** Whether the server notes that it came to its own end: no error, and no cursor left to kill. */
export async function endedWell(witness: MongoClient, id: string): Promise<boolean> {
  const last = (await notes(witness, id)).at(-1);
  return last?.['errCode'] === undefined && last?.['cursorExhausted'] === true;
}

async function notes(witness: MongoClient, id: string): Promise<Document[]> {
  return await witness.db('app').collection('system.profile').find({ 'command.comment': { $regex: `^mongo-leash\\.1\\.\\w+\\.${id}\\.` } }).sort({ $natural: 1 }).toArray();
}

/** Sleeps in the database, for one document of `app.one`. `maxTimeMS` does not end it. */
export const sleeping = (ms: number): RunSpec => ({ collection: 'one', pipeline: [{ $match: { $expr: { $function: { body: `function(){sleep(${ms});return true}`, args: [], lang: 'js' } } } }] });

/** Counts for hours, and gives way to everything that wants a lock meanwhile, as most reads do. */
export const counting: RunSpec = {
  collection: 'things',
  pipeline: [...['a', 'b', 'c', 'd'].flatMap((name) => [{ $set: { [name]: { $range: [0, 1_000] } } }, { $unwind: `$${name}` }]), { $group: { _id: null, count: { $sum: '$d' } } }],
};
