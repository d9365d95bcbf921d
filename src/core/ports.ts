/** What the core needs from the outside, as plain interfaces: the adapters in mongo/ and store/ provide them. */

import type { KillSent, OperationRecord } from '../domain/operation.js';
import type { ProcessIdentity, Sighting } from '../domain/facts.js';
import type { Tag } from '../domain/tag.js';
import type { Cause, Outcome } from '../domain/words.js';
import type { AggregateCommand, Command, FindCommand, PlainCommand, ReadOptions, ReadPreference } from './command.js';

export interface Clock {
  /** Milliseconds of a monotonic clock. */
  now(): number;
  /** A moment of the monotonic clock as ISO 8601 UTC, for showing. */
  iso(at?: number): string;
  /** Calls back once after that many milliseconds; returns what cancels it. One in the background does not keep the process alive. */
  after(ms: number, call: () => void, options?: { background: boolean }): () => void;
}

export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export type { AggregateCommand, Command, FindCommand, PlainCommand, ReadOptions, ReadPreference };

/** One operation, ready for the wire, its limits settled. */
export interface ExecuteRequest {
  command: Command;
  comment: string;
  maxTimeMS: number;
  readPreference?: ReadPreference | undefined;
  /** Documents to keep; whether there is one more is found out besides. */
  limit: number;
  /** Bytes of BSON to keep at most. */
  maxResultBytes: number;
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
  | { kind: 'given_up' }
  /** What it read could not be taken. `open`: the cursor is still open on the server. */
  | { kind: 'not_taken'; error: unknown; open: boolean };

export interface Execution {
  /** Never rejects. */
  readonly ended: Promise<ExecutionEnd>;
  /** The documents kept so far: raw BSON, one each. None when {@link ExecutionEvents.documents} takes them. */
  readonly documents: Uint8Array[];
  /** How many have been read so far, kept here or taken. */
  read(): number;
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
  /**
   * Takes documents as they come, in place of keeping them: raw BSON, to be used before it settles. Reading waits for it.
   * @returns how many it took, in their order; after fewer than there are nothing more is read
   */
  documents?(batch: readonly Uint8Array[]): Promise<number>;
}

/** Where an operation comes from, as the server shows it. */
export interface Origin {
  /** Address of the client, `host:port`. */
  client: string | null;
  appName: string | null;
  /** `user@database` of whom it runs as; empty without authentication. */
  users: string[];
  /** The operation's own maxTimeMS, where the server shows it. */
  maxTimeMS: number | null;
  /** Logical session, for a killSessions in another user's name. */
  lsid: unknown;
}

/** A tagged operation or cursor as a look found it. */
export interface Hit {
  tag: Tag;
  sighting: Sighting;
  origin: Origin;
}

/** Any operation of a node, tagged or not. */
export interface SurveyRow extends Omit<Hit, 'tag'> {
  node: string;
  tag: Tag | null;
  /** The comment as it stands on the operation, tag or not, cut; null when there is none. */
  comment: string | null;
  /** Since it began, over all its commands as far as the server tells; null where it does not. */
  ageSeconds: number | null;
  /** Its logical session as text, to compare; null when it has none. */
  session: string | null;
  /** Whether it is known to be unable to write. */
  reads: boolean;
  /** Of the server itself or of another server (replication, monitoring), or of this program's control connections. */
  internal: boolean;
}

/** `ownOnly`: this user may see only its own operations there, so others' may run besides. */
export type Survey =
  | { ok: true; node: string; startedAt: number; endedAt: number; process: ProcessIdentity; rows: SurveyRow[]; ownOnly?: boolean }
  | { ok: false; node: string; startedAt: number; endedAt: number; reason: string };

/** One complete look at one node, or the reason why there was none. Times are of the monotonic clock; `ownOnly` as in {@link Survey}. */
export type Look =
  | { ok: true; node: string; startedAt: number; endedAt: number; process: ProcessIdentity; hits: Hit[]; ownOnly?: boolean }
  | { ok: false; node: string; startedAt: number; endedAt: number; reason: string };

/** `missing` names the privilege that a refusal (13) is for; `method` says what was sent where it is not what was asked for. */
export type KillReply = ({ refused: false; error?: string } | { refused: true; error: string; missing: string }) & { method?: KillSent['method'] };

/** Members of a replica set that no member announces: found only by who may read the set's configuration. */
export interface HiddenMembers {
  /** `host:port` of each. */
  nodes: string[];
  /** Why they could not be asked for; null when they were, or where there can be none. */
  unknownBecause: string | null;
}

export interface CollectionInfo {
  type: 'collection' | 'view' | 'timeseries' | 'none' | 'unknown';
  /** The collection's UUID in hex, where it has one. */
  uuid?: string | undefined;
  view?: { on: string; pipeline: unknown[] } | undefined;
}

/** What one node is, and what the user of the connection may do there. */
export interface NodeFindings {
  version: string;
  /** primary, secondary, hidden secondary, arbiter, standalone, mongos, other. */
  role: string;
  setName: string | null;
  /** `user@database`; null when the connection has no user. */
  user: string | null;
  authEnabled: boolean;
  seeOwn: boolean;
  seeAll: boolean;
  killOthers: boolean;
  killSessions: boolean;
  killCursors: boolean;
  /** To data of users, by what its roles allow. */
  canWrite: boolean;
  /** May read the replica set's configuration, which alone names hidden members. */
  seeHidden: boolean;
  /** Connections that the node has and could still take; null where this user may not ask. */
  connections: { current: number; available: number } | null;
  /** The node's clock minus this machine's, within the time of one round trip. */
  clockDifferenceMs: number | null;
  /** How long one look takes. */
  lookMs: number;
}

/** The database, as far as the core needs it. */
export interface Deployment {
  /**
   * Connects when that is not done yet; after it, a control connection to each node that answers is warm.
   * @throws LeashError not_configured, unreachable, authentication_failed
   */
  ready(): Promise<void>;
  /** Every node that holds data, as `host:port`; hidden members too where this user may know of them. */
  nodes(): string[];
  hiddenMembers(): HiddenMembers;
  /** The replica set's name; null while it is not known, and where there is none. */
  setName(): string | null;
  /** Never rejects. */
  look(node: string): Promise<Look>;
  /** A look at every operation of a node, tagged or not, as far as this user may see them. Never rejects. */
  survey(node: string): Promise<Survey>;
  /** Sends a kill of what a look found to the node where it was found. Never rejects. */
  kill(node: string, sighting: Sighting, origin: Origin): Promise<KillReply>;
  /** One killSessions with all these sessions. Never rejects. */
  killSessions(node: string, sessions: unknown[]): Promise<KillReply>;
  execute(request: ExecuteRequest, events: ExecutionEvents): Execution;
  /** @throws LeashError when the server does not answer */
  collectionInfo(ns: { db: string; coll: string }): Promise<CollectionInfo>;
  /** Where it can be asked for, as {@link ExaminedDeployment.examine}. */
  examine?(node: string, credentials: 'data' | 'control'): Promise<NodeFindings>;
  close(): Promise<void>;
}

/** What a check of the deployment asks for besides: each node for itself. */
export interface ExaminedDeployment extends Deployment {
  /** @throws LeashError when the node does not answer, or refuses the credentials; bad_argument without control credentials */
  examine(node: string, credentials: 'data' | 'control'): Promise<NodeFindings>;
  /** The same node as a deployment of its own, under another instance, whose data client holds so many connections at most (two or more). */
  alone(node: string, connections: number, instance: string): Deployment;
  /** How many connections of that instance the node has; null when it does not say. */
  connectionsOf(instance: string, node: string): Promise<number | null>;
}

/** A server process as it recorded itself when it started: whether it still lives is told from this. */
export interface InstanceRecord {
  instance: string;
  /** ISO 8601 UTC. */
  startedAt: string;
  hostname: string;
  /** Tells machines with one host name apart; null where the system has none. */
  machineId: string | null;
  pid: number;
  /** Changes with each start of the machine; null where the system does not tell. */
  bootId: string | null;
  /** Processes of another pid namespace (a container) cannot be asked about by pid; null where there are none. */
  pidNamespace: string | null;
  /** When the process started, as the system counts it: a pid is used again, with another start. */
  processStart: string | null;
}

export type Liveness = 'alive' | 'dead' | 'unknown';

/** What is left of an operation whose record was dropped for its age. Times are ISO 8601 UTC. */
export interface Expired {
  operationId: string;
  /** As its record had it. */
  principal: string;
  outcome: Outcome;
  cause: Cause | null;
  endedAt: string;
  /** When the time was over for which its record was kept. */
  expiredAt: string;
}

/** Where records and results of operations are kept. An ended one's are dropped when they are older than its `keepMs`. */
export interface Store {
  /** Keeps a record, or its later form. A record with an outcome is never replaced by one without, and no outcome but `lost` by another. */
  put(record: OperationRecord): Promise<void>;
  get(operationId: string): Promise<OperationRecord | null>;
  /** What is left of one whose record was dropped for its age, for a while; null of all others. */
  expired(operationId: string): Promise<Expired | null>;
  /** Newest first; of every principal when none is named. */
  list(principal?: string): Promise<OperationRecord[]>;
  /** Those without an outcome, of every principal. */
  unended(): Promise<OperationRecord[]>;
  putDocuments(operationId: string, documents: Uint8Array[]): Promise<void>;
  /** null when they are not kept (any more). */
  getDocuments(operationId: string): Promise<Uint8Array[] | null>;
  putInstance(instance: InstanceRecord): Promise<void>;
  instances(): Promise<InstanceRecord[]>;
  /** Why this record or its documents, or any of them when none is named, are in this process's memory only; null when all is as it should be. */
  problem(operationId?: string): string | null;
  close(): Promise<void>;
}
