/** Clients of the 2025 era that lose a stream: the operation goes on, and its answer is still there for them, and for nobody else. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpTestServer, startHttpServer } from '../support/http-server.js';
import { type RawSession, beginSession, joinSession, seen, sleepFor, toolCall } from '../support/http-sessions.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { type RawStream } from '../support/raw-stream.js';
import { untilGone } from '../support/runaways.js';
import { startProxy } from '../support/tcp-proxy.js';

let mongo: TestMongo;
let server: HttpTestServer;
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('one').insertOne({});
  server = await startHttpServer({ uri: mongo.uri, args: ['--allow-js'] });
});
afterAll(async () => {
  await server.stop();
  await mongo.stop();
});

/** Opens the rest of a stream, as a client would: again while the server has not noticed yet that the first one is cut. */
async function resume(session: RawSession, lastEventId: string | undefined): Promise<RawStream> {
  return await eventually('the server knows that the stream was cut', async () => {
    const rest = session.get(lastEventId);
    return (await rest.response).status !== 409 && rest;
  });
}

/** A call whose stream is cut as soon as the database shows its operation. */
async function lose(session: RawSession, requestId: string | number, args: Record<string, unknown>, message: (work: Record<string, unknown>) => object = (work) => toolCall(requestId, 'run', work)) {
  const work = sleepFor(1_500, args);
  const stream = session.post(message(work));
  const lastEventId = await stream.firstEventId();
  const id = await seen(mongo.client, work.comment);
  stream.cut();
  return { id, lastEventId };
}

describe('a call whose stream is cut', () => {
  it('goes on in the database, and is answered on the stream that is opened for the rest', async () => {
    const session = await beginSession(server.url);
    const { id, lastEventId } = await lose(session, 1, {});
    const rest = await resume(session, lastEventId);
    expect(await taggedAs(mongo.client, id)).toHaveLength(1);
    expect((await rest.answer(1)).result.structuredContent).toMatchObject({ operationId: id, outcome: 'succeeded', returned: 1 });
    expect(await rest.over).toBe('ended');
  });

  it('may be answered while nobody listens: the answer is kept, and status knows it by the id and by the request', async () => {
    const session = await beginSession(server.url);
    const { id, lastEventId } = await lose(session, 'a call', {});
    const ended = await session.ask('status', { requestId: 'a call', waitMs: 10_000 });
    expect(ended).toMatchObject({ operationId: id, outcome: 'succeeded' });
    expect(ended).not.toHaveProperty('cause');
    expect(await session.ask('status', { id })).toMatchObject({ operationId: id, outcome: 'succeeded', wait: 'answered' });
    for (let times = 0; times < 2; times += 1) {
      const rest = await resume(session, lastEventId);
      expect((await rest.answer('a call')).result.structuredContent).toMatchObject({ operationId: id, outcome: 'succeeded' });
      expect(await rest.over).toBe('ended');
    }
  });

  it('is handed over by its id when the time to wait passes while nobody listens, and still runs', async () => {
    const session = await beginSession(server.url);
    const { id, lastEventId } = await lose(session, 1, { waitMs: 600, pipeline: sleepFor(30_000)['pipeline'] });
    await eventually('it was handed over', async () => (await session.ask('status', { id })).wait === 'detached');
    const rest = await resume(session, lastEventId);
    expect((await rest.answer(1)).result.structuredContent).toMatchObject({ operationId: id, wait: 'detached', server: 'running', outcome: null });
    expect(await taggedAs(mongo.client, id)).toHaveLength(1);
    await session.end();
    await untilGone(mongo.client, id, 2_000);
  });

  it('can still be cancelled by its request', async () => {
    const session = await beginSession(server.url);
    const { id, lastEventId } = await lose(session, 1, { pipeline: sleepFor(30_000)['pipeline'] });
    await session.cancel(1);
    await untilGone(mongo.client, id, 2_000);
    expect(await session.ask('status', { requestId: 1, waitMs: 5_000 })).toMatchObject({ operationId: id, outcome: 'killed', cause: 'client_cancelled' });
    // Nothing will ever come: the status that clients do not try again after.
    expect((await session.get(lastEventId).response).status).toBe(405);
  });

  it('is resumed behind the last event that was heard: what came before is not repeated', async () => {
    const session = await beginSession(server.url);
    const work = sleepFor(3_500);
    const stream = session.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'run', arguments: work, _meta: { progressToken: 'p' } } });
    const progressIn = (events: typeof stream.events) => events.filter(({ message }) => message?.method === 'notifications/progress');
    const heard = await eventually('progress is reported', () => progressIn(stream.events)[0], 20_000);
    stream.cut();
    const rest = await resume(session, heard.id);
    await rest.answer(1);
    const told = progressIn(rest.events).map(({ message }) => message.params.progress as number);
    expect(told.length).toBeGreaterThan(0);
    for (const progress of told) expect(progress).toBeGreaterThan(heard.message.params.progress as number);
    expect(rest.events.map(({ id }) => id)).not.toContain(heard.id);
  });
});

