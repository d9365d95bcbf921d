/** What the core needs from the outside, as plain interfaces: the adapters in mongo/ and store/ provide them. */

import type { OperationRecord } from '../domain/operation.js';
import type { ProcessIdentity, Sighting } from '../domain/facts.js';
import type { Namespace } from '../domain/policy/pipeline-policy.js';
import type { Tag } from '../domain/tag.js';

export interface Clock {
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** A moment of the monotonic clock as ISO 8601 UTC, for showing. */
  iso(at?: number): string;
  /** Calls back once after that many milliseconds; returns what cancels it. */
  after(ms: number, call: () => void): () => void;
}

export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export type ReadPreference = 'primary' | 'primaryPreferred' | 'secondary' | 'secondaryPreferred' | 'nearest';

/** One aggregation, ready for the wire: BSON-ready values, limits settled. */
export interface AggregateRequest {
  on: Namespace;
  pipeline: unknown[];
  comment: string;
  maxTimeMS: number;
  readPreference?: ReadPreference | undefined;
  hint?: unknown;
  collation?: unknown;
  let?: unknown;
  allowDiskUse?: boolean | undefined;
  /** Documents to keep; whether there is one more is found out besides. */
  limit: number;
  /** Bytes of BSON to keep at most. */
  maxResultBytes: number;
  /** Writes have no documents and must not get a `$limit`. */
  writes: boolean;
}

/** How the call of an execution ended. */
export type ExecutionEnd =
  /** The server completed it, and no cursor is left. `more`: there were more documents than `limit`. */
  | { kind: 'complete'; more: boolean }
  /** The byte limit was reached: the cursor is still open on the server. */
  | { kind: 'cut' }
  /** The latch stopped it between two commands: the cursor is still open on the server. */
  | { kind: 'latched' }
  /** The server's own error. */
  | { kind: 'server_error'; code: number; codeName: string; message: string }
  /** It ended before anything was sent. */
  | { kind: 'not_sent'; error: unknown }
  /** It was sent, and the wire broke before the reply. */
  | { kind: 'no_reply'; error: unknown }
  /** It was sent, and {@link Execution.drop} gave its reply up. */
  | { kind: 'given_up' };

export interface Execution {
  /** Never rejects. */
  readonly ended: Promise<ExecutionEnd>;
  /** The documents kept so far: raw BSON, one each. */
  readonly documents: Uint8Array[];
  /** Ends a call that has sent nothing. A call that was sent is never aborted: its reply is evidence. */
  abortUnsent(): void;
  /** No further command (getMore) after this. */
  latch(): void;
  /** Gives up waiting for a reply that cannot be hoped for any more, and frees the connection. */
  drop(): void;
  /** The logical session's id, for killSessions. */
  readonly session: unknown;
  /** Marks the session as named in a killSessions: it must never be used again. */
  abandonSession(): void;
}

export interface ExecutionEvents {
  sent(node: string): void;
}

/** A tagged operation or cursor as a look found it. */
export interface Hit {
  tag: Tag;
  sighting: Sighting;
}

/** One complete look at one node, or the reason why there was none. Times are of the monotonic clock. */
export type Look =
  | { ok: true; node: string; startedAt: number; endedAt: number; process: ProcessIdentity; hits: Hit[] }
  | { ok: false; node: string; startedAt: number; endedAt: number; reason: string };

export type KillReply = { refused: false; error?: string } | { refused: true; error: string };

export interface CollectionInfo {
  type: 'collection' | 'view' | 'timeseries' | 'none' | 'unknown';
  /** The collection's UUID in hex, where it has one. */
  uuid?: string | undefined;
  view?: { on: string; pipeline: unknown[] } | undefined;
}

/** The database, as far as the core needs it. */
export interface Deployment {
  /**
   * Connects when that is not done yet; after it, a control connection to each node that answers is warm.
   * @throws LeashError not_configured, unreachable, authentication_failed
   */
  ready(): Promise<void>;
  /** Every node that holds data, as `host:port`. */
  nodes(): string[];
  /** Never rejects. */
  look(node: string): Promise<Look>;
  /** Sends a kill of what a look found to the node where it was found. Never rejects. */
  kill(node: string, sighting: Sighting): Promise<KillReply>;
  /** One killSessions with all these sessions. Never rejects. */
  killSessions(node: string, sessions: unknown[]): Promise<KillReply>;
  aggregate(request: AggregateRequest, events: ExecutionEvents): Execution;
  /** @throws LeashError when the server does not answer */
  collectionInfo(ns: { db: string; coll: string }): Promise<CollectionInfo>;
  close(): Promise<void>;
}

/** Where records and results of operations are kept. */
export interface Store {
  put(record: OperationRecord): Promise<void>;
  get(operationId: string): Promise<OperationRecord | null>;
  /** Newest first. */
  list(principal: string): Promise<OperationRecord[]>;
  putDocuments(operationId: string, documents: Uint8Array[]): Promise<void>;
  /** null when they are not kept (any more). */
  getDocuments(operationId: string): Promise<Uint8Array[] | null>;
}
