/** Runaway operations through the real program, and the witness's word on when they were there and when they were gone. */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Document, MongoClient } from 'mongodb';
import type { RunawayCase } from './cases.js';
import { type TestMongo, eventually, taggedAs } from './mongo.js';
import type { TestServer } from './server.js';

/** The arguments of `run` for a case in its own database. */
export function runArguments(runaway: RunawayCase, database: string): Record<string, unknown> {
  const { coll, pipeline, options = {} } = runaway.op;
  return { database, ...(coll === undefined ? {} : { collection: coll }), pipeline, ...options };
}

export interface Started {
  id: string;
  /** What the witness saw of it first. */
  row: Document;
  /** Sends `notifications/cancelled` for the call that started it. */
  cancel(): void;
  /** The JSON-RPC id of the call that started it. */
  requestId: string | number;
  /** Settles when the client has given the call up. */
  cancelled: Promise<unknown>;
  /** Whether the server has sent an answer to the call. */
  answered(): boolean;
}

/** Starts an operation that the caller waits for, and returns as soon as the witness sees it. */
export async function startWaiting(server: TestServer, witness: MongoClient, request: Record<string, unknown>, comment: string): Promise<Started> {
  const abort = new AbortController();
  const call = server.call('run', { ...request, comment, waitMs: 120_000 }, abort.signal);
  const cancelled = call.then((answer: unknown) => { throw new Error(`it was answered: ${JSON.stringify(answer)}`); }, (error: unknown) => error);
  cancelled.catch(() => undefined);
  const requestId = server.lastRequestId();
  const row = await seen(`the database shows the operation with the comment ${comment}`, () => commented(witness, comment));
  const tag = String(row['command']?.comment ?? row['cursor']?.originatingCommand?.comment);
  return { id: tag.split('.')[3] ?? '', row, requestId, cancelled, answered: () => server.stdout.some((line) => (JSON.parse(line) as { id?: unknown }).id === requestId), cancel: () => { abort.abort(); } };
}

/** Starts an operation that is handed over at once, and returns as soon as the witness sees it. */
export async function startDetached(server: TestServer, witness: MongoClient, request: Record<string, unknown>): Promise<{ id: string; row: Document; handle: any }> {
  const handle = await server.call('run', { ...request, waitMs: 0 });
  if (handle.operationId === undefined) throw new Error(`no handle: ${JSON.stringify(handle)}`);
  const row = await seen('the database shows the operation that was handed over', () => taggedAs(witness, handle.operationId));
  return { id: handle.operationId, row, handle };
}

async function seen(what: string, look: () => Promise<Document[]>): Promise<Document> {
  return await eventually(what, async () => (await look())[0]);
}

async function commented(witness: MongoClient, comment: string): Promise<Document[]> {
  const own = { $regex: `^mongo-leash\\.1\\..* ${comment}$` };
  return await witness.db('admin').aggregate([{ $currentOp: { allUsers: true, idleCursors: true } }, { $match: { $or: [{ 'command.comment': own }, { 'cursor.originatingCommand.comment': own }] } }]).toArray();
}

/** How many empty looks in a row the witness wants: one can miss an operation that changes while it is read. */
const emptyLooks = 3;

/**
 * Watches until the operation is gone, in milliseconds from now to the first of the empty looks.
 * @throws Error with what is still there after `withinMs`
 */
export async function untilGone(witness: MongoClient, id: string, withinMs: number): Promise<number> {
  const startedAt = performance.now();
  let firstEmpty: number | null = null;
  for (let empty = 0; empty < emptyLooks; ) {
    const askedAt = performance.now();
    const rows = await taggedAs(witness, id);
    if (rows.length === 0) {
      empty += 1;
      firstEmpty ??= askedAt - startedAt;
    } else {
      empty = 0;
      firstEmpty = null;
      if (askedAt - startedAt > withinMs) throw new Error(`after ${withinMs} ms it is still there: ${JSON.stringify(rows.map(({ op, opid, ns, type, killPending }) => ({ op, opid, ns, type, killPending })))}`);
    }
    await delay(3);
  }
  return Math.round(firstEmpty ?? 0);
}

/** The names of the collections of a database. */
export async function collectionNames(witness: MongoClient, database: string): Promise<string[]> {
  return (await witness.db(database).listCollections({}, { nameOnly: true }).toArray()).map(({ name }) => name).sort();
}

/** The files that sorts and groups of a single-node replica set have spilled to. */
export function spilledFiles(mongo: TestMongo): string[] {
  const folder = join(mongo.dbPath(mongo.hosts[0] ?? ''), '_tmp');
  return existsSync(folder) ? readdirSync(folder) : [];
}

/**
 * Plays the helpers of case 13: an open transaction holds a lock on the collection, and a drop waits behind it, so that
 * everything that wants to write there queues behind the drop.
 */
export async function blockByDrop(client: MongoClient, database: string, { helpers = [] }: RunawayCase): Promise<{ release(): Promise<void> }> {
  const [holder, waiter] = helpers;
  if (holder?.transaction !== true || waiter?.background !== true) throw new Error('the case has no transaction and no background command');
  const db = client.db(database);
  const session = client.startSession();
  session.startTransaction();
  await db.command(holder.command, { session });
  const waiting = db.command(waiter.command);
  await eventually('the drop waits for the lock', async () => {
    const rows = await client.db('admin').aggregate([{ $currentOp: {} }, { $match: { 'command.drop': waiter.command['drop'], 'command.$db': database, waitingForLock: true } }]).toArray();
    return rows.length > 0;
  });
  return {
    async release() {
      await session.abortTransaction();
      await session.endSession();
      await waiting;
    },
  };
}
