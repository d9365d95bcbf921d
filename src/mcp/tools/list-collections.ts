/** The tool `list-collections`: what a database holds, as far as this user has any right on it. */

import { BSON } from 'bson';
import { z } from 'zod';
import { checkNamespace } from '../../domain/policy/pipeline-policy.js';
import { untrustedNames } from '../answer.js';
import { fitting, metadataAnnotations, metadataBody, readMetadata } from '../metadata.js';
import { connectionIdArgument } from '../shapes.js';
import { defineTool } from '../tool.js';

const name = 'list-collections';
/** More than a server holds in one database. */
const maxCollections = 1_000_000;
/** What the server keeps for itself: buckets of time series, definitions of views, state of encrypted collections. */
const ownCollections = /^(system\.|enxcol_\.)/;

export const listCollectionsTool = defineTool({
  name,
  title: 'List collections',
  description: 'Lists the collections of a database that the user may see, with their type: collection, view or timeseries.',
  input: z.strictObject({ database: z.string(), connectionId: connectionIdArgument }),
  scope: 'leash:read',
  annotations: metadataAnnotations,

  async call({ database, connectionId }, notes, caller, deps) {
    const { limits, policy } = deps;
    const on = { db: database, coll: null };
    checkNamespace(on, policy, 'database');
    // Names alone, of what the user may see: that needs no right on the whole database, and waits for no lock.
    const command = { listCollections: 1, ...(policy.allowInternal ? {} : { filter: { name: { $not: ownCollections } } }), nameOnly: true, authorizedCollections: true };
    const read = await readMetadata({ tool: name, connectionId, on, command: { kind: 'cursor', db: database, command }, limit: maxCollections, notes }, caller, deps);
    if (!read.ok) return read.answer;
    const { record, documents } = read;
    const all = documents.map((document) => {
      const { name: collection, type } = BSON.deserialize(document) as { name: string; type: string };
      return { name: collection, type };
    });
    const collections = fitting(all, limits.responseBytes);
    const rest = all.length - collections.length;
    if (record.more === true) notes.push(`This server keeps ${all.length} of the names, as many as --result-bytes allows: how many there are is not known.`);
    return {
      isError: false,
      body: metadataBody(record, {
        collections,
        ...(record.more === true ? { more: true } : { totalCount: all.length }),
        ...(all.length === 0 ? {} : { untrusted: untrustedNames }),
        ...(rest === 0 ? {} : { next: `${rest} more were read and did not fit: call result with id "${record.operationId}" and offset ${collections.length}.` }),
      }, notes),
    };
  },
});
