/** The tool `list-connections`: which deployments the caller's calls can go to. */

import { z } from 'zod';
import { metadataAnnotations } from '../metadata.js';
import { defineTool } from '../tool.js';

export const listConnectionsTool = defineTool({
  name: 'list-connections',
  title: 'List connections',
  description: 'Lists the connections that your calls may name by connectionId, and whether each answers.',
  input: z.strictObject({}),
  scope: 'leash:read',
  annotations: metadataAnnotations,

  async call(_args, notes, caller, deps) {
    const connections = await deps.connections.list(caller);
    return { isError: false, body: { connections, ...(notes.length === 0 ? {} : { notes }), ...(connections.length === 0 ? { next: 'There is none: open one with connect.' } : {}) } };
  },
});
