/** The control connection to one node: looks at what runs there and sends kills there, apart from all data. */

import { type Document, type MongoClient, MongoServerError } from 'mongodb';
import type { Clock, Hit, KillReply, Look } from '../core/ports.js';
import type { ProcessIdentity, Sighting } from '../domain/facts.js';
import { controlTimeoutMs } from './clients.js';
import { hitsOf, lookPipeline } from './look.js';

export interface Control {
  /** Connects; rejects when the node does not answer. */
  warm(): Promise<void>;
  look(): Promise<Look>;
  kill(sighting: Sighting): Promise<KillReply>;
  killSessions(sessions: unknown[]): Promise<KillReply>;
  close(): Promise<void>;
}

/** The server's code for a missing privilege. */
const unauthorized = 13;
const controlComment = 'mongo-leash control';

export function createControl(client: MongoClient, node: string, clock: Clock): Control {
  const admin = client.db('admin');
  /** The connection that carried the last look, and the process that it is known to lead to. */
  let lookConnection: string | null = null;
  let identity: { connection: string; process: ProcessIdentity } | null = null;
  let allUsers = true;

  client.on('commandStarted', (event) => {
    if (event.commandName === 'aggregate' || event.commandName === 'hello') lookConnection = `${event.connectionId}/${event.serverConnectionId}`;
  });

  async function command(document: Document): Promise<Document> {
    return await admin.command({ ...document, comment: controlComment, maxTimeMS: controlTimeoutMs }, { promoteLongs: false });
  }

  async function currentOp(): Promise<Document[]> {
    const reply = await command({ aggregate: 1, pipeline: lookPipeline(allUsers), cursor: { batchSize: 100_000 } }).catch((error: unknown) => {
      if (!(allUsers && isUnauthorized(error))) throw error;
      // A user without inprog sees its own operations, which are all that it may kill.
      allUsers = false;
      return command({ aggregate: 1, pipeline: lookPipeline(false), cursor: { batchSize: 100_000 } });
    });
    const cursor = reply['cursor'] as { id: { isZero?(): boolean } | number; firstBatch: Document[] };
    const complete = typeof cursor.id === 'number' ? cursor.id === 0 : cursor.id.isZero?.() === true;
    if (!complete) {
      await command({ killCursors: '$cmd.aggregate', cursors: [cursor.id] });
      throw new Error('there is more than one batch of operations, so the look was not complete');
    }
    return cursor.firstBatch;
  }

  /** The process behind the connection that carried the look: one TCP connection leads to one process. */
  async function processOf(connection: string | null): Promise<ProcessIdentity> {
    if (identity !== null && identity.connection === connection) return identity.process;
    const hello = await command({ hello: 1 });
    const topologyVersion = hello['topologyVersion'] as { processId?: { toHexString?(): string } } | undefined;
    const me = hello['me'] as unknown;
    const process = { id: topologyVersion?.processId?.toHexString?.() ?? null, me: typeof me === 'string' ? me : null };
    if (connection === null || lookConnection !== connection) return { id: null, me: null };
    identity = { connection, process };
    return process;
  }

  async function send(document: Document): Promise<KillReply> {
    try {
      await command(document);
      return { refused: false };
    } catch (error) {
      return { refused: isUnauthorized(error), error: messageOf(error) };
    }
  }

  return {
    async warm() {
      await client.connect();
      await processOf(lookConnection);
    },

    async look() {
      const startedAt = clock.now();
      try {
        const rows = await currentOp();
        const endedAt = clock.now();
        const process = await processOf(lookConnection);
        const hits: Hit[] = hitsOf(rows);
        return { ok: true, node, startedAt, endedAt, process, hits };
      } catch (error) {
        return { ok: false, node, startedAt, endedAt: clock.now(), reason: messageOf(error) };
      }
    },

    async kill(sighting) {
      if (sighting.kind === 'operation') return send({ killOp: 1, op: sighting.opid });
      const dot = sighting.namespace.indexOf('.');
      const coll = sighting.namespace.slice(dot + 1);
      try {
        await client.db(sighting.namespace.slice(0, dot)).command({ killCursors: coll, cursors: [sighting.cursorId], comment: controlComment, maxTimeMS: controlTimeoutMs });
        return { refused: false };
      } catch (error) {
        return { refused: isUnauthorized(error), error: messageOf(error) };
      }
    },

    killSessions: (sessions) => send({ killSessions: sessions }),
    close: () => client.close(),
  };
}

function isUnauthorized(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === unauthorized;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