describe('what a session may resume', () => {
  it('is its own: another session has nothing under that event id, and another one gets nothing of it by knowing it', async () => {
    const session = await beginSession(server.url);
    const stranger = await beginSession(server.url);
    const { id, lastEventId } = await lose(session, 1, {});
    expect((await stranger.get(lastEventId).response).status).toBe(405);
    expect((await stranger.get('no-such-event').response).status).toBe(405);
    expect((await joinSession(server.url, 'no-such-session').get(lastEventId).response).status).toBe(404);
    expect((await (await resume(session, lastEventId)).answer(1)).result.structuredContent).toMatchObject({ operationId: id, outcome: 'succeeded' });
  });

  it('is forgotten with it', async () => {
    const session = await beginSession(server.url);
    const { lastEventId } = await lose(session, 1, {});
    await session.end();
    expect((await session.get(lastEventId).response).status).toBe(404);
  });
});

describe('the 1.x client', () => {
  /** A client that counts what it sends, over its own way to the server. */
  async function connect(url: URL) {
    const gets: { lastEventId: string | null; status: Promise<number> }[] = [];
    const transport = new StreamableHTTPClientTransport(url, {
      async fetch(target, init) {
        const answer = fetch(target, init);
        if (init?.method === 'GET') gets.push({ lastEventId: new Headers(init.headers).get('last-event-id'), status: answer.then(({ status }) => status, () => 0) });
        return await answer;
      },
    });
    const client = new Client({ name: 'test', version: '1.0.0' });
    await client.connect(transport);
    return { client, gets };
  }

  it('whose connections all break comes back by itself, and gets the answer to its call', async () => {
    const proxy = await startProxy(server.url.host);
    const { client, gets } = await connect(new URL(`http://${proxy.host}/mcp`));
    const work = sleepFor(1_500);
    // A client can come back to a stream of which it has heard: without a first event there is nothing to come back to.
    let heard: () => void = () => undefined;
    const hasHeard = new Promise<void>((resolve) => { heard = resolve; });
    const call = client.callTool({ name: 'run', arguments: work }, undefined, { timeout: 30_000, onresumptiontoken: () => { heard(); } });
    const id = await seen(mongo.client, work.comment);
    await hasHeard;
    for (const wire of proxy.wires()) wire.cut('rst');
    expect((await call).structuredContent).toMatchObject({ operationId: id, outcome: 'succeeded' });
    expect(gets.some(({ lastEventId }) => lastEventId !== null)).toBe(true);
    await client.close();
    await proxy.close();
  });

  it('that cancels a call is told once that nothing comes any more, and does not ask again', async () => {
    const { client, gets } = await connect(server.url);
    const abort = new AbortController();
    const work = sleepFor(30_000);
    const call = client.callTool({ name: 'run', arguments: work }, undefined, { signal: abort.signal }).catch((error: unknown) => error);
    const id = await seen(mongo.client, work.comment);
    abort.abort();
    await call;
    await untilGone(mongo.client, id, 2_000);
    const again = () => gets.filter(({ lastEventId }) => lastEventId !== null);
    await eventually('it asks for the rest of the stream', () => again().length === 1);
    expect(await again()[0]?.status).toBe(405);
    // Twice the time after which it would try again, by the word of the server.
    await new Promise((resolve) => { setTimeout(resolve, 2_000); });
    expect(gets).toHaveLength(2);
    await client.close();
  });
});
