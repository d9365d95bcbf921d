/** A server in the middle of its work: operations of several kinds in the database, and some that still wait for a place. */

import type { Document, MongoClient } from 'mongodb';
import { setUpRunaway, runawayCase } from './cases.js';
import { sleeping } from './checked.js';
import { type TestMongo, eventually, tagged, taggedAs } from './mongo.js';
import { type TestServer, type TestServerOptions, startServer } from './server.js';

export const busyDatabase = 'busy';
const places = 3;

/** The options that `startBusy` needs; others may be added. */
export const busyArgs = ['--allow-js', '--max-operations', String(places)];

/** A batch is of 1,000 documents: the first comes at once, and the getMore after it sleeps in each document. */
const sleepsInGetMore = [
  { $sort: { _id: 1 } },
  { $match: { $expr: { $or: [{ $lt: ['$_id', 1_000] }, { $function: { body: 'function(){sleep(30000);return true}', args: [], lang: 'js' } }] } } },
];

const loads = {
  sleep: { collection: 'seq', pipeline: sleeping() },
  scan: { collection: 'left', pipeline: runawayCase('01').op.pipeline ?? [] },
  getMore: { collection: 'seq', pipeline: sleepsInGetMore, limit: 2_000 },
} as const;

export async function prepareBusy(client: MongoClient): Promise<void> {
  await setUpRunaway(client, busyDatabase, runawayCase('01'));
  await client.db(busyDatabase).collection<{ _id: number }>('seq').insertMany(Array.from({ length: 3_000 }, (_, i) => ({ _id: i })));
}

export interface Busy {
  server: TestServer;
  /** Ids of the operations in the database: a sleep, a scan, and one in a getMore. */
  running: string[];
  /** Ids of those that wait for a place. */
  queued: string[];
}

/** Starts a server with everything under way, and returns when the witness sees each operation that should run, and no other. */
export async function startBusy(mongo: TestMongo, { args = [], ...options }: TestServerOptions = {}): Promise<Busy> {
  return await makeBusy(mongo, await startServer({ uri: mongo.uri, args: [...busyArgs, ...args], ...options }));
}

export async function makeBusy(mongo: TestMongo, server: TestServer): Promise<Busy> {
  const start = async (load: object) => {
    const handle = await server.call('run', { database: busyDatabase, ...load, waitMs: 0, startAnother: true });
    if (typeof handle.operationId !== 'string') throw new Error(`no handle: ${JSON.stringify(handle)}`);
    return handle.operationId as string;
  };
  const running = [await start(loads.sleep), await start(loads.scan), await start(loads.getMore)];
  const getMore = running[2] ?? '';
  await eventually('the database shows a sleep, a scan and a getMore', async () => {
    const rows = await Promise.all(running.map((id) => taggedAs(mongo.client, id)));
    return rows.every((each) => each.length === 1) && (await taggedAs(mongo.client, getMore))[0]?.['op'] === 'getmore';
  });
  const queued = [await start(loads.sleep), await start(loads.scan)];
  // They have passed every check by now, and wait for nothing but a place.
  await eventually('they wait for a place', async () => (await server.call('operations')).load.queued === queued.length);
  return { server, running, queued };
}

/** How long, from the moment given, until three looks in a row of the witness find no operation of ours, in milliseconds. */
export async function untilNoneIsLeft(client: MongoClient, since: number, withinMs: number): Promise<number> {
  let firstEmpty = 0;
  let empty = 0;
  return await eventually('none of our operations is left in the database', async () => {
    const askedAt = performance.now();
    if ((await tagged(client)).length > 0) {
      empty = 0;
      return null;
    }
    empty += 1;
    if (empty === 1) firstEmpty = askedAt - since;
    return empty < 3 ? null : firstEmpty;
  }, withinMs);
}

/** Every line of stderr as JSON: a log line, or the report at the end. Throws on a line that is none. */
export function stderrLines(server: Pick<TestServer, 'stderr'>): Document[] {
  return server.stderr.map((line) => JSON.parse(line) as Document);
}

/** The one report that the end of the process wrote. */
export function reportOf(server: Pick<TestServer, 'stderr'>): Document {
  const reports = stderrLines(server).filter((line) => 'shutdown' in line);
  if (reports.length !== 1) throw new Error(`${reports.length} reports on stderr: ${server.stderr.join('\n')}`);
  return reports[0] ?? {};
}
