/** Facts as answers show them: what was seen, where and when. */

import { type Fact, type LookFact, isLook } from '../domain/facts.js';
import type { Evidence } from '../domain/operation.js';

type ToIso = (t: number) => string;

/** The facts that the current judgement stands on: the last looks at each node, where it was seen before, and the reply. */
export function evidenceOf(facts: readonly Fact[], iso: ToIso): Evidence[] {
  const shown = new Set<Fact>();
  for (const node of new Set(facts.filter(isLook).map((look) => look.node))) {
    const looks = facts.filter((fact): fact is LookFact => isLook(fact) && fact.node === node);
    const latest = looks.at(-1);
    const lastSeen = looks.findLast((look) => look.kind === 'seen');
    if (lastSeen !== undefined) shown.add(lastSeen);
    const kindNow = latest?.kind;
    for (const look of looks.slice(-3)) if (look.kind === kindNow && (kindNow !== 'seen' || look.startedAt === latest?.startedAt)) shown.add(look);
  }
  for (const fact of facts) if (fact.kind === 'replied') shown.add(fact);
  return facts.filter((fact) => shown.has(fact)).map((fact) => toEvidence(fact, iso)).filter((entry) => entry !== null);
}

/** What looks found, or that they found nothing, or why there was none; and the reply of the call. */
export function lookEvidence(facts: readonly Fact[], iso: ToIso): Evidence[] {
  return facts.map((fact) => toEvidence(fact, iso)).filter((entry) => entry !== null);
}

function toEvidence(fact: Fact, iso: ToIso): Evidence | null {
  switch (fact.kind) {
    case 'seen': {
      const { sighting } = fact;
      return {
        at: iso(fact.endedAt),
        node: fact.node,
        saw: sighting.kind,
        ...(sighting.opid === undefined ? {} : { opid: shown(sighting.opid) }),
        ...(sighting.cursorId === undefined ? {} : { cursorId: shown(sighting.cursorId) }),
        namespace: sighting.namespace,
        ...(sighting.secondsRunning === undefined ? {} : { secondsRunning: sighting.secondsRunning }),
        ...(sighting.planSummary === undefined ? {} : { planSummary: sighting.planSummary }),
        ...(sighting.documentsReturned === undefined ? {} : { documentsSoFar: sighting.documentsReturned }),
        waitingForLock: sighting.waitingForLock,
        killPending: sighting.killPending,
      };
    }
    case 'absent':
      return { at: iso(fact.endedAt), node: fact.node, saw: 'nothing' };
    case 'no_answer':
      return { at: iso(fact.endedAt), node: fact.node, saw: 'no_answer', detail: fact.reason };
    case 'replied':
      return { at: iso(fact.t), node: fact.node, saw: 'reply', detail: fact.code === undefined ? 'success' : `error ${fact.code}` };
    default:
      return null;
  }
}

/** An opid or a cursor id as text: a number, text, or a 64-bit value that knows its own digits. */
export function shown(id: unknown): string {
  return typeof id === 'object' && id !== null ? (id as { toString(): string }).toString() : String(id);
}
