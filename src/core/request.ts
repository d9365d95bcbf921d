/** What the engine is asked to run, by whom, and what it answers. */

import type { AnswerForm, OperationRecord, WriteReport } from '../domain/operation.js';
import type { Namespace } from '../domain/policy/pipeline-policy.js';
import type { RequestId } from '../domain/tag.js';
import type { Cause } from '../domain/words.js';
import type { Sink } from './exports.js';
import type { ExecuteRequest } from './ports.js';

export interface Caller {
  /** Whose operations these are. */
  principal: string;
  /** May see and kill the operations of every principal: the command line, and over HTTP the scope `leash:admin`. */
  admin?: boolean;
  /** The mark of the caller's session, as it stands in tags. */
  session: string;
  requestId: RequestId;
  /** Aborts when the caller cancels. */
  signal: AbortSignal;
  /** What an abort of the signal means, asked when it has come; `client_cancelled` when left out. */
  causeOfAbort?: (() => Cause) | undefined;
  /** Told at most once a second what the database reports; absent when the caller did not ask. */
  progress?: ((message: string, elapsedSeconds: number) => void) | undefined;
}

export interface RunRequest {
  tool: string;
  /** Which of several connections; may be left out where the caller has one. */
  connectionId?: string | undefined;
  on: Namespace;
  /** Every collection that it reads, for the resolution of views. */
  namespaces: readonly { ns: Namespace; path: string }[];
  writes: WriteReport | null;
  execute: Omit<ExecuteRequest, 'comment'>;
  /** Takes the documents in place of keeping them. */
  sink?: Sink | undefined;
  ownComment: string;
  /** How long the caller waits before it is handed the operation's id. */
  waitMs: number;
  /** When it is handed over as a native task: never, when it has not ended by `waitMs`, or whatever becomes of it. */
  asTask: 'never' | 'when_detached' | 'always';
  /** How long its record and documents are kept after its end, in milliseconds; the server's own time when left out. */
  keepMs?: number | undefined;
  /** How its documents are shown to whoever asks for its answer later. */
  answerAs: AnswerForm;
  /** Equal for requests that ask the database for the same. */
  digest: string;
  /** Start it although the same is already running. */
  startAnother: boolean;
  notes: string[];
}

export interface RunAnswer {
  /** `already_running`: nothing was started, this is the one that runs. */
  kind: 'ended' | 'detached' | 'already_running';
  record: OperationRecord;
  documents: Uint8Array[];
}
