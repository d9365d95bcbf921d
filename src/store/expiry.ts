/** The one rule for how long a record is kept, and what is left of it after that. */

import type { Expired } from '../core/ports.js';
import type { OperationRecord } from '../domain/operation.js';

/** How long it is kept after its end, in milliseconds. @param retentionMs for one that does not say so itself */
export function keptMs({ keepMs }: Pick<OperationRecord, 'keepMs'>, retentionMs: number): number {
  return keepMs ?? retentionMs;
}

/** Until when it is kept, in milliseconds since 1970: for ever while it has not ended. */
export function keptUntil(record: OperationRecord, retentionMs: number): number {
  return record.outcome === null || record.endedAt === null ? Number.POSITIVE_INFINITY : Date.parse(record.endedAt) + keptMs(record, retentionMs);
}

/** What is left of one that is kept no longer; null of one that has not ended. */
export function tombstoneOf(record: OperationRecord, retentionMs: number): Expired | null {
  const { operationId, principal, outcome, cause, endedAt } = record;
  if (outcome === null || endedAt === null) return null;
  return { operationId, principal, outcome, cause, endedAt, expiredAt: new Date(keptUntil(record, retentionMs)).toISOString() };
}
