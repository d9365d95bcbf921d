/** An in-memory replica set with sample data, for the demo and for trying the program without a database. */

import { MongoMemoryReplSet } from 'mongodb-memory-server-core';
import { MongoClient } from 'mongodb';
import { endSignals } from './signals.js';

export interface Embedded {
  uri: string;
  stop(): Promise<void>;
}

export const sampleDatabase = 'shop';
const customers = 2_000;
const orders = 20_000;

/**
 * Starts a replica set of one member, found as mongodb-memory-server finds its mongod (MONGOMS_SYSTEM_BINARY first).
 * @throws Error when there is no mongod
 */
export async function startEmbedded(): Promise<Embedded> {
  const { log } = console;
  // Where it has to download a mongod, the library tells of it by console.log, and stdout may be JSON-RPC's.
  console.log = console.error;
  const release = holdSignals();
  const set = await MongoMemoryReplSet.create({ replSet: { count: 1, storageEngine: 'wiredTiger' } }).finally(() => {
    console.log = log;
    release();
  });
  const uri = set.getUri();
  await loadSample(uri);
  return {
    uri,
    stop: async () => {
      await set.stop({ doCleanup: true });
    },
  };
}

/**
 * The library starts a mongod, and then a process that ends it when this one is gone: a signal that ended this one between the two
 * would leave the mongod behind. A listener runs before both or after both.
 */
function holdSignals(): () => void {
  const end = (signal: NodeJS.Signals) => {
    release();
    process.kill(process.pid, signal);
  };
  const release = () => { for (const signal of endSignals) process.off(signal, end); };
  for (const signal of endSignals) process.on(signal, end);
  return release;
}

/** A small shop: customers, and orders that refer to them. */
async function loadSample(uri: string): Promise<void> {
  const client = new MongoClient(uri);
  try {
    const db = client.db(sampleDatabase);
    const countries = ['DE', 'FR', 'IT', 'PL', 'SE'];
    await db.collection<{ _id: number }>('customers').insertMany(
      Array.from({ length: customers }, (_, i) => ({ _id: i, name: `Customer ${i}`, country: countries[i % countries.length] })),
    );
    await db.collection<{ _id: number }>('orders').insertMany(
      Array.from({ length: orders }, (_, i) => ({ _id: i, customer: (i * 7919) % customers, amount: ((i * 104_729) % 50_000) / 100, placedAt: new Date(Date.UTC(2026, 0, 1) + i * 600_000) })),
    );
  } finally {
    await client.close();
  }
}
