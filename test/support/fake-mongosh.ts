/** A fake of mongosh's `db`, on top of the driver: just enough to run the lines that handles and verdicts print. */

import { compileFunction } from 'node:vm';
import type { Document, MongoClient } from 'mongodb';

/** Runs one line as mongosh would: what it gives is awaited, and a cursor is read to its end. */
export async function inMongosh(client: MongoClient, line: string): Promise<Document[]> {
  const pending: Promise<unknown>[] = [];
  const database = (name: string) => ({
    getSiblingDB: (other: string) => database(other),
    aggregate(pipeline: Document[]) {
      // As mongosh reads: numbers of 64 bits keep their digits.
      const rows = client.db(name).aggregate(pipeline, { promoteLongs: false }).toArray();
      return { toArray: () => rows, forEach: async (use: (row: Document) => unknown) => { for (const row of await rows) pending.push(Promise.resolve(use(row))); } };
    },
    killOp: (opid: unknown) => client.db('admin').command({ killOp: 1, op: opid }),
    runCommand: (command: Document) => client.db(name).command(command),
  });
  const run = compileFunction(`return (${line});`, ['db']) as (db: unknown) => { toArray?(): Promise<Document[]> } | Promise<void>;
  const given = run(database('test'));
  if ('toArray' in given && given.toArray !== undefined) return await given.toArray();
  await given;
  await Promise.all(pending);
  return [];
}
