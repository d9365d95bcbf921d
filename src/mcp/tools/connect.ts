/** The tool `connect`: a further deployment for the calls that name it. */

import { z } from 'zod';
import { defineTool } from '../tool.js';

const text = (most: number) => z.string().min(1, 'must not be empty').max(most, `must have at most ${most} characters`).optional();

export const connectTool = defineTool({
  name: 'connect',
  title: 'Connect to a deployment',
  description: 'Opens a connection to another MongoDB deployment and returns its connectionId, which other tools take. Never invent a connection string: ask the user. The preconfigured connection needs no connect.',
  input: z.strictObject({
    connectionString: text(10_000),
    connectionName: text(64).describe('A name to show; without connectionString: the connection of the configuration to open'),
  }),
  scope: 'leash:read',
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: false, openWorldHint: true },

  async call({ connectionString, connectionName }, notes, caller, { connections }) {
    const { connectionId, name, description } = await connections.connect({ connectionString, name: connectionName }, caller);
    return { isError: false, body: { connectionId, name, description, ...(notes.length === 0 ? {} : { notes }), next: `Pass connectionId "${connectionId}" to the tools that are to use this connection.` } };
  },
});
