/** The one reply of a command as an answer shows it: the database's own words, without what concerns the wire. */

import { type JsonValue, type RenderOptions, renderDocument } from '../domain/ejson-out.js';

/** Of the session and the cluster's clock: no part of what was asked for. */
const wireFields: ReadonlySet<string> = new Set(['$clusterTime', 'operationTime', 'lsid', '$configTime', '$topologyTime']);

export function renderReply(documents: readonly Uint8Array[], options: RenderOptions): { value: Record<string, JsonValue>; notes: string[] } {
  const [reply] = documents;
  if (reply === undefined) throw new Error('a command that succeeded has a reply');
  const { value, notes } = renderDocument(reply, options);
  return { value: Object.fromEntries(Object.entries(value as Record<string, JsonValue>).filter(([name]) => !wireFields.has(name))), notes };
}
