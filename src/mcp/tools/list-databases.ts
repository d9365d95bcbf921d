/** The tool `list-databases`: the databases that this user may see. */

import { z } from 'zod';
import { untrustedNames } from '../answer.js';
import { fitting, metadataAnnotations, metadataBody, readMetadata, replyOf } from '../metadata.js';
import { connectionIdArgument } from '../shapes.js';
import { defineTool } from '../tool.js';

const name = 'list-databases';

export const listDatabasesTool = defineTool({
  name,
  title: 'List databases',
  description: 'Lists the databases that the user may see, with their size on disk in bytes.',
  input: z.strictObject({ connectionId: connectionIdArgument }),
  scope: 'leash:read',
  annotations: metadataAnnotations,

  async call({ connectionId }, notes, caller, deps) {
    // Without the privilege for all of them, the server lists those on which the user has any right.
    const read = await readMetadata({ tool: name, connectionId, on: { db: 'admin', coll: null }, command: { kind: 'reply', db: 'admin', command: { listDatabases: 1 } }, notes }, caller, deps);
    if (!read.ok) return read.answer;
    const found = replyOf(read.documents)['databases'] as { name: string; sizeOnDisk?: number }[];
    const all = found.map(({ name: database, sizeOnDisk }) => ({ name: database, ...(sizeOnDisk === undefined ? {} : { size: sizeOnDisk }) }));
    const databases = fitting(all, deps.limits.responseBytes);
    return { isError: false, body: metadataBody(read.record, { databases, totalCount: all.length, ...(databases.length < all.length ? { shownCount: databases.length } : {}), ...(all.length === 0 ? {} : { untrusted: untrustedNames }) }) };
  },
});
