/** `tasks/cancel`: 2025-11-25 is answered when the database has confirmed it, 2026-07-28 at once; in both a task is cancelled only when that is proven. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { sleeping } from '../support/checked.js';
import { heldPipeline, holdOn, testCommands } from '../support/hold.js';
import { type TestMongo, eventually, killTagged, startMongo, taggedAs } from '../support/mongo.js';
import { type Lanes, type ShownTask, type TaskLane, openStdioLane, startLanes } from '../support/task-lanes.js';
import { type TcpProxy, startProxy } from '../support/tcp-proxy.js';

const verifyMs = 3_000;
const all = ['stdio 2025', 'stdio 2026', 'http 2025', 'http 2026'] as const;
const of2025 = ['stdio 2025', 'http 2025'] as const;
const of2026 = ['stdio 2026', 'http 2026'] as const;
let mongo: TestMongo;
let proxy: TcpProxy;
let lanes: Lanes;

beforeAll(async () => {
  mongo = await startMongo({ args: testCommands });
  const app = mongo.client.db('app');
  await app.collection('things').insertOne({});
  await app.collection('held').insertOne({});
  proxy = await startProxy(mongo.hosts[0] ?? '');
  lanes = await startLanes({ uri: proxy.uri, args: ['--allow-js', '--verify-ms', String(verifyMs)] });
});
afterEach(() => killTagged(mongo.client));
afterAll(async () => {
  await lanes?.stop();
  await proxy?.close();
  await mongo?.stop();
});

const asleep = (ms = 60_000) => ({ database: 'app', collection: 'things', pipeline: sleeping(ms) });
const held = { database: 'app', collection: 'held', pipeline: heldPipeline };

async function start(lane: TaskLane, args: Record<string, unknown>): Promise<string> {
  const { taskId } = await lane.create(args);
  await eventually('the database shows it', async () => (await taggedAs(mongo.client, taskId)).length > 0);
  return taskId;
}

/** It is seen there with a kill pending: the cancel has reached it. */
const killPending = (taskId: string) => eventually('the database shows its kill as pending', async () => (await taggedAs(mongo.client, taskId))[0]?.['killPending'] === true);

const until = (lane: TaskLane, taskId: string, status: string): Promise<ShownTask> => eventually(`it is ${status}`, async () => {
  const task = await lane.get(taskId);
  return task.status === status && task;
}, 20_000);

async function timed<T>(answer: Promise<T>): Promise<{ answer: T; ms: number }> {
  const startedAt = performance.now();
  return { answer: await answer, ms: performance.now() - startedAt };
}

/** What 2026 answers whatever becomes of it. */
const acknowledged = { resultType: 'complete', _meta: { 'io.modelcontextprotocol/serverInfo': expect.anything() } };

