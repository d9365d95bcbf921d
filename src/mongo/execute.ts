/** Sends one tagged operation and reads it in bounded steps; its reply is evidence, so a call that was sent is never cut. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { type MongoClient, MongoServerError } from 'mongodb';
import type { ExecuteRequest, Execution, ExecutionEnd, ExecutionEvents } from '../core/ports.js';
import { toLeashError } from './errors.js';
import { type RawCursor, hasOwnLimit, openCursor } from './open-cursor.js';

/** Some errors repeat the stored value that they are about, whole: an answer and a record keep the beginning. */
const maxMessageChars = 2_000;

/** Tells each started command of the data client to the execution whose tag it carries. */
export interface SentListeners {
  add(tag: string, listener: (node: string, session: unknown) => void): () => void;
}

export function listenForSent(client: MongoClient): SentListeners {
  const byTag = new Map<string, (node: string, session: unknown) => void>();
  client.on('commandStarted', (event) => {
    const comment: unknown = event.command['comment'];
    if (typeof comment !== 'string') return;
    byTag.get(comment)?.(event.address, event.command['lsid']);
  });
  return {
    add(tag, listener) {
      byTag.set(tag, listener);
      return () => {
        byTag.delete(tag);
      };
    },
  };
}

export function startExecution(client: MongoClient, listeners: SentListeners, request: ExecuteRequest, events: ExecutionEvents): Execution {
  const session = client.startSession({ causalConsistency: false });
  const wire = new AbortController();
  const documents: Uint8Array[] = [];
  let count = 0;
  let sent = false;
  /** Whether a command of it is on the wire: only then is an error of the server its reply, and not one of a new connection. */
  let unanswered = false;
  let over = false;
  let dropped = false;
  let latched = false;
  let abandoned = false;
  let sessionId: unknown = null;
  const stopListening = listeners.add(request.comment, (node, lsid) => {
    sent = true;
    unanswered = true;
    sessionId = lsid;
    events.sent(node);
  });

  async function read(): Promise<ExecutionEnd> {
    const cursor = openCursor(client, request, { session, signal: wire.signal });
    let bytes = 0;
    for (;;) {
      if (latched) return sent ? { kind: 'latched' } : { kind: 'not_sent', error: new Error('stopped before it was sent') };
      if (!(await hasNext(cursor))) return { kind: 'complete', more: false };
      const taken: Uint8Array[] = [];
      let full = false;
      for (const document of cursor.takeBuffered()) {
        full = count + taken.length >= request.limit || (count + taken.length > 0 && bytes + document.byteLength > request.maxResultBytes);
        if (full) break;
        bytes += document.byteLength;
        taken.push(document);
      }
      const kept = await keep(taken).catch((error: unknown) => { throw new NotTaken(error, !cursor.isExhausted()); });
      if (kept < taken.length) return cursor.isExhausted() ? { kind: 'complete', more: true } : { kind: 'cut' };
      if (full) return request.command.kind === 'cursor' || (hasOwnLimit(request) && count >= request.limit) ? await finish(cursor) : cursor.isExhausted() ? { kind: 'complete', more: true } : { kind: 'cut' };
      if (cursor.isExhausted()) return { kind: 'complete', more: false };
      await nextTurn();
    }
  }

  /** @returns how many were kept */
  async function keep(taken: readonly Uint8Array[]): Promise<number> {
    // A copy: the document is a window on the whole reply, which would stay in memory with it.
    if (events.documents === undefined) for (const document of taken) documents.push(new Uint8Array(document));
    // Whoever takes them may hang, as a disk does: a call that is given up does not wait for that.
    const kept = events.documents === undefined ? taken.length : await untilAborted(events.documents(taken), wire.signal);
    count += kept;
    return kept;
  }

  /** The command stops at one more than asked for, or lists names, whose cursor shows no tag while it is idle, so that no look could prove its end. */
  async function finish(cursor: RawCursor): Promise<ExecutionEnd> {
    while (!cursor.isExhausted()) {
      if (latched) return { kind: 'latched' };
      if (!(await hasNext(cursor))) break;
      cursor.takeBuffered();
    }
    return { kind: 'complete', more: true };
  }

  async function hasNext(cursor: RawCursor): Promise<boolean> {
    const found = await cursor.hasNext();
    unanswered = false;
    return found;
  }

  const ended = read()
    .catch((error: unknown): ExecutionEnd => {
      if (dropped) return { kind: 'given_up' };
      if (error instanceof NotTaken) return { kind: 'not_taken', error: error.cause, open: error.open };
      if (error instanceof MongoServerError && unanswered) {
        return { kind: 'server_error', code: Number(error.code ?? 0), codeName: error.codeName ?? '', message: cutMessage(withoutCommand(error.message)) };
      }
      return sent ? { kind: 'no_reply', error } : { kind: 'not_sent', error: toLeashError(error) };
    })
    .then((end) => {
      over = true;
      stopListening();
      // With a cursor left open, or a reply still to come, the session stays the operation's until it is dropped.
      if (end.kind === 'complete' || (end.kind === 'not_taken' && !end.open) || end.kind === 'server_error' || end.kind === 'not_sent') releaseSession();
      return end;
    });

  function releaseSession(): void {
    if (abandoned) return;
    abandoned = true;
    session.endSession().catch(() => undefined);
  }

  return {
    ended,
    documents,
    read: () => count,
    abortUnsent() {
      if (!sent) wire.abort(new Error('stopped before it was sent'));
    },
    latch() {
      latched = true;
    },
    drop() {
      if (!over) {
        dropped = true;
        wire.abort(new Error('its reply is not waited for any longer'));
      }
      void ended.then(releaseSession);
    },
    get session() {
      return sessionId;
    },
    abandonSession() {
      abandoned = true;
    },
  };
}

/** Whoever takes the documents failed, not the database. */
class NotTaken extends Error {
  readonly open: boolean;

  constructor(cause: unknown, open: boolean) {
    super('its documents could not be taken', { cause });
    this.open = open;
  }
}

/** @throws the signal's reason as soon as it aborts */
async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  let onAbort = () => {};
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => { reject(signal.reason as Error); };
    signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

function cutMessage(message: string): string {
  if (message.length <= maxMessageChars) return message;
  return `${message.slice(0, maxMessageChars).toWellFormed()}… (cut; the message has ${message.length} characters)`;
}

/** A refusal repeats the whole command, with its session and the signature of the cluster's time: the command's name says enough. */
function withoutCommand(message: string): string {
  return message.replace(/( to execute command) \{ (\w+): .*$/s, '$1 $2');
}
