/** What may be said of an operation that has a record without an end, and that the last look did not see. */

import type { OperationRecord } from '../domain/operation.js';
import type { Liveness, Look } from './ports.js';
import { placesOf } from './settle.js';

/** A copy of the record, with what was seen now instead of what its process saw last. */
export function unseenRecord(record: OperationRecord, looks: readonly Look[], liveness: Liveness): OperationRecord {
  const places = placesOf(record);
  const silent = looks.find((look) => !look.ok && (places.length === 0 || places.includes(look.node)));
  const notAsked = places.filter((node) => looks.every((look) => look.node !== node));
  const shown: OperationRecord = { ...record, wait: record.wait === 'answered' || liveness === 'alive' ? record.wait : 'gone' };
  if (silent?.ok === false) return { ...shown, server: 'unreachable', reason: `${silent.node} did not answer the last look (${silent.reason}), so what became of it is unknown.` };
  if (notAsked.length > 0) return { ...shown, server: 'unreachable', reason: `It was sent to another deployment than the one that this server is connected to (${notAsked.join(', ')}), so what became of it is unknown.` };
  const asked = looks.map(({ node }) => node).join(', ');
  return { ...shown, server: 'not_seen', reason: `The last look at ${asked} did not find it. ${ofProcess(record.instance, liveness)}` };
}

function ofProcess(instance: string, liveness: Liveness): string {
  if (liveness === 'alive') return `The server process that has it (instance ${instance}) lives: it waits to be sent, or is between two commands, or its end is about to be recorded.`;
  if (liveness === 'dead') return `The server process that ran it (instance ${instance}) is dead, and not enough could be seen to say that it runs no more.`;
  return `Whether the server process that has it (instance ${instance}) lives is not known here, so what became of it is unknown.`;
}