describe.each(of2025)('%s: tasks/cancel', (name) => {
  it('is answered when the database shows the operation no more, and not before', async () => {
    const lane = lanes.named(name);
    const { release } = await holdOn(mongo.client, 'app.held');
    try {
      const taskId = await start(lane, held);
      let answered = false;
      const cancelled = lane.cancel(taskId).then((message) => {
        answered = true;
        return message;
      });
      await killPending(taskId);
      expect((await lane.get(taskId)).statusMessage).toMatch(/^kill_pending: .* A kill was asked for \(tasks_cancel\) and is not proven yet\.$/);
      expect(answered).toBe(false);
      await release();
      const { result } = await cancelled;
      expect(await taggedAs(mongo.client, taskId)).toEqual([]);
      expect(result).toMatchObject({ taskId, status: 'cancelled', statusMessage: expect.stringMatching(/^killed: /) });
    } finally {
      await release();
    }
  });

  it('sent twice at once is two good answers and one kill', async () => {
    const lane = lanes.named(name);
    const { release } = await holdOn(mongo.client, 'app.held');
    try {
      const taskId = await start(lane, held);
      const both = Promise.all([lane.cancel(taskId), lane.cancel(taskId)]);
      await killPending(taskId);
      await release();
      for (const { result } of await both) expect(result).toMatchObject({ taskId, status: 'cancelled' });
      const { kill } = await lane.call('status', { id: taskId });
      expect(kill).toMatchObject({ verdict: 'stopped', cause: 'tasks_cancel', sent: [{ method: 'killOp' }] });
      expect(lane.stderr.filter((line) => line.includes('kill requested') && line.includes(taskId))).toHaveLength(1);
    } finally {
      await release();
    }
  });

  it('is an error when the database does not confirm it in time: the task stays working, and is cancelled once that is proven', async () => {
    const lane = lanes.named(name);
    const { release } = await holdOn(mongo.client, 'app.held');
    try {
      const taskId = await start(lane, held);
      const { answer, ms } = await timed(lane.cancel(taskId));
      expect(answer.error).toMatchObject({ code: -32603, message: expect.stringMatching(new RegExp(`not confirmed the cancellation within ${verifyMs} ms: the task is still working\\. kill_pending: `)) });
      expect(ms).toBeGreaterThanOrEqual(verifyMs - 50);
      expect(ms).toBeLessThan(verifyMs + 2_000);
      expect(await lane.get(taskId)).toMatchObject({ status: 'working' });
      expect(await lane.call('status', { id: taskId })).toMatchObject({ server: 'kill_pending', outcome: null, cause: 'tasks_cancel' });
      expect(await taggedAs(mongo.client, taskId)).toHaveLength(1);
      await release();
      await until(lane, taskId, 'cancelled');
      expect(await taggedAs(mongo.client, taskId)).toEqual([]);
    } finally {
      await release();
    }
  });

  it('of a task that is over is refused, and changes nothing', async () => {
    const lane = lanes.named(name);
    const on = { database: 'app', collection: 'things' };
    const ends: [string, object[]][] = [['completed', []], ['failed', [{ $project: { x: { $divide: [1, 0] } } }]]];
    for (const [status, pipeline] of ends) {
      const { taskId } = await lane.create({ ...on, pipeline });
      const before = await until(lane, taskId, status);
      expect((await lane.cancel(taskId)).error).toMatchObject({ code: -32602, message: `The task is ${status} already. ${before.statusMessage}` });
      expect(await lane.get(taskId)).toEqual(before);
    }
    const taskId = await start(lane, asleep());
    expect((await lane.cancel(taskId)).result.status).toBe('cancelled');
    expect((await lane.cancel(taskId)).error).toMatchObject({ code: -32602, message: expect.stringContaining('cancelled already') });
    expect((await lane.get(taskId)).status).toBe('cancelled');
  });

  it('leaves what tasks/result answers: an error of the tool, with the report of the kill', async () => {
    const lane = lanes.named(name);
    const taskId = await start(lane, asleep());
    const waiting = lane.resultOf(taskId);
    await lane.cancel(taskId);
    for (const result of [await waiting, await lane.resultOf(taskId)]) {
      expect(result).toMatchObject({ isError: true, structuredContent: { operationId: taskId, outcome: 'killed', by: 'us', cause: 'tasks_cancel', kill: { verdict: 'stopped', sent: [{ method: 'killOp' }], after: expect.arrayContaining([expect.objectContaining({ saw: 'nothing' })]) } } });
    }
  });
});

describe.each(of2026)('%s: tasks/cancel', (name) => {
  it('is acknowledged at once, and the task is working until it is proven to be cancelled', async () => {
    const lane = lanes.named(name);
    const { release } = await holdOn(mongo.client, 'app.held');
    try {
      const taskId = await start(lane, held);
      const { answer, ms } = await timed(lane.cancel(taskId));
      expect(answer.result).toEqual(acknowledged);
      expect(ms).toBeLessThan(1_000);
      await killPending(taskId);
      expect(await lane.get(taskId)).toMatchObject({ status: 'working', statusMessage: expect.stringMatching(/^kill_pending: .* A kill was asked for \(tasks_cancel\) and is not proven yet\.$/) });
      expect(await taggedAs(mongo.client, taskId)).toHaveLength(1);
      await release();
      const task = await until(lane, taskId, 'cancelled');
      expect(await taggedAs(mongo.client, taskId)).toEqual([]);
      expect(task).not.toHaveProperty('result');
    } finally {
      await release();
    }
  });

  it('sent twice at once is two acknowledgements and one kill', async () => {
    const lane = lanes.named(name);
    const taskId = await start(lane, asleep());
    for (const { result } of await Promise.all([lane.cancel(taskId), lane.cancel(taskId)])) expect(result).toEqual(acknowledged);
    await until(lane, taskId, 'cancelled');
    const { kill } = await lane.call('status', { id: taskId });
    expect(kill).toMatchObject({ verdict: 'stopped', cause: 'tasks_cancel', sent: [{ method: 'killOp' }] });
  });

  it('of a task that is over is acknowledged too, and changes nothing', async () => {
    const lane = lanes.named(name);
    const { taskId } = await lane.create({ database: 'app', collection: 'things', pipeline: sleeping(50) });
    const before = await until(lane, taskId, 'completed');
    expect((await lane.cancel(taskId)).result).toEqual(acknowledged);
    expect(await lane.get(taskId)).toEqual(before);
    const other = await start(lane, asleep());
    await lane.cancel(other);
    await until(lane, other, 'cancelled');
    expect((await lane.cancel(other)).result).toEqual(acknowledged);
    expect((await lane.get(other)).status).toBe('cancelled');
  });
});

