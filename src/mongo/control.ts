/** The control connection to one node: looks at what runs there and sends kills there, apart from all data. */

import { messageOf } from '../domain/errors.js';
import { type Document, type MongoClient, MongoServerError } from 'mongodb';
import type { Clock, KillReply, Look, Survey } from '../core/ports.js';
import type { ProcessIdentity, Sighting } from '../domain/facts.js';
import { controlAppName, controlTimeoutMs } from './clients.js';
import { hitsOf, lookPipeline, surveyPipeline, surveyRowsOf } from './look.js';

export interface Control {
  /** Connects; rejects when the node does not answer. */
  warm(): Promise<void>;
  look(): Promise<Look>;
  survey(): Promise<Survey>;
  kill(sighting: Sighting): Promise<KillReply>;
  killSessions(sessions: unknown[]): Promise<KillReply>;
  /** Hosts of the hidden members, as the replica set's configuration names them. @throws Error naming the privilege, or the driver's */
  hiddenMembers(): Promise<string[]>;
  close(): Promise<void>;
}

interface Times {
  node: string;
  startedAt: number;
  endedAt: number;
}
type Seen = { ok: true; times: Times; process: ProcessIdentity; ownOnly: boolean; rows: Document[] } | { ok: false; times: Times; reason: string };

/** The server's code for a missing privilege. */
const unauthorized = 13;
const controlComment = 'mongo-leash control';

type Kill = 'killOp' | 'killCursors' | 'killSessions';
/** The privilege that each command needs for the operations of other users; nobody needs one for their own. */
const privilegeFor: Record<Kill | 'currentOp', string> = { killOp: 'killop', killCursors: 'killAnyCursor', killSessions: 'killAnySession', currentOp: 'inprog' };

export function createControl(client: MongoClient, node: string, clock: Clock): Control {
  /** The connection that carried the last look, and the process that it is known to lead to. */
  let lookConnection: string | null = null;
  let identity: { connection: string; process: ProcessIdentity } | null = null;
  let allUsers = true;

  client.on('commandStarted', (event) => {
    if (event.commandName === 'aggregate' || event.commandName === 'hello') lookConnection = `${event.connectionId}/${event.serverConnectionId}`;
  });

  async function command(document: Document, database = 'admin'): Promise<Document> {
    return await client.db(database).command({ ...document, comment: controlComment, maxTimeMS: controlTimeoutMs }, { promoteLongs: false });
  }

  async function currentOp(pipelineFor: (allUsers: boolean) => Document[]): Promise<Document[]> {
    const ask = () => command({ aggregate: 1, pipeline: pipelineFor(allUsers), cursor: { batchSize: 100_000 } });
    const reply = await ask().catch((error: unknown) => {
      if (!(allUsers && isUnauthorized(error))) throw error;
      // A user without inprog sees its own operations, which are all that it may kill.
      allUsers = false;
      return ask();
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

  async function see(pipelineFor: (allUsers: boolean) => Document[]): Promise<Seen> {
    const startedAt = clock.now();
    try {
      const rows = await currentOp(pipelineFor);
      const endedAt = clock.now();
      return { ok: true, times: { node, startedAt, endedAt }, process: await processOf(lookConnection), ownOnly: !allUsers, rows };
    } catch (error) {
      const reason = isUnauthorized(error) ? `the privilege ${privilegeFor['currentOp']} is missing` : messageOf(error);
      return { ok: false, times: { node, startedAt, endedAt: clock.now() }, reason };
    }
  }

  async function send(kill: Kill, document: Document, database = 'admin'): Promise<KillReply> {
    try {
      await command(document, database);
      return { refused: false };
    } catch (error) {
      if (!isUnauthorized(error)) return { refused: false, error: messageOf(error) };
      const missing = privilegeFor[kill];
      // The server's own message repeats the whole command, and names no privilege.
      return { refused: true, missing, error: `not authorized (13): the privilege ${missing} is missing, or the operation had just ended` };
    }
  }

  return {
    async warm() {
      await client.connect();
      await processOf(lookConnection);
    },

    async look() {
      const seen = await see(lookPipeline);
      return seen.ok ? { ...seen.times, ok: true, process: seen.process, ownOnly: seen.ownOnly, hits: hitsOf(seen.rows) } : { ...seen.times, ok: false, reason: seen.reason };
    },

    async survey() {
      const seen = await see(surveyPipeline);
      return seen.ok ? { ...seen.times, ok: true, process: seen.process, ownOnly: seen.ownOnly, rows: surveyRowsOf(node, seen.rows, controlAppName) } : { ...seen.times, ok: false, reason: seen.reason };
    },

    async kill(sighting) {
      if (sighting.kind === 'operation') return await send('killOp', { killOp: 1, op: sighting.opid });
      const dot = sighting.namespace.indexOf('.');
      return await send('killCursors', { killCursors: sighting.namespace.slice(dot + 1), cursors: [sighting.cursorId] }, sighting.namespace.slice(0, dot));
    },

    killSessions: (sessions) => send('killSessions', { killSessions: sessions }),

    async hiddenMembers() {
      const reply = await command({ replSetGetConfig: 1 }).catch((error: unknown) => {
        throw isUnauthorized(error) ? new Error('the privilege replSetGetConfig is missing', { cause: error }) : error;
      });
      const { members } = reply['config'] as { members: { host: string; hidden?: boolean; arbiterOnly?: boolean }[] };
      return members.filter(({ hidden, arbiterOnly }) => hidden === true && arbiterOnly !== true).map(({ host }) => host);
    },

    close: () => client.close(),
  };
}

function isUnauthorized(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === unauthorized;
}
