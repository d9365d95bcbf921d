/** What a task is said to be in each state of its operation: provoked on the database, and asked over both transports in both protocol versions. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { sleeping } from '../support/checked.js';
import { createCli } from '../support/cli.js';
import { heldPipeline, holdOn, testCommands } from '../support/hold.js';
import { type TestMongo, eventually, killTagged, startMongo, taggedAs } from '../support/mongo.js';
import { blockByDrop, runArguments } from '../support/runaways.js';
import { type Lanes, type ShownTask, type TaskLane, startLanes } from '../support/task-lanes.js';
import { type TcpProxy, type Wire, startProxy } from '../support/tcp-proxy.js';

const graceMs = 1_000;
let mongo: TestMongo;
let proxy: TcpProxy;
let lanes: Lanes;

beforeAll(async () => {
  mongo = await startMongo({ args: testCommands });
  const app = mongo.client.db('app');
  await app.collection<{ _id: number }>('things').insertMany([{ _id: 1 }, { _id: 2 }]);
  await app.collection('held').insertOne({});
  await app.collection('many').insertMany(Array.from({ length: 3_000 }, (_, i) => ({ i })));
  proxy = await startProxy(mongo.hosts[0] ?? '');
  lanes = await startLanes({ uri: proxy.uri, args: ['--allow-js', '--allow-writes', '--deadline-grace-ms', String(graceMs)] });
});
afterEach(() => killTagged(mongo.client));
afterAll(async () => {
  await lanes?.stop();
  await proxy?.close();
  await mongo?.stop();
});

const onThings = { database: 'app', collection: 'things' };
const asleep = (ms = 60_000) => ({ ...onThings, pipeline: sleeping(ms) });

/** The same on every lane at once; what fails names its lane. */
async function onEach<T>(act: (lane: TaskLane) => Promise<T>): Promise<T[]> {
  return await Promise.all(lanes.all.map((lane) => act(lane).catch((error: unknown) => { throw new Error(`${lane.name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error }); })));
}

/** Starts one on every lane, and comes back when the witness sees all of them. */
async function startOnEach(args: Record<string, unknown>): Promise<Map<TaskLane, string>> {
  return new Map(await onEach(async (lane) => {
    const { taskId } = await lane.create(args);
    await eventually('the database shows it', async () => (await taggedAs(mongo.client, taskId)).length > 0);
    return [lane, taskId] as const;
  }));
}

/** What one look met on its way differs from the next. */
const withoutDetails = (text: string) => text.replace(/ \([^)]*\)/g, '');

/** The tool `status` says the same as the task, for a client that shows its model no task. */
async function askStatus(lane: TaskLane, task: ShownTask): Promise<any> {
  const told = await lane.call('status', { id: task.taskId });
  expect(withoutDetails(task.statusMessage)).toContain(withoutDetails(`${told.outcome ?? told.server}: ${told.reason}`));
  return told;
}

async function eventuallyTask(lane: TaskLane, taskId: string, is: (task: ShownTask) => boolean): Promise<ShownTask> {
  let last: ShownTask | undefined;
  return await eventually('the task is so', async () => {
    last = await lane.get(taskId);
    return is(last) && last;
  }, 20_000).catch((error: unknown) => { throw new Error(`the task is ${last?.status}, ${last?.statusMessage}`, { cause: error }); });
}
const ended = (lane: TaskLane, taskId: string) => eventuallyTask(lane, taskId, ({ status }) => status !== 'working');

/** Working, with these words of the database. */
async function expectWorking(lane: TaskLane, taskId: string, server: string): Promise<ShownTask> {
  const task = await eventuallyTask(lane, taskId, ({ statusMessage, status }) => statusMessage.startsWith(`${server}: `) || status !== 'working');
  expect(task).toMatchObject({ status: 'working', statusMessage: expect.stringMatching(new RegExp(`^${server}: `)) });
  expect(task).not.toHaveProperty('result');
  expect(await askStatus(lane, task)).toMatchObject({ server, outcome: null });
  return task;
}

/** Over, and no success of the tool: `failed` in 2025, `completed` with an error in 2026, with the same answer in both. */
async function expectFailed(lane: TaskLane, taskId: string, answer: { outcome: string; [key: string]: unknown }): Promise<any> {
  const task = await ended(lane, taskId);
  expect(task).toMatchObject({ status: lane.era === '2025' ? 'failed' : 'completed', statusMessage: expect.stringMatching(new RegExp(`^${answer.outcome}: `)) });
  const result = await lane.resultOf(taskId);
  expect(result).toMatchObject({ isError: true, structuredContent: { operationId: taskId, ...answer } });
  expect(JSON.parse(result.content[0].text)).toEqual(result.structuredContent);
  if (lane.era === '2026') expect(result.resultType).toBe('complete');
  expect(await askStatus(lane, task)).toMatchObject(answer);
  // There is no way back from an end.
  expect((await lane.get(taskId)).status).toBe(task.status);
  return result.structuredContent;
}

async function killByWitness(taskId: string): Promise<void> {
  for (const { opid } of await taggedAs(mongo.client, taskId)) await mongo.client.db('admin').command({ killOp: 1, op: opid });
}

describe('a task is working while its operation', () => {
  it('runs', async () => {
    const started = await startOnEach(asleep());
    await onEach((lane) => expectWorking(lane, started.get(lane)!, 'running'));
  });

  it('waits for a lock, and failed when its time limit ends it there', async () => {
    const runaway = runawayCase('13');
    await setUpRunaway(mongo.client, 'locks', runaway);
    const { release } = await blockByDrop(mongo.client, 'locks', runaway);
    try {
      const started = await startOnEach({ ...runArguments(runaway, 'locks'), maxTimeMS: 4_000 });
      await onEach((lane) => expectWorking(lane, started.get(lane)!, 'waiting_for_lock'));
      await onEach((lane) => expectFailed(lane, started.get(lane)!, { outcome: 'timed_out', error: expect.objectContaining({ code: 'timed_out', serverCode: 50 }) }));
    } finally {
      await release();
    }
  });

  it('is an idle cursor', async () => {
    const held = new Set<Wire>();
    proxy.onClientBytes((wire, text) => {
      if (!text.includes('getMore') || !text.includes('many')) return;
      held.add(wire);
      wire.toServer.hold();
    });
    const started = await startOnEach({ database: 'app', collection: 'many', pipeline: [{ $match: {} }], limit: 2_500 });
    await onEach((lane) => expectWorking(lane, started.get(lane)!, 'idle_cursor'));
    expect(held.size).toBe(4);
    for (const wire of held) wire.toServer.release();
  });

  it('has a kill pending that nothing has come of yet', async () => {
    const { release } = await holdOn(mongo.client, 'app.held');
    try {
      const started = await startOnEach({ database: 'app', collection: 'held', pipeline: heldPipeline });
      await onEach(async (lane) => {
        const taskId = started.get(lane)!;
        await lane.call('kill', { id: taskId, waitMs: 0 });
        const task = await expectWorking(lane, taskId, 'kill_pending');
        expect(task.statusMessage).toMatch(/A kill was asked for \(kill_tool\) and is not proven yet\.$/);
      });
    } finally {
      await release();
    }
  });

  it('is on a node that does not answer, before its deadline', async () => {
    const started = await startOnEach(asleep());
    // Of one that no look has seen before, too little would be known afterwards to prove its end.
    await onEach((lane) => expectWorking(lane, started.get(lane)!, 'running'));
    const [host = ''] = mongo.hosts;
    mongo.freeze(host);
    try {
      await onEach((lane) => expectWorking(lane, started.get(lane)!, 'unreachable'));
    } finally {
      mongo.thaw(host);
    }
    // Its connection may have been given up meanwhile: then it is killed for that, and says so.
    await onEach(async (lane) => {
      const task = await eventuallyTask(lane, started.get(lane)!, ({ statusMessage, status }) => statusMessage.startsWith('running: ') || status !== 'working');
      if (task.status !== 'working') await expectFailed(lane, task.taskId, { outcome: 'killed', by: 'us', cause: 'connection_lost' });
    });
  });
});

describe('a task that has ended is', () => {
  it('completed when its operation succeeded, with its documents', async () => {
    await onEach(async (lane) => {
      const { taskId } = await lane.create({ ...onThings, pipeline: [{ $sort: { _id: 1 } }, ...sleeping(100)] });
      const task = await ended(lane, taskId);
      expect(task).toMatchObject({ status: 'completed', statusMessage: 'succeeded: The reply of the database came: the operation had succeeded.' });
      expect(await lane.resultOf(taskId)).toMatchObject({ isError: false, structuredContent: { operationId: taskId, outcome: 'succeeded', documents: [{ _id: 1 }, { _id: 2 }], returned: 2, more: false } });
      expect(await askStatus(lane, task)).toMatchObject({ outcome: 'succeeded', documents: [{ _id: 1 }, { _id: 2 }] });
    });
  });

  it('cancelled when its client cancelled it and the database proved that', async () => {
    const started = await startOnEach(asleep());
    await onEach(async (lane) => {
      const taskId = started.get(lane)!;
      await lane.cancel(taskId);
      const task = await ended(lane, taskId);
      expect(await taggedAs(mongo.client, taskId)).toEqual([]);
      expect(task).toMatchObject({ status: 'cancelled', statusMessage: expect.stringMatching(/^killed: The database answered the call itself with error 11601/) });
      expect(task).not.toHaveProperty('result');
      expect(await askStatus(lane, task)).toMatchObject({ outcome: 'killed', by: 'us', cause: 'tasks_cancel', verdict: 'stopped', kill: { sent: [expect.objectContaining({ method: 'killOp' })] } });
    });
  });

  it('failed when the database ended it with an error', async () => {
    await onEach(async (lane) => {
      // Not a constant, which the server would find at once: before the handover, or after it.
      const zero = { $subtract: ['$_id', '$_id'] };
      const { taskId } = await lane.create({ ...onThings, pipeline: [...sleeping(100), { $project: { x: { $divide: [1, zero] } } }] });
      await expectFailed(lane, taskId, { outcome: 'failed', error: expect.objectContaining({ code: 'operation_failed', message: expect.stringMatching(/divide by zero/) }) });
    });
  });

  it('failed when the wall clock ended it, where maxTimeMS does not reach', async () => {
    const started = await startOnEach({ ...asleep(), maxTimeMS: 500 });
    await onEach((lane) => expectFailed(lane, started.get(lane)!, { outcome: 'timed_out', cause: 'deadline', kill: expect.objectContaining({ verdict: 'stopped', cause: 'deadline' }) }));
  });

  it('failed when the command line killed it, and says so in its answer', async () => {
    const started = await startOnEach(asleep());
    const cli = createCli(mongo.uri);
    const { code, stdout } = await cli.run(['kill', ...started.values(), '--yes']);
    cli.end();
    expect(code, stdout).toBe(0);
    await onEach((lane) => expectFailed(lane, started.get(lane)!, { outcome: 'killed', by: 'others' }));
  });

  it('failed when somebody else killed it on the database', async () => {
    const started = await startOnEach(asleep());
    await onEach(async (lane) => {
      await killByWitness(started.get(lane)!);
      const answer = await expectFailed(lane, started.get(lane)!, { outcome: 'killed', by: 'others', error: expect.objectContaining({ serverCode: 11601 }) });
      expect(answer).not.toHaveProperty('cause');
      expect(answer.next).toMatch(/^Somebody else/);
    });
  });

  it('failed when it is lost: gone, and its reply has not come', async () => {
    const started = await startOnEach({ ...onThings, pipeline: [...sleeping(1_500), { $merge: { into: 'merged' } }] });
    const ids = [...started.values()];
    for (const wire of proxy.wires()) if (wire.kind === 'data' && ids.some((id) => wire.carried(id))) wire.cut('rst', 'client');
    await onEach((lane) => expectFailed(lane, started.get(lane)!, { outcome: 'lost', writes: expect.objectContaining({ effects: expect.stringMatching(/partial or full effects on app\.merged are possible/) }) }));
  });
});
