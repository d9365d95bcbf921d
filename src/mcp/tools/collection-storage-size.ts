/** The tool `collection-storage-size`: how much a collection holds. */

import { z } from 'zod';
import { checkNamespace } from '../../domain/policy/pipeline-policy.js';
import { metadataAnnotations, metadataBody, readMetadata, replyOf, serverCodes } from '../metadata.js';
import { connectionIdArgument } from '../shapes.js';
import { defineTool } from '../tool.js';

const name = 'collection-storage-size';
const units = ['bytes', 'KB', 'MB', 'GB'] as const;
/** On a sharded cluster there is one document for each shard. Of a time series these are the buckets. */
const pipeline = [
  { $collStats: { storageStats: {} } },
  { $group: { _id: null, bytes: { $sum: '$storageStats.size' }, storageBytes: { $sum: '$storageStats.storageSize' }, indexBytes: { $sum: '$storageStats.totalIndexSize' } } },
];

export const collectionStorageSizeTool = defineTool({
  name,
  title: 'Size of a collection',
  description: 'Tells the size of the data of a collection (uncompressed), of its files, and of its indexes.',
  input: z.strictObject({ database: z.string(), collection: z.string(), connectionId: connectionIdArgument }),
  scope: 'leash:read',
  annotations: metadataAnnotations,

  async call({ database, collection, connectionId }, notes, caller, deps) {
    const on = { db: database, coll: collection };
    checkNamespace(on, deps.policy, 'collection');
    const advice = {
      [serverCodes.namespaceNotFound]: `There is no collection of this name in ${database}: list-collections shows those that there are.`,
      [serverCodes.commandNotSupportedOnView]: 'A view holds no data: ask for the size of the collection that it reads.',
    };
    const read = await readMetadata({ tool: name, connectionId, on, command: { kind: 'aggregate', on, pipeline, writes: false }, notes, advice }, caller, deps);
    if (!read.ok) return read.answer;
    const { bytes, storageBytes, indexBytes } = replyOf(read.documents) as Record<'bytes' | 'storageBytes' | 'indexBytes', number>;
    return { isError: false, body: metadataBody(read.record, { ...inUnits(bytes), bytes, storageBytes, indexBytes }) };
  },
});

function inUnits(bytes: number): { size: number; units: (typeof units)[number] } {
  const power = units.findIndex((_unit, i) => bytes <= 1024 ** (i + 1));
  const at = power === -1 ? units.length - 1 : power;
  return { size: bytes / 1024 ** at, units: units[at] ?? 'bytes' };
}
