/** Real mongods for tests: started, frozen, restarted and stopped, and a witness with a connection of its own. */

import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { MongoMemoryReplSet } from 'mongodb-memory-server-core';
import { type Document, MongoClient } from 'mongodb';

export interface TestMongo {
  /** A connection string of the replica set. With `auth`, as the root user. */
  uri: string;
  /** `host:port` of each member. */
  hosts: string[];
  /** The same string for another user. */
  uriFor(user: string, password: string): string;
  /** A client of the witness: an independent connection, closed at the end. */
  client: MongoClient;
  /** A direct client to one member, closed at the end. */
  direct(host: string): Promise<MongoClient>;
  /** Process ids of the members, in the order of `hosts`. */
  pid(host: string): number;
  /** The folder that holds a member's data. */
  dbPath(host: string): string;
  freeze(host: string): void;
  thaw(host: string): void;
  restart(host: string): Promise<void>;
  stop(): Promise<void>;
}

export interface TestMongoOptions {
  members?: number;
  auth?: boolean;
  /** Further arguments for each mongod. */
  args?: string[];
}

const root = { user: 'root', password: 'root-secret' };

/** How long a mongod may take to start, in milliseconds: a busy machine takes its time. */
const launchTimeout = 60_000;

/** Starts a replica set on the mongod that the set-up found (MONGOMS_SYSTEM_BINARY). */
export async function startMongo({ members = 1, auth = false, args = [] }: TestMongoOptions = {}): Promise<TestMongo> {
  const set = await MongoMemoryReplSet.create({
    replSet: {
      count: members,
      storageEngine: 'wiredTiger',
      args,
      ...(auth ? { auth: { enable: true, customRootName: root.user, customRootPwd: root.password } } : {}),
    },
    instanceOpts: Array.from({ length: members }, () => ({ storageEngine: 'wiredTiger' as const, args, launchTimeout })),
  });
  const plain = set.getUri();
  const uriFor = (user: string, password: string) => plain.replace('mongodb://', `mongodb://${user}:${password}@`) + (plain.includes('authSource') ? '' : '&authSource=admin');
  const uri = auth ? uriFor(root.user, root.password) : plain;
  const hosts = plain.slice('mongodb://'.length).split('/')[0]?.split(',') ?? [];
  const opened: MongoClient[] = [];
  const open = async (target: string) => {
    const client = new MongoClient(target, { serverSelectionTimeoutMS: 5_000, appName: 'witness' });
    opened.push(client);
    await client.connect();
    return client;
  };
  const client = await open(uri);
  const server = (host: string) => {
    const found = set.servers.find((each) => String(each.instanceInfo?.port) === host.split(':')[1]);
    if (found === undefined) throw new Error(`no member at ${host}`);
    return found;
  };
  const pid = (host: string) => {
    const found = server(host).instanceInfo?.instance.mongodProcess?.pid;
    if (found === undefined) throw new Error(`the member at ${host} does not run`);
    return found;
  };
  const credentials = auth ? `${root.user}:${root.password}@` : '';
  return {
    uri,
    hosts,
    uriFor,
    client,
    direct: (host) => open(`mongodb://${credentials}${host}/?directConnection=true${auth ? '&authSource=admin' : ''}`),
    pid,
    dbPath: (host) => server(host).instanceInfo?.dbPath ?? '',
    freeze(host) {
      process.kill(pid(host), 'SIGSTOP');
      waitUntilStopped(pid(host));
    },
    thaw: (host) => void process.kill(pid(host), 'SIGCONT'),
    async restart(host) {
      const member = server(host);
      // Its data stay: a restart is not a new member.
      await member.stop({ doCleanup: false });
      await member.start(true);
    },
    async stop() {
      await Promise.all(opened.map((each) => each.close()));
      await set.stop({ doCleanup: true });
    },
  };
}

/** The signal returns at once, and threads that are at work stop a moment later: what is sent in between may still be answered. */
function waitUntilStopped(pid: number): void {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(tasks)) return;
  const isStopped = (task: string) => /\) [Tt] /.test(readFileSync(`${tasks}/${task}/stat`, 'utf8'));
  const deadline = Date.now() + 5_000;
  while (!readdirSync(tasks).every(isStopped)) if (Date.now() > deadline) throw new Error(`the process ${pid} did not stop`);
}

/** What runs or idles under a tag of mongo-leash on the node of this client, as the database says. */
export async function tagged(client: MongoClient): Promise<Document[]> {
  const ours = { $regex: '^mongo-leash\\.1\\.' };
  return await client
    .db('admin')
    .aggregate([{ $currentOp: { allUsers: true, idleCursors: true } }, { $match: { $or: [{ 'command.comment': ours }, { 'cursor.originatingCommand.comment': ours }] } }])
    .toArray();
}

/** What runs under any comment equal to this one. */
export async function running(client: MongoClient, comment: string): Promise<Document[]> {
  return await client
    .db('admin')
    .aggregate([{ $currentOp: { allUsers: true, idleCursors: true } }, { $match: { $or: [{ 'command.comment': comment }, { 'cursor.originatingCommand.comment': comment }] } }])
    .toArray();
}

/** Those of `tagged` that belong to one operation. */
export async function taggedAs(client: MongoClient, operationId: string): Promise<Document[]> {
  const comments = (row: Document) => [row['command']?.comment, row['cursor']?.originatingCommand?.comment] as unknown[];
  return (await tagged(client)).filter((row) => comments(row).some((comment) => typeof comment === 'string' && comment.includes(`.${operationId}.`)));
}

/** Ends whatever a test that failed has left under a tag, and comes back when it is gone. */
export async function killTagged(client: MongoClient): Promise<void> {
  await eventually('nothing is left under a tag', async () => {
    const left = await tagged(client);
    for (const { type, opid, ns, cursor } of left) {
      if (type === 'idleCursor') await client.db(String(ns).split('.')[0]).command({ killCursors: String(ns).split('.').slice(1).join('.'), cursors: [cursor.cursorId] });
      else await client.db('admin').command({ killOp: 1, op: opid });
    }
    return left.length === 0;
  }, 30_000);
}

/**
 * Asks again until the answer is there.
 * @throws Error naming what was waited for, when the time is over
 */
export async function eventually<T>(what: string, ask: () => Promise<T | null | undefined | false> | T | null | undefined | false, withinMs = 10_000): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const answer = await ask();
    if (answer !== null && answer !== undefined && answer !== false) return answer;
    if (Date.now() > deadline) throw new Error(`within ${withinMs} ms it did not come true that ${what}`);
    await delay(10);
  }
}
