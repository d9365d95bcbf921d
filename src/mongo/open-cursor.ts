/** Turns a command into a cursor of the driver that gives raw BSON, whatever the command's reply looks like. */

import { type AbstractCursor, type AggregateOptions, BSON, type Document, type FindOptions, type MongoClient, MongoServerError } from 'mongodb';
import type { AggregateCommand, ExecuteRequest, FindCommand, PlainCommand, ReadOptions } from '../core/ports.js';
import { asSent, replyBytes } from './raw-reply.js';

type Base = Pick<AggregateOptions, 'session'> & { signal: AbortSignal };

export interface RawCursor {
  hasNext(): Promise<boolean>;
  /** What the last reply held and has not been taken: raw BSON, windows on the whole reply. */
  takeBuffered(): Uint8Array[];
  /** Whether nothing is left, here and on the server. */
  isExhausted(): boolean;
}

/** Documents in one batch: a default batch of small documents blocked the event loop for over a second, this one for some 20 ms. */
const maxBatchSize = 1_000;
/** The server takes so many stages at most. */
const maxStages = 1_000;

/** Whether the command itself stops at one document more than asked for: not a write, nor what has no room or no place for a limit. */
export function hasOwnLimit({ command, limit }: ExecuteRequest): boolean {
  if (!Number.isSafeInteger(limit + 1)) return false;
  return command.kind === 'find' || (command.kind === 'aggregate' && !command.writes && command.pipeline.length < maxStages);
}

export function openCursor(client: MongoClient, request: ExecuteRequest, base: Base): RawCursor {
  const { command } = request;
  switch (command.kind) {
    case 'aggregate':
      return rawCursor(aggregateCursor(client, request, command, base), base);
    case 'find':
      return rawCursor(findCursor(client, request, command, base), base);
    case 'cursor':
      return commandCursor(client, request, command, base);
    case 'reply':
      return replyCursor(client, request, command, base);
  }
}

function rawCursor(cursor: AbstractCursor, { signal }: Base): RawCursor {
  // The driver gives the signal to the first command alone: a getMore on a connection that went silent could never be given up.
  Object.assign((cursor as unknown as { cursorOptions: object }).cursorOptions, { signal });
  return {
    hasNext: () => cursor.hasNext(),
    takeBuffered: () => cursor.readBufferedDocuments() as Uint8Array[],
    isExhausted: () => cursor.bufferedCount() === 0 && (cursor.id === undefined || cursor.id.isZero()),
  };
}

function aggregateCursor(client: MongoClient, request: ExecuteRequest, { on, pipeline, ...options }: AggregateCommand, base: Base): AbstractCursor {
  const stages = hasOwnLimit(request) ? [...(pipeline as Document[]), { $limit: request.limit + 1 }] : (pipeline as Document[]);
  const all = { ...base, ...readOptions(request, options) } as AggregateOptions;
  const db = client.db(on.db);
  return on.coll === null ? db.aggregate(stages, all) : db.collection(on.coll).aggregate(stages, all);
}

function findCursor(client: MongoClient, request: ExecuteRequest, { on, filter, projection, sort, skip, ...options }: FindCommand, base: Base): AbstractCursor {
  return client.db(on.db).collection(on.coll).find(filter as Document, {
    ...base,
    ...readOptions(request, options),
    ...(hasOwnLimit(request) ? { limit: request.limit + 1 } : {}),
    ...(projection === undefined ? {} : { projection: projection as Document }),
    ...(sort === undefined ? {} : { sort: sort as Document }),
    ...(skip === undefined ? {} : { skip }),
  } as FindOptions);
}

function readOptions({ comment, maxTimeMS, limit, readPreference }: ExecuteRequest, options: ReadOptions): Document {
  const { hint, collation, let: variables, allowDiskUse } = options;
  return {
    raw: true,
    comment,
    maxTimeMS,
    // One more than there can be, so that the first reply says that it is complete and leaves no cursor.
    batchSize: Math.min(limit + 2, maxBatchSize),
    ...(readPreference === undefined ? {} : { readPreference }),
    ...(hint === undefined ? {} : { hint }),
    ...(collation === undefined ? {} : { collation }),
    ...(variables === undefined ? {} : { let: variables }),
    ...(allowDiskUse === undefined ? {} : { allowDiskUse }),
  };
}

function tagged({ command }: PlainCommand, { comment, maxTimeMS }: ExecuteRequest): Document {
  return { ...command, maxTimeMS, comment };
}

/** Lists of names come in one reply where they can: their cursor shows no tag while it is idle (measured on 6.0.5), so that no look could find it. */
function commandCursor(client: MongoClient, request: ExecuteRequest, command: PlainCommand, base: Base): RawCursor {
  const options = { raw: true, ...(base.session === undefined ? {} : { session: base.session }), ...(request.readPreference === undefined ? {} : { readPreference: request.readPreference }) };
  const cursor = client.db(command.db).runCursorCommand({ ...tagged(command, request), cursor: { batchSize: request.limit + 2 } }, options);
  cursor.setComment(request.comment);
  return rawCursor(cursor, base);
}

function replyCursor(client: MongoClient, request: ExecuteRequest, command: PlainCommand, base: Base): RawCursor {
  let reply: Uint8Array | null = null;
  let taken = false;
  return {
    async hasNext() {
      if (taken) return false;
      const options = { ...base, ...asSent, ...(request.readPreference === undefined ? {} : { readPreference: request.readPreference }) };
      const answer = await client.db(command.db).command(tagged(command, request), options);
      throwFailureOf(answer);
      reply ??= replyBytes(answer, command.redact);
      return true;
    },
    takeBuffered() {
      taken = true;
      return reply === null ? [] : [reply];
    },
    isExhausted: () => taken,
  };
}

/** An explain that was interrupted answers ok: 1, and says so inside (measured on 6.0.5: find, count and distinct). */
function throwFailureOf({ executionStats: stats }: Document): void {
  if (!(stats instanceof Uint8Array)) return;
  const { executionSuccess, errorCode, errorMessage } = BSON.deserialize(stats, { validation: { utf8: false } });
  if (executionSuccess !== false) return;
  throw new MongoServerError({ code: Number(errorCode ?? 0), codeName: '', errmsg: String(errorMessage), message: String(errorMessage) });
}
