/** Sends one tagged aggregation and reads it in bounded steps; its reply is evidence, so a call that was sent is never cut. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { type AggregateOptions, type AggregationCursor, type Document, type MongoClient, MongoServerError } from 'mongodb';
import type { AggregateRequest, Execution, ExecutionEnd, ExecutionEvents } from '../core/ports.js';
import { toLeashError } from './errors.js';

/** Documents in one batch: a default batch of small documents blocked the event loop for over a second, this one for some 20 ms. */
const maxBatchSize = 1_000;

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

export function startAggregate(client: MongoClient, listeners: SentListeners, request: AggregateRequest, events: ExecutionEvents): Execution {
  const session = client.startSession({ causalConsistency: false });
  const wire = new AbortController();
  const documents: Uint8Array[] = [];
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
      for (const document of cursor.readBufferedDocuments() as unknown as Uint8Array[]) {
        if (documents.length >= request.limit) return hasOwnLimit(request) ? await finish(cursor) : isExhausted(cursor) ? { kind: 'complete', more: true } : { kind: 'cut' };
        if (documents.length > 0 && bytes + document.byteLength > request.maxResultBytes) return isExhausted(cursor) ? { kind: 'complete', more: true } : { kind: 'cut' };
        bytes += document.byteLength;
        // A copy: the document is a window on the whole reply, which would stay in memory with it.
        documents.push(new Uint8Array(document));
      }
      if (isExhausted(cursor)) return { kind: 'complete', more: false };
      await nextTurn();
    }
  }

  /** The pipeline ends with a `$limit` of one more than asked for: one further getMore at most finds the cursor's end. */
  async function finish(cursor: AggregationCursor): Promise<ExecutionEnd> {
    while (!isExhausted(cursor)) {
      if (latched) return { kind: 'latched' };
      if (!(await hasNext(cursor))) break;
      cursor.readBufferedDocuments();
    }
    return { kind: 'complete', more: true };
  }

  async function hasNext(cursor: AggregationCursor): Promise<boolean> {
    const found = await cursor.hasNext();
    unanswered = false;
    return found;
  }

  const ended = read()
    .catch((error: unknown): ExecutionEnd => {
      if (dropped) return { kind: 'given_up' };
      if (error instanceof MongoServerError && unanswered) {
        return { kind: 'server_error', code: Number(error.code ?? 0), codeName: error.codeName ?? '', message: cutMessage(error.message) };
      }
      return sent ? { kind: 'no_reply', error } : { kind: 'not_sent', error: toLeashError(error) };
    })
    .then((end) => {
      over = true;
      stopListening();
      // With a cursor left open, or a reply still to come, the session stays the operation's until it is dropped.
      if (end.kind === 'complete' || end.kind === 'server_error' || end.kind === 'not_sent') releaseSession();
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

/** The server takes so many stages at most. */
const maxStages = 1_000;

/** Whether our `$limit` ends the pipeline: not that of a write, nor one that has no room for a further stage. */
function hasOwnLimit({ writes, pipeline }: AggregateRequest): boolean {
  return !writes && pipeline.length < maxStages;
}

function openCursor(client: MongoClient, request: AggregateRequest, base: AggregateOptions & { signal: AbortSignal }): AggregationCursor {
  const { on, limit } = request;
  const options: AggregateOptions & { signal: AbortSignal } = {
    ...base,
    raw: true,
    comment: request.comment,
    maxTimeMS: request.maxTimeMS,
    // One more than there can be, so that the first reply says that it is complete and leaves no cursor.
    batchSize: Math.min(limit + 2, maxBatchSize),
    ...(request.readPreference === undefined ? {} : { readPreference: request.readPreference }),
    ...(request.hint === undefined ? {} : { hint: request.hint as Document }),
    ...(request.collation === undefined ? {} : { collation: request.collation as Document & { locale: string } }),
    ...(request.let === undefined ? {} : { let: request.let as Document }),
    ...(request.allowDiskUse === undefined ? {} : { allowDiskUse: request.allowDiskUse }),
  };
  const pipeline = hasOwnLimit(request) ? [...(request.pipeline as Document[]), { $limit: limit + 1 }] : (request.pipeline as Document[]);
  const db = client.db(on.db);
  const cursor = on.coll === null ? db.aggregate(pipeline, options) : db.collection(on.coll).aggregate(pipeline, options);
  // The driver gives the signal to the first command alone: a getMore on a connection that went silent could never be given up.
  Object.assign((cursor as unknown as { cursorOptions: object }).cursorOptions, { signal: base.signal });
  return cursor;
}

function isExhausted(cursor: AggregationCursor): boolean {
  return cursor.bufferedCount() === 0 && (cursor.id === undefined || cursor.id.isZero());
}

function cutMessage(message: string): string {
  if (message.length <= maxMessageChars) return message;
  return `${message.slice(0, maxMessageChars).toWellFormed()}… (cut; the message has ${message.length} characters)`;
}
