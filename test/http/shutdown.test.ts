/** The end of the process over HTTP: no new work, the answers to what is under way, proof, and an exit in time. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reportOf, untilNoneIsLeft } from '../support/busy-server.js';
import { type HttpTestServer, modernRequest, startHttpServer } from '../support/http-server.js';
import { beginSession, seen, sleepFor } from '../support/http-sessions.js';
import { type TestMongo, eventually, startMongo, tagged } from '../support/mongo.js';
import { openStream } from '../support/raw-stream.js';

const shutdownMs = 3_000;
let mongo: TestMongo;
let host: string;
beforeAll(async () => {
  mongo = await startMongo();
  host = mongo.hosts[0] ?? '';
  await mongo.client.db('app').collection('one').insertOne({});
});
afterAll(() => mongo.stop());

/** A server with a call under way in each era, and one that was handed over, all of them seen in the database. */
async function startBusy() {
  const server = await startHttpServer({ uri: mongo.uri, args: ['--allow-js', '--shutdown-ms', String(shutdownMs)] });
  const session = await beginSession(server.url);
  const [first, second, third] = [sleepFor(60_000), sleepFor(60_000), sleepFor(60_000, { waitMs: 0 })];
  const legacy = session.call('call', 'run', first);
  const modern = openStream(server.url, modernRequest('call', 'tools/call', { name: 'run', arguments: second }));
  await session.ask('run', third);
  const ids = [await seen(mongo.client, first.comment), await seen(mongo.client, second.comment), await seen(mongo.client, third.comment)];
  return { server, session, legacy, modern, ids };
}

const statusAt = async (server: HttpTestServer, path: string) => (await fetch(server.at(path))).status;
const verdictsOf = (server: HttpTestServer) => Object.fromEntries(reportOf(server)['operations'].map(({ operationId, verdict }: any) => [operationId, verdict])) as Record<string, string>;

describe('SIGTERM with calls under way', () => {
  it('kills them, answers them, and ends with 0', async () => {
    const { server, legacy, modern, ids } = await startBusy();
    const since = performance.now();
    const ended = server.stop();
    for (const [i, stream] of [legacy, modern].entries()) {
      expect((await stream.answer('call')).result.structuredContent).toMatchObject({ operationId: ids[i], outcome: 'killed', verdict: 'stopped', cause: 'shutdown' });
      expect(await stream.over).toBe('ended');
    }
    expect(await untilNoneIsLeft(mongo.client, since, 2_000)).toBeLessThan(2_000);
    const { code, elapsedMs } = await ended;
    expect(code).toBe(0);
    expect(elapsedMs).toBeLessThan(shutdownMs + 1_000);
    expect(reportOf(server)).toMatchObject({ shutdown: 'SIGTERM', allProven: true });
    expect(verdictsOf(server)).toEqual(Object.fromEntries(ids.map((id) => [id, 'stopped'])));
  });

  it('takes no new work while it lasts: 503, and readyz says so, while healthz says that the process lives', async () => {
    const { server, session, legacy, modern, ids } = await startBusy();
    expect(await statusAt(server, '/readyz')).toBe(200);
    // A database that stands still for a moment makes it last.
    mongo.freeze(host);
    const ended = server.stop();
    try {
      await eventually('readyz says that it is shutting down', async () => (await statusAt(server, '/readyz')) === 503);
      expect(await statusAt(server, '/healthz')).toBe(200);
      expect((await session.call(2, 'run', sleepFor(1)).response).status).toBe(503);
      expect((await fetch(server.url, modernRequest(1, 'tools/call', { name: 'run', arguments: sleepFor(1) }))).status).toBe(503);
      await expect(beginSession(server.url)).rejects.toThrow(/503/);
      // What stops something is still taken.
      expect(await session.cancel('call')).toBe(202);
    } finally {
      mongo.thaw(host);
    }
    expect((await modern.answer('call')).result.structuredContent).toMatchObject({ operationId: ids[1], outcome: 'killed', verdict: 'stopped', cause: 'shutdown' });
    // The other one was cancelled meanwhile, so nobody waits for its answer.
    expect(await legacy.over).toBe('ended');
    const { code, elapsedMs } = await ended;
    expect(code).toBe(0);
    expect(elapsedMs).toBeLessThan(shutdownMs + 1_000);
    expect(verdictsOf(server)).toEqual(Object.fromEntries(ids.map((id) => [id, 'stopped'])));
    expect(await tagged(mongo.client)).toEqual([]);
  });

  it('of which nothing can be proven, since the database is frozen, ends in time with 1', async () => {
    const { server, ids } = await startBusy();
    mongo.freeze(host);
    try {
      const { code, elapsedMs } = await server.stop();
      expect(elapsedMs).toBeLessThan(shutdownMs + 1_000);
      expect(code).toBe(1);
      expect(reportOf(server)).toMatchObject({ allProven: false });
      expect(verdictsOf(server)).toEqual(Object.fromEntries(ids.map((id) => [id, 'unknown'])));
    } finally {
      mongo.thaw(host);
    }
    // What was sent before still arrives: the kills do their work after the process.
    await untilNoneIsLeft(mongo.client, performance.now(), 5_000);
  });
});

it('with streams open and nothing under way it ends with 0, soon', async () => {
  const server = await startHttpServer({ uri: mongo.uri });
  const session = await beginSession(server.url);
  const stream = session.get();
  expect((await stream.response).status).toBe(200);
  const { code, elapsedMs } = await server.stop();
  expect(code).toBe(0);
  expect(elapsedMs).toBeLessThan(2_000);
  await stream.over;
});
