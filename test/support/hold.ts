/** Holds aggregations inside the server where nothing interrupts them: as runaway as the longest expression, without making the machine busy. */

import type { MongoClient } from 'mongodb';

/** What a mongod needs to be told at its start, for `holdOn`. */
export const testCommands = ['--setParameter', 'enableTestCommands=1'];

/** A pipeline that is held: one that is answered by the collection alone would not be. */
export const heldPipeline = [{ $match: { absent: { $exists: false } } }, { $group: { _id: null, count: { $sum: 1 } } }];

const failPoint = 'hangBeforeDocumentSourceCursorLoadBatch';

/** Aggregations that begin to read this collection from now on stand still, killed or not, until they are released; one collection at a time. */
export async function holdOn(client: MongoClient, namespace: string): Promise<{ release(): Promise<void> }> {
  const admin = client.db('admin');
  await admin.command({ configureFailPoint: failPoint, mode: 'alwaysOn', data: { nss: namespace, shouldCheckForInterrupt: false } });
  return { release: async () => void (await admin.command({ configureFailPoint: failPoint, mode: 'off' })) };
}
