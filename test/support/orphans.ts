/** Operations of every kind that tools can make, started by servers that are then killed: what is left is orphans. */

import type { Document, MongoClient } from 'mongodb';
import { runawayCase, setUpRunaway } from './cases.js';
import { sleeping } from './checked.js';
import { eventually } from './mongo.js';
import { runArguments } from './runaways.js';
import type { TestServer } from './server.js';

/** Arguments that such a server needs. */
export const orphanServerArgs = ['--allow-js', '--allow-writes', '--max-limit', '500000'];

const fromCases = { scan: '02', lookup: '01', sort: '05', getMore: '15', merge: '17', out: '16' } as const;
const heavy = Object.keys(fromCases) as (keyof typeof fromCases)[];
const lockCase = '13';
const dbOf = (kind: string) => `orphans_${kind}`;

/** Documents that come slowly, batch after batch: between two of them the cursor is idle. */
const iterated = [{ $project: { i: { $range: [0, 100_000] } } }, { $unwind: '$i' }, ...sleeping(1)];

export interface Ground {
  /** Requests for `run`: five of a server's, by the server's number. */
  requests(server: number): { kind: string; request: Record<string, unknown> }[];
  /** Lets the lock go that some of them wait for. */
  release(): Promise<void>;
}

/** Fills the databases, and takes a lock behind which `$merge` waits. */
export async function prepareGround(client: MongoClient): Promise<Ground> {
  for (const kind of heavy) await setUpRunaway(client, dbOf(kind), runawayCase(fromCases[kind]));
  await client.db(dbOf('light')).collection<Document>('things').insertMany([{}, {}, {}]);
  const locked = runawayCase(lockCase);
  await setUpRunaway(client, dbOf('lock'), locked);
  const session = client.startSession();
  session.startTransaction();
  await client.db(dbOf('lock')).collection('locked').insertOne({ held: 1 }, { session });
  const dropped = client.db(dbOf('lock')).collection('locked').drop();
  await eventually('the drop waits for the transaction', async () => (await client.db('admin').aggregate([{ $currentOp: {} }, { $match: { 'command.drop': 'locked', waitingForLock: true } }]).toArray()).length > 0);
  const light = { database: dbOf('light'), collection: 'things' };
  return {
    requests: (server) => [
      { kind: 'function', request: { ...light, pipeline: sleeping(120_000) } },
      { kind: 'iterated', request: { ...light, pipeline: iterated, limit: 300_000 } },
      { kind: 'lock', request: runArguments(locked, dbOf('lock')) },
      ...[0, 1].map((at) => {
        const kind = heavy[(server * 2 + at) % heavy.length] ?? 'scan';
        return { kind, request: { ...runArguments(runawayCase(fromCases[kind]), dbOf(kind)), ...(kind === 'getMore' ? { limit: 60_000 } : {}) } };
      }),
    ],
    async release() {
      await session.abortTransaction();
      await session.endSession();
      await dropped;
    },
  };
}

export interface StartedOrphan {
  kind: string;
  id: string;
  instance: string;
}

/** Starts the five of a server and returns when the database has shown each of them. */
export async function startAll(server: TestServer, requests: ReturnType<Ground['requests']>, seen: () => Promise<ReadonlyMap<string, string>>): Promise<StartedOrphan[]> {
  const handles = await Promise.all(requests.map(async ({ kind, request }) => ({ kind, handle: await server.call('run', { ...request, waitMs: 0, startAnother: true }) })));
  for (const { kind, handle } of handles) if (handle.wait !== 'detached') throw new Error(`${kind} was not handed over: ${JSON.stringify(handle)}`);
  const instances = await eventually('the database shows all of them', async () => {
    const all = await seen();
    return handles.every(({ handle }) => all.has(handle.operationId)) && all;
  }, 60_000);
  return handles.map(({ kind, handle }) => ({ kind, id: handle.operationId, instance: instances.get(handle.operationId) ?? '' }));
}
