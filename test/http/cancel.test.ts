/** Cancels over HTTP: which message, or which closed stream, ends which operation in the database, and which leaves it alone. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpTestServer, ask, modernRequest, startHttpServer } from '../support/http-server.js';
import { type RawSession, beginSession, seen, sleepFor, toolCall } from '../support/http-sessions.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { openStream } from '../support/raw-stream.js';
import { untilGone } from '../support/runaways.js';

const goneWithinMs = 2_000;
let mongo: TestMongo;
let server: HttpTestServer;
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('one').insertOne({});
  server = await startHttpServer({ uri: mongo.uri, args: ['--allow-js', '--max-operations', '30'] });
});
afterAll(async () => {
  await server.stop();
  await mongo.stop();
});

/** No answer of an operation that nobody asked to stop names a cause. */
const untouched = (answer: any) => {
  expect(answer).not.toHaveProperty('cause');
  return answer;
};
const isThere = async (id: string) => (await taggedAs(mongo.client, id)).length > 0;

/** Calls `run` with a long sleep, and comes back when the database shows it. */
async function start(session: RawSession, requestId: string | number, args: Record<string, unknown> = {}) {
  const work = sleepFor(30_000, args);
  const stream = session.call(requestId, 'run', work);
  return { stream, id: await seen(mongo.client, work.comment) };
}

describe('notifications/cancelled of a client of the 2025 era', () => {
  it('kills the operation, ends the stream without an answer, and status of another request says what was proven', async () => {
    const session = await beginSession(server.url);
    const { stream, id } = await start(session, 'first');
    expect(await session.cancel('first')).toBe(202);
    await untilGone(mongo.client, id, goneWithinMs);
    expect(await stream.over).toBe('ended');
    expect(stream.has('first')).toBe(false);
    const expected = { operationId: id, wait: 'cancelled', server: 'ended', outcome: 'killed', verdict: 'stopped', cause: 'client_cancelled' };
    expect(await session.ask('status', { requestId: 'first', waitMs: 5_000 })).toMatchObject(expected);
    expect(await session.ask('status', { id })).toMatchObject(expected);
  });

  it('that comes in the same POST as the call counts as well', async () => {
    const session = await beginSession(server.url, { version: '2025-03-26' });
    const work = sleepFor(30_000);
    const stream = session.post([toolCall(1, 'run', work), { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }]);
    expect(await stream.over).toBe('ended');
    const ended = await session.ask('status', { requestId: 1, waitMs: 5_000 });
    expect(['never_sent', 'killed']).toContain(ended.outcome);
    await untilGone(mongo.client, ended.operationId, goneWithinMs);
  });

  it.each([['of a number', 7, '7'], ['of a text', '8', 8]])('%s does not touch the call whose id only looks the same', async (_which, cancelled, other) => {
    const session = await beginSession(server.url);
    const first = await start(session, cancelled);
    const second = await start(session, other);
    await session.cancel(cancelled);
    await untilGone(mongo.client, first.id, goneWithinMs);
    expect(await session.ask('status', { requestId: other })).toMatchObject({ operationId: second.id, wait: 'waiting', server: 'running' });
    expect(await isThere(second.id)).toBe(true);
    await session.cancel(other);
    await untilGone(mongo.client, second.id, goneWithinMs);
  });

  it('from another session, with the very id of the call or with any other, does nothing', async () => {
    const session = await beginSession(server.url);
    const stranger = await beginSession(server.url);
    const { id, stream } = await start(session, 'shared');
    const own = await start(stranger, 'shared-too');
    for (const requestId of ['shared', 'no-such-call', 0]) expect(await stranger.cancel(requestId)).toBe(202);
    // Nor does the session's own cancel of a request that is not its own.
    expect(await session.cancel('shared-too')).toBe(202);
    for (const [asker, requestId, operationId] of [[session, 'shared', id], [stranger, 'shared-too', own.id]] as const) {
      expect(untouched(await asker.ask('status', { requestId, waitMs: 300 }))).toMatchObject({ operationId, wait: 'waiting', server: 'running', outcome: null });
      expect(await isThere(operationId)).toBe(true);
    }
    expect(stream.has('shared')).toBe(false);
    await Promise.all([session.end(), stranger.end()]);
  });

  it('that comes after the answer changes nothing', async () => {
    const session = await beginSession(server.url);
    const work = sleepFor(30_000, { waitMs: 0 });
    const stream = session.call(1, 'run', work);
    const { operationId } = (await stream.answer(1)).result.structuredContent;
    expect(await session.cancel(1)).toBe(202);
    expect(untouched(await session.ask('status', { id: operationId, waitMs: 300 }))).toMatchObject({ wait: 'detached', server: 'running' });
    expect(await isThere(operationId)).toBe(true);
    expect(await session.end()).toBe(200);
    await untilGone(mongo.client, operationId, goneWithinMs);
  });
});

