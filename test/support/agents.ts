/** Operations as servers on other machines would run them: under a tag, on a connection of their own. */

import { randomBytes } from 'node:crypto';
import { type Document, MongoClient } from 'mongodb';
import { encodeId, idLengths } from '../../src/domain/ids.js';
import { type Tag, formatTag, principalHash } from '../../src/domain/tag.js';
import { sleeping } from './checked.js';
import { eventually, running } from './mongo.js';

export interface AgentOperation {
  tag: Tag;
  id: string;
  comment: string;
  /** Settles with the server's error code, or `ok`. */
  ended: Promise<number | 'ok'>;
}

export interface Agent {
  client: MongoClient;
  /** Starts it and comes back when the witness sees it. */
  start(witness: MongoClient, options?: StartOptions): Promise<AgentOperation>;
  /** The same without a tag, under this comment. */
  startUntagged(witness: MongoClient, comment: string, options?: StartOptions): Promise<{ ended: Promise<number | 'ok'>; opid: number }>;
  close(): Promise<void>;
}

export interface StartOptions {
  pipeline?: Document[];
  tag?: Partial<Tag>;
  database?: string;
  collection?: string;
  options?: Document;
}

const newId = (length: number) => encodeId(randomBytes(length), length);

export async function createAgent(uri: string, appName = 'an agent elsewhere'): Promise<Agent> {
  const client = new MongoClient(uri, { appName, retryReads: false, retryWrites: false });
  await client.connect();
  const send = ({ pipeline = sleeping(), database = 'app', collection = 'things', options = {} }: StartOptions, comment: string) =>
    client.db(database).collection(collection).aggregate(pipeline, { comment, ...options }).toArray()
      .then(() => 'ok' as const, (error: { code?: number }) => error.code ?? -1);
  const seen = (witness: MongoClient, comment: string) => eventually(`the database shows ${comment}`, async () => (await running(witness, comment))[0]);
  return {
    client,
    async start(witness, options = {}) {
      const tag: Tag = { instance: newId(idLengths.instance), operationId: newId(idLengths.operation), principal: principalHash('agent@elsewhere'), session: newId(idLengths.session), kind: 'r', request: 'n:1', own: '', ...options.tag };
      const comment = formatTag(tag);
      const ended = send(options, comment);
      await seen(witness, comment);
      return { tag, id: tag.operationId, comment, ended };
    },
    async startUntagged(witness, comment, options = {}) {
      const ended = send(options, comment);
      return { ended, opid: Number((await seen(witness, comment))['opid']) };
    },
    close: () => client.close(),
  };
}
