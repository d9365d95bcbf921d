import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { encodeId } from '../../src/domain/ids.js';
import { formatTag, parseTag } from '../../src/domain/tag.js';
import { type TestMongo, eventually, running, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

const sleeping = (ms: number) => [{ $match: { $expr: { $function: { body: `function(){sleep(${ms});return true}`, args: [], lang: 'js' } } } }];
const database = 'app';
let mongo: TestMongo;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db(database).collection('two').insertMany([{}, {}]);
  await mongo.client.db(database).collection<{ _id: number }>('many').insertMany(Array.from({ length: 20_000 }, (_, i) => ({ _id: i })));
  server = await startServer({ uri: mongo.uri, args: ['--allow-js'] });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

afterEach(async () => {
  for (const row of await tagged(mongo.client)) await mongo.client.db('admin').command({ killOp: 1, op: row['opid'] });
  await eventually('nothing is left for the next test', async () => (await tagged(mongo.client)).length === 0);
});

const startSlow = async () => {
  const handle = await server.call('run', { database, collection: 'two', pipeline: sleeping(30_000), waitMs: 50, startAnother: true });
  const [row] = await eventually('the database shows it', async () => {
    const rows = await taggedAs(mongo.client, handle.operationId);
    return rows.length > 0 && rows;
  });
  return { id: handle.operationId as string, tag: row?.['command']?.comment as string };
};

/** Somebody who writes a tag by hand. */
function forge(tag: string, parts: object): string {
  const real = parseTag(tag);
  if (real === null) throw new Error('not a tag');
  return formatTag({ ...real, ...parts });
}

async function runAsStranger(client: MongoClient, comment: string): Promise<{ over: Promise<unknown> }> {
  const over = client.db(database).collection('two').aggregate(sleeping(30_000), { comment }).toArray().catch((error: unknown) => error);
  await eventually('the stranger runs', async () => (await running(client, comment)).length > 0);
  return { over };
}

describe('an operation of another process', () => {
  it('that is read in quick batches is never called gone because many ask at once', async () => {
    const { tag } = await startSlow();
    const operationId = encodeId(randomBytes(26), 26);
    const comment = forge(tag, { instance: encodeId(randomBytes(10), 10), operationId });
    const cursor = mongo.client.db(database).collection('many').aggregate([{ $unionWith: 'many' }, { $unionWith: 'many' }], { batchSize: 2, comment });
    let reading = true;
    let read = 0;
    const reader = (async () => {
      for await (const document of cursor) {
        if (!reading) break;
        read += document === null ? 0 : 1;
      }
    })();
    await eventually('it is read', () => read > 10);
    for (let round = 0; round < 15; round += 1) {
      const before = read;
      const answers = await Promise.all(Array.from({ length: 12 }, () => server.call('status', { id: operationId })));
      expect(read).toBeGreaterThan(before);
      for (const answer of answers) expect(answer).toMatchObject({ outcome: null });
    }
    reading = false;
    await reader;
    await cursor.close();
  });

  it('with our operation id in a tag of another principal is neither killed nor taken for ours', async () => {
    const { id, tag } = await startSlow();
    const comment = forge(tag, { instance: encodeId(randomBytes(10), 10), principal: encodeId(randomBytes(8), 8) });
    const stranger = await runAsStranger(mongo.client, comment);
    const killed = await server.call('kill', { id });
    expect(killed).toMatchObject({ verdict: 'stopped' });
    expect(killed.kill.sent).toHaveLength(1);
    const [row] = await running(mongo.client, comment);
    expect(row).toMatchObject({ active: true });
    await mongo.client.db('admin').command({ killOp: 1, op: row?.['opid'] });
    await stranger.over;
  });

  it('with a comment of megabytes that begins like a tag does not blind the looks', async () => {
    const { id } = await startSlow();
    const comment = `mongo-leash.1.${'x'.repeat(9_000_000)}`;
    const find = async () => await mongo.client.db('admin').aggregate([{ $currentOp: {} }, { $match: { 'command.comment': { $regex: '^mongo-leash\\.1\\.xxx' } } }, { $project: { opid: 1 } }]).toArray();
    const strangers = [1, 2].map(() => mongo.client.db(database).collection('two').aggregate(sleeping(30_000), { comment }).toArray().catch((error: unknown) => error));
    await eventually('both strangers run', async () => (await find()).length === 2);
    const killed = await server.call('kill', { id, waitMs: 5_000 });
    expect(killed).toMatchObject({ verdict: 'stopped' });
    for (const row of await find()) await mongo.client.db('admin').command({ killOp: 1, op: row['opid'] });
    await Promise.all(strangers);
  });
});

describe('a cancel', () => {
  it('while a call is being handed over stops the operation', async () => {
    const ids = new Set<string>();
    for (let round = 0; round < 25; round += 1) {
      const cancel = new AbortController();
      const call = server.call('run', { database, collection: 'two', pipeline: sleeping(30_000), waitMs: 120, startAnother: true }, cancel.signal).catch(() => null);
      await delay(112 + (round % 12));
      cancel.abort();
      const answer = await call;
      // Answered before the cancel was heard: it is the caller's by its id.
      if (answer !== null) ids.add(answer.operationId);
    }
    await eventually('only what was handed over runs', async () => (await tagged(mongo.client)).every((row) => ids.has(parseTag(row['command']?.comment)?.operationId ?? '')));
    for (const id of ids) expect(await server.call('kill', { id })).toMatchObject({ verdict: expect.stringMatching(/stopped|ended_first/) });
  });
});

describe('a verdict', () => {
  it('is pending, and says nothing else, when no time to verify is given', async () => {
    const { id } = await startSlow();
    const killed = await server.call('kill', { id, waitMs: 0 });
    expect(killed).toMatchObject({ verdict: 'pending', kill: { verdict: 'pending', after: [] } });
    await eventually('the kill goes on and is proven', async () => (await server.call('status', { id })).verdict === 'stopped');
    expect(await taggedAs(mongo.client, id)).toEqual([]);
  });

  it('about a node that froze before it could be asked is unknown, not still_running', async () => {
    const { id } = await startSlow();
    await server.call('status', { id });
    mongo.freeze(mongo.hosts[0] ?? '');
    try {
      const killed = await server.call('kill', { id, waitMs: 1_000 });
      expect(killed).toMatchObject({ verdict: 'unknown', kill: { verdict: 'unknown' } });
    } finally {
      mongo.thaw(mongo.hosts[0] ?? '');
    }
    await eventually('it is proven after the thaw', async () => (await server.call('status', { id })).verdict === 'stopped', 20_000);
  });
});

describe('result', () => {
  it('of an operation that failed does not present what had been read as its result', async () => {
    const failed = await server.callRaw('run', { database, collection: 'many', pipeline: [{ $sort: { _id: 1 } }, { $project: { x: { $divide: [1, { $subtract: [{ $numberInt: '5000' }, '$_id'] }] } } }], limit: 10_000 });
    expect(failed.isError).toBe(true);
    const { operationId, outcome } = failed.structuredContent;
    expect(outcome).toBe('failed');
    const answer = await server.call('result', { id: operationId });
    expect(answer.more).not.toBe(false);
    expect(answer.next).toMatch(/did not come to its end|Go on at offset/);
  });
});

it('a message over the limit ends the process, its operations killed and proven', async () => {
  const victim = await startServer({ uri: mongo.uri, args: ['--allow-js'] });
  const handle = await victim.call('run', { database, collection: 'two', pipeline: sleeping(30_000), waitMs: 50 });
  await eventually('the database shows it', async () => (await taggedAs(mongo.client, handle.operationId)).length > 0);
  const chunk = 'x'.repeat(4_194_304);
  for (let i = 0; i < 3; i += 1) victim.process.stdin?.write(chunk);
  expect(await victim.exited).toMatchObject({ code: 0 });
  expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);
});
