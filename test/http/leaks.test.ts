/** A thousand cancelled calls in each era: memory, connections and sockets are where they were, and nothing runs. */
import { readdirSync, readlinkSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { untilNoneIsLeft } from '../support/busy-server.js';
import { type HttpTestServer, ask, modernRequest, startHttpServer } from '../support/http-server.js';
import { type RawSession, beginSession, sleepFor } from '../support/http-sessions.js';
import { type TestMongo, eventually, startMongo } from '../support/mongo.js';
import { openStream } from '../support/raw-stream.js';

const calls = 1_000;
/** Calls before the first measurement: what the program compiles and fills once is there then (1.5 MB as measured). */
const warmUp = 400;
/** More than run at once, so that some are cancelled while they wait for their place. */
const atOnce = 20;
const places = 8;
/**
 * Records go this long after the end of their operations. What a call leaves then is its request id and the note that its
 * record has expired (the last 10,000 of a process are kept): 1,000 bytes as measured, evenly.
 * A record takes 4,500, and a call that something holds on to takes more.
 */
const retentionMs = 1_000;
const heapBytesPerCall = 2_000;
/** As the README counts them: one for each place and one more, the two monitors of the node, and two for control. */
const maxConnections = places + 1 + 2 + 2;
/** Longer than records are kept, and than the reply of a killed call is waited for. */
const restMs = 4_000;
const preload = fileURLToPath(new URL('../support/heap-preload.mjs', import.meta.url));

let mongo: TestMongo;
let server: HttpTestServer;
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('one').insertOne({});
  server = await startHttpServer({ uri: mongo.uri, args: ['--allow-js', '--max-requests-per-minute', '1000000', '--max-operations', String(places), '--retention-ms', String(retentionMs)], nodeArgs: ['--expose-gc', '--import', preload] });
});
afterAll(async () => {
  expect((await server.stop()).code).toBe(0);
  await mongo.stop();
});

/** Bytes of the server's heap that a collection leaves. */
async function heapBytes(): Promise<number> {
  const from = server.stderr.length;
  server.process.kill('SIGUSR2');
  return await eventually('the server tells its heap', () => server.stderr.slice(from).map((line) => Number(/"heapUsedBytes":(\d+)/.exec(line)?.[1] ?? 0)).find((bytes) => bytes > 0));
}

const sockets = () => readdirSync(`/proc/${server.process.pid}/fd`).filter((fd) => {
  try {
    return readlinkSync(`/proc/${server.process.pid}/fd/${fd}`).startsWith('socket:');
  } catch {
    return false;
  }
}).length;
/** Connections of the server to the database, as the database counts them. */
async function connections(): Promise<number> {
  const ofServer = { appName: { $regex: '^mongo-leash' } };
  return (await mongo.client.db('admin').aggregate([{ $currentOp: { allUsers: true, idleConnections: true } }, { $match: ofServer }, { $group: { _id: '$connectionId' } }]).toArray()).length;
}

/** Does it so often, a few at a time. */
async function many(count: number, one: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (next < count) await one(next++);
  }));
}

/** What is left of the calls before, when their records have gone: the least of what is measured within some seconds. */
async function heapAtRest(): Promise<number> {
  await untilNoneIsLeft(mongo.client, performance.now(), 10_000);
  let least = Infinity;
  for (const until = performance.now() + restMs; performance.now() < until; await delay(250)) {
    // Expired records go when the next one is written.
    await ask(server.url, modernRequest(1, 'tools/call', { name: 'run', arguments: sleepFor(1) }));
    least = Math.min(least, await heapBytes());
  }
  return least;
}

async function measure(cancelOne: (i: number) => Promise<void>): Promise<void> {
  await many(warmUp, cancelOne);
  const before = { heap: await heapAtRest(), ownSockets: sockets() - (await connections()) };
  await many(calls, (i) => cancelOne(1_000 + i));
  const after = { heap: await heapAtRest(), ownSockets: sockets() - (await connections()) };
  expect(after.heap - before.heap).toBeLessThan(calls * heapBytesPerCall);
  expect(after.ownSockets).toBe(before.ownSockets);
  expect(await connections()).toBeLessThanOrEqual(maxConnections);
}

describe('a thousand cancelled calls leave nothing', { timeout: 120_000 }, () => {
  it('in one session of the 2025 era', async () => {
    const session: RawSession = await beginSession(server.url);
    await measure(async (i) => {
      const stream = session.call(i, 'run', sleepFor(60_000));
      await stream.firstEventId();
      await session.cancel(i);
      expect(await stream.over).toBe('ended');
      expect(stream.has(i)).toBe(false);
    });
    // The session is as good as new.
    expect(await session.ask('run', sleepFor(1))).toMatchObject({ outcome: 'succeeded' });
    await session.end();
  });

  it('in the 2026 era, by the closed stream', async () => {
    await measure(async () => {
      const stream = openStream(server.url, modernRequest(1, 'tools/call', { name: 'run', arguments: sleepFor(60_000) }));
      await stream.response;
      stream.cut();
      await stream.over;
    });
    const { result } = await ask(server.url, modernRequest(1, 'tools/call', { name: 'operations', arguments: {} }));
    expect(result.structuredContent.load).toEqual({ running: 0, queued: 0 });
  });
});
