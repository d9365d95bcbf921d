/** The end of sessions that nobody ends: of clients that vanish, that come back, and that are only quiet. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { untilNoneIsLeft } from '../support/busy-server.js';
import { type HttpTestServer, startHttpServer } from '../support/http-server.js';
import { type RawSession, beginSession, idsOf, joinSession, seen, sleepFor } from '../support/http-sessions.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { untilGone } from '../support/runaways.js';

const graceMs = 2_000;
const idleMs = 2_000;
/** How much later than its time a session may be ended, and its operations gone, on a busy machine. */
const lateMs = 4_000;
const clientPath = fileURLToPath(new URL('../support/vanishing-client.mjs', import.meta.url));

let mongo: TestMongo;
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('one').insertOne({});
});
afterAll(() => mongo.stop());

const isThere = async (id: string) => (await taggedAs(mongo.client, id)).length > 0;
/** Sessions that the server has ended so far, with its reasons. */
const ended = (server: HttpTestServer) => server.stderr.filter((line) => line.includes('"session ended"')).map((line) => (JSON.parse(line) as { reason: string }).reason);
const statusOf = async (session: RawSession) => (await session.post({ jsonrpc: '2.0', id: 'ping', method: 'ping' }).response).status;

async function handOver(session: RawSession, ms = 30_000): Promise<string> {
  const handle = await session.ask('run', sleepFor(ms, { waitMs: 0 }));
  await eventually('the database shows it', () => isThere(handle.operationId));
  return handle.operationId as string;
}

describe('a client that vanishes', () => {
  let server: HttpTestServer;
  beforeAll(async () => {
    server = await startHttpServer({ uri: mongo.uri, args: ['--allow-js', '--session-grace-ms', String(graceMs)] });
  });
  afterAll(() => server.stop());

  it('by SIGKILL is waited for, and then its session has ended and its operations are killed', async () => {
    const waiting = sleepFor(60_000);
    const handedOver = sleepFor(60_000, { waitMs: 0 });
    const bystander = await beginSession(server.url);
    const untouched = await handOver(bystander, 60_000);
    const client = spawn(process.execPath, [clientPath, server.url.href, JSON.stringify(waiting), JSON.stringify(handedOver)], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(client.stdout, 'data')) as [Buffer];
    const ids = [await seen(mongo.client, waiting.comment), await seen(mongo.client, handedOver.comment)];
    const killedAt = performance.now();
    client.kill('SIGKILL');
    const lastSeenAt = new Map<string, number>();
    await eventually('its operations are gone', async () => {
      const lookedAt = performance.now() - killedAt;
      const left = [...(await idsOf(mongo.client, waiting.comment)), ...(await idsOf(mongo.client, handedOver.comment))];
      for (const id of left) lastSeenAt.set(id, lookedAt);
      return left.length === 0;
    }, graceMs + lateMs);
    // Not before the time was over: a look some milliseconds before still found them.
    expect(ids.map((id) => (lastSeenAt.get(id) ?? 0) > graceMs * 0.75)).toEqual([true, true]);
    expect(ended(server)).toEqual(['its client went away and did not come back']);
    expect(await statusOf(joinSession(server.url, String(line).trim()))).toBe(404);
    expect(await isThere(untouched)).toBe(true);
    await bystander.end();
  });

  it.each<[string, (session: RawSession) => Promise<unknown>]>([
    ['any request', (session) => statusOf(session)],
    ['a new stream', async (session) => (await session.get().response).status],
  ])('and comes back in time with %s keeps its session and its operations', async (_how, comeBack) => {
    const session = await beginSession(server.url);
    const stream = session.get();
    expect((await stream.response).status).toBe(200);
    const id = await handOver(session);
    const work = sleepFor(30_000);
    const call = session.call('waits', 'run', work);
    const waiting = await seen(mongo.client, work.comment);
    for (const each of [stream, call]) each.cut();
    await delay(graceMs / 2);
    expect(await comeBack(session)).toBe(200);
    await delay(graceMs * 1.5);
    expect(await isThere(id)).toBe(true);
    expect(await isThere(waiting)).toBe(true);
    expect(await session.ask('status', { requestId: 'waits' })).toMatchObject({ operationId: waiting, server: 'running' });
    await session.end();
    for (const each of [id, waiting]) await untilGone(mongo.client, each, 2_000);
  });
});

describe('a client that is only quiet', () => {
  let server: HttpTestServer;
  beforeAll(async () => {
    server = await startHttpServer({ uri: mongo.uri, args: ['--allow-js', '--session-idle-ms', String(idleMs)] });
  });
  afterAll(() => server.stop());
  const endedSince = (from: number) => ended(server).slice(from);

  it('keeps its session while its operation runs, can ask for the end, and loses the session when it stays quiet', async () => {
    const from = ended(server).length;
    const session = await beginSession(server.url);
    const id = await handOver(session, idleMs * 2.5);
    await eventually('it has run to its end', async () => !(await isThere(id)), idleMs * 4);
    expect(endedSince(from)).toEqual([]);
    expect(await session.ask('status', { id, waitMs: 1_000 })).toMatchObject({ outcome: 'succeeded' });
    await eventually('the session is ended', () => endedSince(from).length === 1, idleMs + lateMs);
    expect(endedSince(from)).toEqual(['it was idle']);
    expect(await statusOf(session)).toBe(404);
  });

  it('keeps its session while its stream is open', async () => {
    const from = ended(server).length;
    const session = await beginSession(server.url);
    const stream = session.get();
    await stream.response;
    await delay(idleMs * 2);
    expect(endedSince(from)).toEqual([]);
    expect(await statusOf(session)).toBe(200);
    stream.cut();
    await eventually('the session is ended', () => endedSince(from).length === 1, idleMs + lateMs);
  });

  it('takes no operation with it of a session that is not quiet', async () => {
    const from = ended(server).length;
    const busy = await beginSession(server.url);
    const id = await handOver(busy);
    await beginSession(server.url);
    await eventually('the quiet session is ended', () => endedSince(from).length === 1, idleMs + lateMs);
    expect(await isThere(id)).toBe(true);
    expect(await busy.end()).toBe(200);
    await untilGone(mongo.client, id, 2_000);
  });
});

it('more sessions than there may be are refused, and taken again when one has ended', async () => {
  const server = await startHttpServer({ uri: mongo.uri, args: ['--max-sessions', '2'] });
  try {
    const first = await beginSession(server.url);
    const second = await beginSession(server.url);
    await expect(beginSession(server.url)).rejects.toThrow(/503/);
    expect(await statusOf(second)).toBe(200);
    await first.end();
    const third = await beginSession(server.url);
    expect(await statusOf(third)).toBe(200);
  } finally {
    expect((await server.stop()).code).toBe(0);
    await untilNoneIsLeft(mongo.client, performance.now(), 2_000);
  }
});
