/** What was seen of one operation, fact by fact: the only thing that a verdict may be made of. */

/** A server process as it names itself. The same address may be another process a moment later. */
export interface ProcessIdentity {
  /** `hello.topologyVersion.processId` in hex; null where a server does not tell. */
  id: string | null;
  /** `hello.me` (host and port as the replica set knows them); null outside of a replica set. */
  me: string | null;
}

/** What a look found of an operation: an operation with an opid, or an idle cursor without one. */
export interface Sighting {
  kind: 'operation' | 'idle_cursor';
  /** As the server gave it, type kept: a number, a Long or, through mongos, text. Absent on an idle cursor. */
  opid?: unknown;
  /** 64-bit, as the server gave it. */
  cursorId?: unknown;
  /** `database.collection`. */
  namespace: string;
  /** `command`, `getmore`, `update`, ... as the server says. */
  op?: string | undefined;
  secondsRunning?: number | undefined;
  planSummary?: string | undefined;
  /** Documents that the cursor has returned so far, where the server tells. */
  documentsReturned?: number | undefined;
  waitingForLock: boolean;
  killPending: boolean;
  /** The server's id of the connection that runs it. */
  connectionId?: number | undefined;
}

/** Times are milliseconds of one monotonic clock. */
export type Fact =
  /** No command of this operation will be sent after this moment. */
  | { kind: 'latched'; t: number }
  /** The call ended and nothing was ever sent. */
  | { kind: 'not_sent'; t: number }
  /** A command of this operation was handed to the wire. */
  | { kind: 'sent'; t: number; node: string }
  /** The server's last word. `code` is its error code, absent on success. */
  | { kind: 'replied'; t: number; node: string; code?: number | undefined }
  /** The call ended without the server's reply, or without a further command: nothing of it is in flight any more. */
  | { kind: 'call_over'; t: number }
  /** A look found it. */
  | { kind: 'seen'; startedAt: number; endedAt: number; node: string; process: ProcessIdentity; sighting: Sighting }
  /** A complete look did not find it. */
  | { kind: 'absent'; startedAt: number; endedAt: number; node: string; process: ProcessIdentity }
  /** A look failed: it says nothing about the operation. */
  | { kind: 'no_answer'; startedAt: number; endedAt: number; node: string; reason: string }
  /** A kill was sent to what a look had found. Its reply is not a fact. */
  | { kind: 'kill_sent'; t: number; node: string; process: ProcessIdentity }
  /** The server refused a kill (13) for want of the privilege `missing`. Mostly the operation had just ended, so it is no proof of anything alone. */
  | { kind: 'kill_refused'; t: number; node: string; sentAt: number; missing?: string }
  /** Whether a kill came through is not known: the wire broke, or the server did not answer it. */
  | { kind: 'kill_failed'; t: number; node: string; sentAt: number };

export type LookFact = Extract<Fact, { kind: 'seen' | 'absent' | 'no_answer' }>;

export function isLook(fact: Fact): fact is LookFact {
  return fact.kind === 'seen' || fact.kind === 'absent' || fact.kind === 'no_answer';
}

/** How many looks of an equal run are kept: enough for every rule of the verdict. */
const keptOfRun = 8;

/**
 * Adds a fact to the list, keeping it short without changing what can be judged from it: of a long run of looks at
 * one node that said the same, the first and the latest are kept.
 */
export function addFact(facts: Fact[], fact: Fact): void {
  facts.push(fact);
  if (!isLook(fact)) return;
  const run: number[] = [];
  for (let i = facts.length - 1; i >= 0; i -= 1) {
    const other = facts[i];
    if (other === undefined || !isLook(other)) break;
    if (other.node !== fact.node) continue;
    if (other.kind !== fact.kind || !sameProcess(other, fact)) break;
    run.push(i);
  }
  const second = run.at(-2);
  if (run.length > keptOfRun && second !== undefined) facts.splice(second, 1);
}

function sameProcess(a: LookFact, b: LookFact): boolean {
  if (a.kind === 'no_answer' || b.kind === 'no_answer') return true;
  return a.process.id === b.process.id && a.process.me === b.process.me;
}
