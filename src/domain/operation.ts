/** The record of an operation: everything that may be said of it after its call is gone. */

import type { ErrorCode } from './errors.js';
import type { ExportFormat } from './export-text.js';
import type { RequestId } from './tag.js';
import type { Cause, KilledBy, Outcome, ServerState, Verdict, Wait } from './words.js';

/** One thing that was seen, as answers show it. Times are ISO 8601 UTC. */
export interface Evidence {
  at: string;
  node: string;
  saw: 'operation' | 'idle_cursor' | 'nothing' | 'no_answer' | 'reply' | 'target';
  /** As the server gave it, as text: a number, or through mongos `shard:number`. */
  opid?: string;
  cursorId?: string;
  namespace?: string;
  secondsRunning?: number;
  planSummary?: string;
  documentsSoFar?: number;
  waitingForLock?: boolean;
  killPending?: boolean;
  /** What else was said: an error of the server, the reason why a node did not answer. */
  detail?: string;
}

/** A kill that was sent, where to and to what. That it was sent proves nothing. */
export interface KillSent {
  at: string;
  node: string;
  method: 'killOp' | 'killCursors' | 'killSessions';
  target: string;
  /** The server's refusal or the error of the wire, where there was one. */
  error?: string;
}

/** What a kill did: before, what was sent where, after. */
export interface KillReport {
  verdict: Verdict;
  reason: string;
  cause: Cause;
  requestedAt: string;
  before: Evidence[];
  sent: KillSent[];
  after: Evidence[];
  /** From the request to the verdict, or to now while it is pending. */
  elapsedMs: number;
}

/** What is known of the target of a `$out` or `$merge`. */
export interface WriteReport {
  /** `unknown` for one that another process started. */
  stage: '$out' | '$merge' | 'unknown';
  target: string;
  /** One sentence of what the database shows of its effects. */
  effects: string;
}

export interface OperationError {
  message: string;
  /** What kind of error ours was, and what to do then, where nothing was sent because of it. */
  kind?: ErrorCode;
  next?: string;
  /** The server's error code and its name, where the server said it. */
  code?: number;
  codeName?: string;
}

/** Where an operation can be: what its server process knew of the deployment when it sent it. */
export interface Whereabouts {
  /** The replica set's name; null where there is none. */
  set: string | null;
  /** `host:port` of each node. */
  nodes: string[];
}

/** How the documents of an answer were asked for. */
export interface AnswerForm {
  /** Canonical instead of relaxed Extended JSON. */
  canonical: boolean;
  /** Size of the answer in bytes. */
  responseBytes: number;
}

/** The file that an export writes. */
export interface ExportReport {
  title: string;
  format: ExportFormat;
  /** Its name in the folder of exports; null while it is written, and where it was removed. */
  file: string | null;
  documents: number;
  bytes: number;
  /** Whether it holds all that was asked for; null before its end, and where it was removed. */
  complete: boolean | null;
}

export interface OperationRecord {
  operationId: string;
  instance: string;
  /** The principal whose operation it is, in full: only its hash stands in the tag. */
  principal: string;
  session: string;
  requestId: RequestId;
  /** Which of this server's connections it was sent by; absent when another process started it, or an older program. */
  connectionId?: string | undefined;
  tool: string;
  database: string;
  /** null for an operation on the database. */
  collection: string | null;
  /** Equal for operations that ask the database for the same. */
  digest: string;
  tag: string;
  createdAt: string;
  sentAt: string | null;
  endedAt: string | null;
  /** From its creation to its end, or to now. */
  elapsedMs: number;
  /** null, like the deadline, when another process started it. */
  maxTimeMS: number | null;
  deadlineAt: string | null;
  node: string | null;
  /** null while it waits to be sent, and when another process started it. */
  whereabouts: Whereabouts | null;
  wait: Wait;
  server: ServerState;
  outcome: Outcome | null;
  cause: Cause | null;
  by: KilledBy | null;
  reason: string;
  documentsRead: number;
  /** Whether the database has more than was read; null while that is not known. */
  more: boolean | null;
  error: OperationError | null;
  writes: WriteReport | null;
  /** null of all that is no export. */
  export: ExportReport | null;
  kill: KillReport | null;
  evidence: Evidence[];
  /** What the caller should know about how its arguments were taken. */
  notes: string[];
  /** null when another process started it, or an older program. */
  answerAs: AnswerForm | null;
  /**
   * How long its record and documents are kept after its end, in milliseconds; null, as long as whoever keeps them keeps
   * anything, when another process started it, or an older program.
   */
  keepMs: number | null;
  /** Whether it was handed over as a native task. */
  task: boolean;
}