describe('in a batch of two calls', () => {
  const batch = async (ms: number) => {
    const session = await beginSession(server.url, { version: '2025-03-26' });
    const [long, other] = [sleepFor(30_000), sleepFor(ms)];
    const stream = session.post([toolCall('long', 'run', long), toolCall('other', 'run', other)]);
    return { session, stream, long: await seen(mongo.client, long.comment), other: await seen(mongo.client, other.comment) };
  };

  it('one is cancelled: the other is answered, and then the stream ends', async () => {
    const { session, stream, long } = await batch(1_500);
    await session.cancel('long');
    await untilGone(mongo.client, long, goneWithinMs);
    expect((await stream.answer('other')).result.structuredContent).toMatchObject({ outcome: 'succeeded', returned: 1 });
    expect(await stream.over).toBe('ended');
    expect(stream.has('long')).toBe(false);
  });

  it('one is answered, and then the other is cancelled: the stream ends', async () => {
    const { session, stream, long } = await batch(500);
    await stream.answer('other');
    await session.cancel('long');
    await untilGone(mongo.client, long, goneWithinMs);
    expect(await stream.over).toBe('ended');
  });

  it('both are cancelled: the stream ends without an answer', async () => {
    const { session, stream, long, other } = await batch(30_000);
    await session.cancel('long');
    await untilGone(mongo.client, long, goneWithinMs);
    expect(await isThere(other)).toBe(true);
    await session.cancel('other');
    await untilGone(mongo.client, other, goneWithinMs);
    expect(await stream.over).toBe('ended');
    expect(stream.events.filter(({ message }) => message !== undefined)).toEqual([]);
  });
});

describe('DELETE of a session', () => {
  it('kills what waits, what was handed over, its tasks and what waits for a place, and nothing of another session', async () => {
    const session = await beginSession(server.url);
    const stranger = await beginSession(server.url);
    const waiting = await start(session, 1);
    const detached = await start(session, 2, { waitMs: 0 });
    const task = await session.request('tools/call', { name: 'run', arguments: sleepFor(30_000), task: {} });
    const { taskId } = task.result.task;
    await eventually('the task runs', () => isThere(taskId));
    const foreign = [await start(stranger, 1), await start(stranger, 2, { waitMs: 0 })];
    expect(await session.end()).toBe(200);
    for (const id of [waiting.id, detached.id, taskId]) await untilGone(mongo.client, id, goneWithinMs);
    expect(await waiting.stream.over).toBe('ended');
    expect(await session.get().response).toMatchObject({ status: 404 });
    for (const { id } of foreign) expect(untouched(await stranger.ask('status', { id, waitMs: 200 }))).toMatchObject({ operationId: id, server: 'running' });
    for (const { id } of foreign) expect(await isThere(id)).toBe(true);
    expect(await stranger.end()).toBe(200);
    for (const { id } of foreign) await untilGone(mongo.client, id, goneWithinMs);
  });

  it('keeps what waits for a place from ever being sent', async () => {
    const narrow = await startHttpServer({ uri: mongo.uri, args: ['--allow-js', '--max-operations', '1'] });
    try {
      const session = await beginSession(narrow.url);
      const stranger = await beginSession(narrow.url);
      const running = await start(stranger, 1);
      const work = sleepFor(30_000);
      const queued = session.call(1, 'run', work);
      await eventually('it waits for a place', async () => (await session.ask('operations')).load.queued === 1);
      await session.end();
      expect(await queued.over).toBe('ended');
      await eventually('it has left the queue', async () => (await stranger.ask('operations')).load.queued === 0);
      await stranger.cancel(1);
      await untilGone(mongo.client, running.id, goneWithinMs);
      // The place is free: what was to be sent would be there before this answer.
      const next = await stranger.ask('run', sleepFor(100));
      expect(next).toMatchObject({ outcome: 'succeeded' });
    } finally {
      expect((await narrow.stop()).code).toBe(0);
    }
  });
});

describe('a client of 2026-07-28', () => {
  const call = (args: Record<string, unknown>) => openStream(server.url, modernRequest(1, 'tools/call', { name: 'run', arguments: args }));
  const status = async (id: string, waitMs = 5_000) => (await ask(server.url, modernRequest(2, 'tools/call', { name: 'status', arguments: { id, waitMs } }))).result.structuredContent;

  it('that closes the response stream kills the operation, verified', async () => {
    const work = sleepFor(30_000);
    const stream = call(work);
    const id = await seen(mongo.client, work.comment);
    const startedAt = performance.now();
    stream.cut();
    await untilGone(mongo.client, id, goneWithinMs);
    expect(performance.now() - startedAt).toBeLessThan(goneWithinMs);
    expect(await status(id)).toMatchObject({ wait: 'cancelled', outcome: 'killed', verdict: 'stopped', cause: 'stream_closed' });
  });

  it('that sends notifications/cancelled is not heard: the stream is what counts', async () => {
    const work = sleepFor(1_500);
    const stream = call(work);
    const id = await seen(mongo.client, work.comment);
    const notification = modernRequest(1, 'notifications/cancelled', { requestId: 1 });
    const { id: _id, ...message } = JSON.parse(notification.body as string) as { id: unknown };
    await (await fetch(server.url, { ...notification, body: JSON.stringify(message) })).text();
    expect(await isThere(id)).toBe(true);
    expect(untouched((await stream.answer(1)).result.structuredContent)).toMatchObject({ operationId: id, outcome: 'succeeded' });
    expect(await stream.over).toBe('ended');
  });

  it('that closes the stream after the handle has come leaves the task alone', async () => {
    const stream = call(sleepFor(30_000, { waitMs: 0 }));
    const { taskId } = (await stream.answer(1)).result;
    expect(await stream.over).toBe('ended');
    stream.cut();
    expect(untouched(await status(taskId, 0))).toMatchObject({ wait: 'detached', server: 'running' });
    expect(await isThere(taskId)).toBe(true);
    await ask(server.url, modernRequest(3, 'tasks/cancel', { taskId }));
    await untilGone(mongo.client, taskId, goneWithinMs);
  });
});
