/** The one rule for a record that is kept again: whoever writes it last, an end that is known is never lost again. */

import type { OperationRecord } from './operation.js';

/**
 * What is kept when `next` comes for what is kept as `kept`, whichever process wrote either of them: a record with an
 * outcome is not replaced by one without, and no outcome but `lost` by another.
 */
export function laterForm(kept: OperationRecord | null, next: OperationRecord): OperationRecord {
  if (kept === null || kept.outcome === null) return next;
  if (next.outcome === null) return kept;
  if (kept.outcome === next.outcome) return sameEnd(kept, next);
  return kept.outcome === 'lost' ? next : kept;
}

/** Two processes saw one end: the one that ran it knows what was read, the one that killed it what the kill did. */
function sameEnd(kept: OperationRecord, next: OperationRecord): OperationRecord {
  const killer = next.kill === null && kept.kill !== null ? kept : next;
  return {
    ...next,
    kill: killer.kill,
    by: killer.by,
    // The other one may say that it sent no kill: true of it, and misleading beside this one's.
    reason: killer.reason,
    evidence: killer.evidence,
    cause: killer.cause ?? kept.cause ?? next.cause,
    sentAt: next.sentAt ?? kept.sentAt,
    endedAt: kept.endedAt ?? next.endedAt,
    node: next.node ?? kept.node,
    error: next.error ?? kept.error,
    more: next.more ?? kept.more,
    keepMs: next.keepMs ?? kept.keepMs,
    task: next.task || kept.task,
    answerAs: next.answerAs ?? kept.answerAs,
    documentsRead: Math.max(kept.documentsRead, next.documentsRead),
  };
}
