/** The tool `db-stats`: what the server counts of one database. */

import { z } from 'zod';
import { checkNamespace } from '../../domain/policy/pipeline-policy.js';
import { metadataAnnotations, metadataBody, readMetadata } from '../metadata.js';
import { renderReply } from '../reply.js';
import { connectionIdArgument } from '../shapes.js';
import { defineTool } from '../tool.js';

const name = 'db-stats';

export const dbStatsTool = defineTool({
  name,
  title: 'Statistics of a database',
  description: 'Counts collections, documents, indexes and bytes of a database.',
  input: z.strictObject({ database: z.string(), connectionId: connectionIdArgument }),
  scope: 'leash:read',
  annotations: metadataAnnotations,

  async call({ database, connectionId }, notes, caller, deps) {
    const on = { db: database, coll: null };
    checkNamespace(on, deps.policy, 'database');
    const read = await readMetadata({ tool: name, connectionId, on, command: { kind: 'reply', db: database, command: { dbStats: 1, scale: 1 } }, notes }, caller, deps);
    if (!read.ok) return read.answer;
    return { isError: false, body: metadataBody(read.record, { stats: renderReply(read.documents, { canonical: false }).value }) };
  },
});
