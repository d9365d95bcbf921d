/** A database that is down when the server starts, or goes down later, and comes back: the server stays, and says what is known. */
import { MongoMemoryServer } from 'mongodb-memory-server-core';
import { MongoClient } from 'mongodb';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { sleeping } from '../support/checked.js';
import { eventually, taggedAs } from '../support/mongo.js';
import { isListed } from '../support/processes.js';
import { type TestServer, startServer } from '../support/server.js';

let database: MongoMemoryServer;
let uri: string;
let server: TestServer | undefined;

beforeEach(async () => {
  database = await MongoMemoryServer.create({ instance: { storageEngine: 'wiredTiger' } });
  uri = database.getUri();
  const client = new MongoClient(uri);
  await client.db('app').collection<{ _id: number }>('things').insertMany([{ _id: 1 }, { _id: 2 }]);
  await client.close();
});
afterEach(async () => {
  await server?.close();
  server = undefined;
  await database.stop();
});

const down = () => database.stop({ doCleanup: false });
async function crash(): Promise<void> {
  const pid = database.instanceInfo?.instance.mongodProcess?.pid ?? 0;
  process.kill(pid, 'SIGKILL');
  await eventually('the mongod is dead', () => !isListed(pid));
  await down();
}
/** On the same port, with the same data. */
const up = () => database.start(true);
const count = { database: 'app', collection: 'things', pipeline: [{ $count: 'n' }] };

it('a database that is down does not stop the start; calls say so in bounded time; and when it comes back, they work', async () => {
  await down();
  server = await startServer({ uri });
  const { call, client } = server;
  expect((await client.listTools()).tools.length).toBeGreaterThan(5);
  const since = performance.now();
  const answers = await Promise.all([call('run', count), call('operations'), call('status', { id: '0'.repeat(26) }), call('kill', { id: '0'.repeat(26) })]);
  expect(performance.now() - since).toBeLessThan(15_000);
  for (const answer of answers) {
    expect(answer.error).toMatchObject({ code: 'unreachable' });
    expect(answer.error.message).toContain(new URL(uri).host);
  }
  await up();
  expect(await eventually('a run works', async () => {
    const answer = await call('run', { ...count, startAnother: true });
    return answer.outcome === 'succeeded' ? answer.documents : null;
  }, 20_000)).toEqual([{ n: 2 }]);
});

it('a database that crashes in the middle of an operation and comes back is used again, and the operation is not called stopped', async () => {
  server = await startServer({ uri, args: ['--allow-js', '--shutdown-ms', '500'] });
  const { call } = server;
  const { operationId } = await call('run', { database: 'app', collection: 'things', pipeline: sleeping(), waitMs: 0 });
  const witness = new MongoClient(uri);
  await eventually('the database shows it', async () => (await taggedAs(witness, operationId)).length === 1);
  await witness.close();
  await crash();
  const meanwhile = await call('kill', { id: operationId, waitMs: 1_000 });
  expect(meanwhile.verdict).not.toBe('stopped');
  await up();
  expect(await eventually('a run works', async () => {
    const answer = await call('run', { ...count, startAnother: true });
    return answer.outcome === 'succeeded' ? answer.documents : null;
  }, 20_000)).toEqual([{ n: 2 }]);
  const status = await call('status', { id: operationId });
  expect(status.verdict).not.toBe('stopped');
  expect(status.server).not.toBe('running');
});
