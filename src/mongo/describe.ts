/** Tells what a collection is: its type, its UUID, and what a view is made of. */

import { type Document, type MongoClient, MongoServerError } from 'mongodb';
import type { CollectionInfo } from '../core/ports.js';
import { controlTimeoutMs } from './clients.js';

/**
 * Asks listCollections; a user without that right is told at least the type of what it may read.
 * @throws the driver's error when the server does not answer
 */
export async function describeCollection(client: MongoClient, ns: { db: string; coll: string }): Promise<CollectionInfo> {
  const base = { listCollections: 1, filter: { name: ns.coll }, comment: 'mongo-leash control' };
  const ask = async (command: Document) => {
    const reply = await client.db(ns.db).command({ ...command, maxTimeMS: controlTimeoutMs });
    return (reply['cursor'] as { firstBatch: Document[] }).firstBatch[0];
  };
  try {
    const found = await ask(base);
    return found === undefined ? { type: 'none' } : infoOf(found);
  } catch (error) {
    if (!(error instanceof MongoServerError && error.code === 13)) throw error;
    const found = await ask({ ...base, nameOnly: true, authorizedCollections: true }).catch((second: unknown) => {
      if (second instanceof MongoServerError) return undefined;
      throw second;
    });
    return found === undefined ? { type: 'unknown' } : infoOf(found);
  }
}

function infoOf(found: Document): CollectionInfo {
  const said: unknown = found['type'];
  const type = said === 'view' || said === 'timeseries' ? said : 'collection';
  const options = found['options'] as { viewOn?: unknown; pipeline?: unknown } | undefined;
  const uuid = (found['info'] as { uuid?: { toHexString?(): string } } | undefined)?.uuid?.toHexString?.();
  const view = type === 'view' && typeof options?.viewOn === 'string' && Array.isArray(options.pipeline) ? { on: options.viewOn, pipeline: options.pipeline as unknown[] } : undefined;
  return { type, uuid, view };
}
