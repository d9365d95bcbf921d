/** Exports for tests: what they are asked with, the files that are there, and one that hangs in the middle. */

import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type { Document, MongoClient } from 'mongodb';
import { eventually, taggedAs } from './mongo.js';
import type { TestServer } from './server.js';

export const database = 'exports';

export const findAll = (args: Document = {}) => ({ exportTarget: [{ name: 'find', arguments: args }] });
export const aggregating = (pipeline: Document[]) => ({ exportTarget: [{ name: 'aggregate', arguments: { pipeline } }] });

/** Names of the files in the folder of exports, with their sizes. */
export function exportFiles(stateFolder: string): { name: string; bytes: number }[] {
  const folder = join(stateFolder, 'exports');
  if (!existsSync(folder)) return [];
  return readdirSync(folder).sort().map((name) => ({ name, bytes: statSync(join(folder, name)).size }));
}

export const halves = (stateFolder: string) => exportFiles(stateFolder).filter(({ name }) => name.endsWith('.half'));

export const textOf = (answer: { path: string }) => readFileSync(answer.path, 'utf8');

/** Documents with an ascending `_id`, each of some `bytes` bytes. */
export async function fill(client: MongoClient, collection: string, count: number, bytes = 50): Promise<void> {
  const into = client.db(database).collection<{ _id: number; text: string }>(collection);
  const text = 'x'.repeat(bytes);
  for (let from = 0; from < count; from += 10_000) {
    await into.insertMany(Array.from({ length: Math.min(10_000, count - from) }, (_, i) => ({ _id: from + i, text })), { ordered: false });
  }
}

/** Reads the first documents at once and hangs in one: for servers with --allow-js, on a collection of {@link fill}. */
export const hangsAt = (id: number, ms = 30_000): Document[] => [
  { $sort: { _id: 1 } },
  { $match: { $expr: { $cond: [{ $lt: ['$_id', id] }, true, { $function: { body: `function(){sleep(${ms});return true}`, args: [], lang: 'js' } }] } } },
];

/** Whether it is in its long step: the ones before take some milliseconds. */
export const isHanging = ({ op, microsecs_running: microseconds }: Document) => op === 'getmore' && Number(microseconds) > 300_000;

/** Starts one that hangs, and comes back when its half file has something in it and the database shows it. */
export async function startHanging(server: TestServer, client: MongoClient, stateFolder: string, collection: string, more: Document = {}): Promise<string> {
  const handle = await server.call('export', { database, collection, ...aggregating(hangsAt(5_000)), waitMs: 0, ...more });
  if (typeof handle?.operationId !== 'string') throw new Error(`no handle: ${JSON.stringify(handle)}`);
  await eventually('the half file grows', () => halves(stateFolder).some(({ name, bytes }) => name.startsWith(handle.operationId as string) && bytes > 0));
  await eventually('it hangs in a getMore', async () => (await taggedAs(client, handle.operationId)).some(isHanging));
  return handle.operationId as string;
}
