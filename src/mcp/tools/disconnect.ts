/** The tool `disconnect`: ends a connection after what runs there is proven to run no more. */

import { z } from 'zod';
import type { Disconnected } from '../../core/connections.js';
import { defineTool } from '../tool.js';

export const disconnectTool = defineTool({
  name: 'disconnect',
  title: 'End a connection',
  description: 'Kills what this server runs by a connection, verifies it, and closes the connection.',
  input: z.strictObject({ connectionId: z.string().min(1, 'must not be empty') }),
  scope: 'leash:kill',
  annotations: { readOnlyHint: false, destructiveHint: true, idempotentHint: false, openWorldHint: false },

  async call({ connectionId }, notes, caller, { connections, limits }) {
    const ended = await connections.disconnect(connectionId, caller, limits.verifyMs);
    const { outcome, operations } = ended;
    return { isError: outcome === 'still_connected', body: { outcome, ...(operations.length === 0 ? {} : { operations }), ...(notes.length === 0 ? {} : { notes }), next: nextStep(ended, connectionId) } };
  },
});

function nextStep({ outcome, operations }: Disconnected, connectionId: string): string {
  switch (outcome) {
    case 'removed':
      return `"${connectionId}" means nothing any more.`;
    case 'disconnected':
      return `"${connectionId}" stays available and connects again when it is used.`;
    case 'still_connected':
      return `Not everything is proven to have stopped, so the connection was kept, and is watched: ask status about ${operations.map(({ operationId }) => operationId).join(', ')}, then call disconnect again.`;
  }
}