describe('a cancel that the database cannot confirm, since it does not answer,', () => {
  it('is an error within the time of 2025 and an acknowledgement of 2026; the task works on, and is cancelled when the database is back', async () => {
    const started = await Promise.all(lanes.all.map(async (lane) => ({ lane, taskId: await start(lane, asleep()) })));
    // Of one that no look has seen before, too little would be known afterwards to prove its end.
    await Promise.all(started.map(({ lane, taskId }) => eventually('it is seen', async () => (await lane.get(taskId)).statusMessage.startsWith('running: '))));
    const [host = ''] = mongo.hosts;
    mongo.freeze(host);
    try {
      await Promise.all(started.map(async ({ lane, taskId }) => {
        const { answer, ms } = await timed(lane.cancel(taskId));
        if (lane.era === '2026') expect(answer.result, lane.name).toEqual(acknowledged);
        else expect(answer.error, lane.name).toMatchObject({ code: -32603, message: expect.stringMatching(/the task is still working\. /) });
        expect(ms, lane.name).toBeLessThan(lane.era === '2026' ? 1_000 : verifyMs + 2_000);
        expect(await lane.get(taskId), lane.name).toMatchObject({ status: 'working', statusMessage: expect.stringMatching(/^unreachable: .* A kill was asked for \(tasks_cancel\) and is not proven yet\.$/) });
      }));
    } finally {
      mongo.thaw(host);
    }
    await Promise.all(started.map(async ({ lane, taskId }) => {
      await until(lane, taskId, 'cancelled');
      expect(await taggedAs(mongo.client, taskId), lane.name).toEqual([]);
    }));
  });
});

describe.each(all)('%s: a cancel', (name) => {
  it('that comes after the end, whose reply is still on its way, is no cancel', async () => {
    const lane = lanes.named(name);
    const taskId = await start(lane, asleep(1_000));
    const wire = await eventually('its connection is known', () => proxy.wires().find((each) => each.kind === 'data' && each.open && each.carried(taskId)));
    wire.toClient.hold();
    await eventually('the database is done with it', async () => (await taggedAs(mongo.client, taskId)).length === 0);
    const cancelled = lane.cancel(taskId);
    await eventually('the kill has begun', () => lane.stderr.some((line) => line.includes('kill requested') && line.includes(taskId)));
    wire.toClient.release();
    const answer = await cancelled;
    if (lane.era === '2026') expect(answer.result).toEqual(acknowledged);
    else expect(answer.error).toMatchObject({ code: -32602, message: expect.stringMatching(/^The task is over, and nothing proves that this cancellation ended it: it is completed\. succeeded: /) });
    await until(lane, taskId, 'completed');
    expect(await lane.resultOf(taskId)).toMatchObject({ isError: false, structuredContent: { outcome: 'succeeded', documents: [{}], kill: { verdict: 'ended_first', sent: [] } } });
  });

  it('by the tool kill is a cancel by the requestor as well', async () => {
    const lane = lanes.named(name);
    const taskId = await start(lane, asleep());
    expect(await lane.call('kill', { id: taskId })).toMatchObject({ verdict: 'stopped' });
    expect(await lane.get(taskId)).toMatchObject({ status: 'cancelled' });
  });
});

describe.each(['2025', '2026'] as const)('stdio %s: a task that waits for a place', (era) => {
  it('is cancelled without anything of it having been sent', async () => {
    const lane = await openStdioLane(era, { uri: mongo.uri, args: ['--allow-js', '--max-operations', '1'] });
    const first = await start(lane, asleep());
    const { taskId } = await lane.create({ ...asleep(), startAnother: true });
    expect(await lane.get(taskId)).toMatchObject({ status: 'working', statusMessage: expect.stringMatching(/^not_sent: /) });
    const answer = await lane.cancel(taskId);
    if (era === '2025') expect(answer.result).toMatchObject({ status: 'cancelled' });
    expect(await until(lane, taskId, 'cancelled')).toMatchObject({ statusMessage: expect.stringMatching(/^never_sent: Nothing was sent/) });
    await lane.cancel(first);
    await lane.server.close();
  });
});
