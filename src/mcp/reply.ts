/** The one reply of a command as an answer shows it: the database's own words. */

import { type JsonValue, type RenderOptions, renderDocument } from '../domain/ejson-out.js';

export function renderReply(documents: readonly Uint8Array[], options: RenderOptions): { value: Record<string, JsonValue>; notes: string[] } {
  const [reply] = documents;
  if (reply === undefined) throw new Error('a command that succeeded has a reply');
  const { value, notes } = renderDocument(reply, options);
  return { value: value as Record<string, JsonValue>, notes };
}
