/** The moment in which a task's handle is written, in the 2026 era: whoever did not get the id has left nothing behind that runs. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpTestServer, ask, modernRequest, startHttpServer } from '../support/http-server.js';
import { idsOf, seen, sleepFor } from '../support/http-sessions.js';
import { type TestMongo, eventually, startMongo, tagged } from '../support/mongo.js';
import { type RawStream, openStream } from '../support/raw-stream.js';
import { untilGone } from '../support/runaways.js';

let mongo: TestMongo;
let server: HttpTestServer;
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('one').insertOne({});
  server = await startHttpServer({ uri: mongo.uri, args: ['--allow-js', '--max-operations', '70'] });
});
afterAll(async () => {
  await server.stop();
  await mongo.stop();
});

const walkers = 3;
const run = (args: Record<string, unknown>, tasks = true) => openStream(server.url, modernRequest(1, 'tools/call', { name: 'run', arguments: args }, { tasks }));
const taskIdIn = (stream: RawStream): string | undefined => stream.events.find(({ message }) => message?.id === 1)?.message.result.taskId;

interface Attempt {
  comment: string;
  /** `ended`: the answer came as a whole. */
  how: 'ended' | 'cut';
  taskId: string | undefined;
}

/** Closes one stream after another, later when the last one had no handle yet and earlier when it had: close to the moment, on both of its sides. */
async function walk(waitMs: number): Promise<Attempt[]> {
  const attempts: Attempt[] = [];
  const wasHanded = () => attempts.some(({ taskId }) => taskId !== undefined);
  for (let afterMs = waitMs + 5; attempts.length < 20; afterMs *= attempts.at(-1)?.taskId !== undefined ? 0.85 : wasHanded() ? 1.2 : 1.6) {
    const work = sleepFor(60_000, { waitMs });
    const stream = run(work);
    await delay(afterMs);
    // What has arrived by now is read first, as by a client that is awake.
    await new Promise((resolve) => { setImmediate(resolve); });
    stream.cut();
    attempts.push({ comment: work.comment, how: await stream.over, taskId: taskIdIn(stream) });
  }
  return attempts;
}

describe('a stream that is closed around the moment of the handover', () => {
  it.each([0, 50])('with waitMs %i leaves nothing running that its client has no id of', async (waitMs) => {
    const attempts = (await Promise.all(Array.from({ length: walkers }, () => walk(waitMs)))).flat();
    const handed = attempts.filter(({ taskId }) => taskId !== undefined);
    const lost = attempts.filter(({ taskId }) => taskId === undefined);
    // Both sides of the moment were met.
    expect({ handed: handed.length > 0, lost: lost.length > 0 }).toEqual({ handed: true, lost: true });
    await eventually('no operation runs but those whose id was handed over', async () => {
      const ids = (await tagged(mongo.client)).map((row) => String(row['command']?.comment).split('.')[3]);
      return ids.every((id) => handed.some(({ taskId }) => taskId === id));
    }, 5_000);
    // Those whose answer came as a whole go on, and each client can stop what it has the id of.
    for (const { comment, how, taskId = '' } of handed) {
      if (how === 'ended') expect(await idsOf(mongo.client, comment)).toEqual([taskId]);
      await ask(server.url, modernRequest(2, 'tasks/cancel', { taskId }));
      await untilGone(mongo.client, taskId, 3_000);
    }
  });

  it('before the time to wait has passed is a cancel', async () => {
    const work = sleepFor(60_000, { waitMs: 5_000 });
    const stream = run(work);
    const id = await seen(mongo.client, work.comment);
    stream.cut();
    await untilGone(mongo.client, id, 2_000);
    const { result } = await ask(server.url, modernRequest(2, 'tasks/get', { taskId: id }));
    expect(result).toMatchObject({ taskId: id, status: 'cancelled' });
  });
});
