/** The other methods of tasks: what they answer, to whom, and in which protocol version they are there. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { sleeping } from '../support/checked.js';
import { type TestMongo, eventually, killTagged, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { type HttpTestServer, startHttpServer } from '../support/http-server.js';
import { type Lanes, type ShownTask, type TaskLane, listTasks, openHttpLane, openStdioLane, startLanes, updateTask } from '../support/task-lanes.js';

const all = ['stdio 2025', 'stdio 2026', 'http 2025', 'http 2026'] as const;
const of2025 = ['stdio 2025', 'http 2025'] as const;
const of2026 = ['stdio 2026', 'http 2026'] as const;
const tokens = { alice: 'token-of-alice-0123456789abcdef', bob: 'token-of-bob-0123456789abcdefgh' };
let mongo: TestMongo;
let lanes: Lanes;
/** Tells principals apart by their tokens. */
let shared: HttpTestServer;

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection<{ _id: number }>('things').insertMany([{ _id: 1 }, { _id: 2 }, { _id: 3 }]);
  const args = ['--allow-js'];
  lanes = await startLanes({ uri: mongo.uri, args });
  shared = await startHttpServer({ uri: mongo.uri, args, env: { MONGO_LEASH_TOKENS: Object.entries(tokens).map(([user, token]) => `${user} leash:kill ${token}`).join(';') } });
});
afterEach(() => killTagged(mongo.client));
afterAll(async () => {
  await lanes?.stop();
  await shared?.stop();
  await mongo?.stop();
});

const onThings = { database: 'app', collection: 'things' };
const asleep = (ms = 60_000) => ({ ...onThings, pipeline: sleeping(ms) });

async function start(lane: TaskLane, args: Record<string, unknown>): Promise<string> {
  const { taskId } = await lane.create(args);
  await eventually('the database shows it', async () => (await taggedAs(mongo.client, taskId)).length > 0);
  return taskId;
}

const ended = (lane: TaskLane, taskId: string): Promise<ShownTask> => eventually('it has ended', async () => {
  const task = await lane.get(taskId);
  return task.status !== 'working' && task;
}, 20_000);

/** An answer without what differs from run to run. */
function comparable(result: any): unknown {
  const { content, structuredContent, ...rest } = JSON.parse(JSON.stringify(result).replaceAll(result.structuredContent.operationId, 'its id'));
  const { operationId: _id, requestId: _request, createdAt: _created, endedAt: _ended, elapsedMs: _elapsed, evidence: _evidence, wait: _wait, ...body } = structuredContent;
  expect(JSON.parse(content[0].text)).toEqual(structuredContent);
  const { _meta, ...others } = rest;
  return { ...others, body };
}

describe.each(all)('%s: the answer of a task', (name) => {
  it.each([
    ['documents', { ...onThings, pipeline: [{ $sort: { _id: 1 } }], limit: 2 }],
    ['documents in canonical form', { ...onThings, pipeline: [{ $sort: { _id: 1 } }], canonical: true }],
    ['what fits of them', { ...onThings, pipeline: [{ $sort: { _id: 1 } }, { $set: { pad: 'x'.repeat(1_500) } }], responseBytesLimit: 3_000 }],
    ['an error of the database', { ...onThings, pipeline: [{ $project: { x: { $divide: [1, 0] } } }] }],
  ])('is what the plain call is answered: %s', async (_what, request) => {
    const lane = lanes.named(name);
    const plain = await lane.callRaw('run', { ...request, waitMs: 30_000 });
    const message = await lane.ask('tools/call', { name: 'run', arguments: { ...request, waitMs: 0 }, ...(lane.era === '2025' ? { task: {} } : {}) });
    const taskId = lane.era === '2025' ? message.result.task.taskId : (message.result.taskId ?? null);
    // A call of 2026 that is over before the look of its handover is a plain answer at once.
    const later = taskId === null ? message.result : (await ended(lane, taskId), await lane.resultOf(taskId));
    expect(comparable(later)).toEqual(comparable(plain));
    if (lane.era === '2025') expect(later._meta).toEqual({ 'io.modelcontextprotocol/related-task': { taskId } });
    else expect(later.resultType).toBe('complete');
  });
});

describe.each(of2025)('%s: tasks/result', (name) => {
  it('is answered when the task has ended, and not before', async () => {
    const lane = lanes.named(name);
    const taskId = await start(lane, { ...onThings, pipeline: [{ $limit: 1 }, ...sleeping(1_500)] });
    const result = await lane.resultOf(taskId);
    expect(await taggedAs(mongo.client, taskId)).toEqual([]);
    expect(result).toMatchObject({ isError: false, structuredContent: { outcome: 'succeeded', elapsedMs: expect.any(Number) } });
    expect(result.structuredContent.elapsedMs).toBeGreaterThanOrEqual(1_500);
  });

  it('that is cancelled while it waits leaves the task running', async () => {
    const lane = lanes.named(name);
    const taskId = await start(lane, asleep());
    const id = `wait-${name}`;
    let answer: unknown;
    void lane.ask('tasks/result', { taskId }, { id }).then((message) => { answer = message; }, () => undefined);
    await lane.ask('ping');
    await lane.cancelRequest(id);
    // What is asked after it is answered after it.
    await lane.ask('ping');
    expect(await lane.get(taskId)).toMatchObject({ status: 'working', statusMessage: expect.stringMatching(/^running: .* sees that it is there\.$/) });
    expect(await lane.call('status', { id: taskId })).not.toHaveProperty('kill');
    expect(await taggedAs(mongo.client, taskId)).toHaveLength(1);
    expect(answer).toBeUndefined();
    expect((await lane.cancel(taskId)).result.status).toBe('cancelled');
  });
});

describe.each(of2025)('%s: tasks/list', (name) => {
  it('has the tasks of its principal, newest first, and no plain runs', async () => {
    const lane = lanes.named(name);
    const plain = await lane.call('run', { ...onThings, pipeline: [] });
    const detached = await lane.call('run', { ...asleep(), waitMs: 0 });
    const { taskId: over } = await lane.create({ ...onThings, pipeline: [{ $limit: 1 }] });
    await ended(lane, over);
    const running = await start(lane, { ...asleep(), startAnother: true });
    const { taskId: latest } = await lane.create({ ...onThings, pipeline: [{ $limit: 2 }] });
    await ended(lane, latest);
    const { tasks } = await listTasks(lane);
    const ids = tasks.map(({ taskId }) => taskId);
    expect(ids.slice(0, 3)).toEqual([latest, running, over]);
    expect(ids).not.toContain(plain.operationId);
    expect(ids).not.toContain(detached.operationId);
    expect(tasks.find(({ taskId }) => taskId === over)).toEqual((await lane.get(over)).raw);
    expect(tasks[1]).toMatchObject({ status: 'working', statusMessage: expect.stringMatching(/^running: /) });
  });

  it('comes in pages, each task once, and knows no other cursor', async () => {
    const lane = name === 'stdio 2025' ? await openStdioLane('2025', { uri: mongo.uri }) : await openHttpLane('2025', lanes.http);
    const made: string[] = [];
    for (let i = 0; i < 55; i += 1) made.unshift((await lane.create({ ...onThings, pipeline: [{ $limit: 1 }], comment: `${i}`, startAnother: true })).taskId);
    await Promise.all(made.map((taskId) => ended(lane, taskId)));
    const { tasks, pages } = await listTasks(lane);
    expect(pages).toBe(2);
    expect(tasks.map(({ taskId }) => taskId).sort()).toEqual([...made].sort());
    expect(tasks.map(({ createdAt }) => createdAt)).toEqual(tasks.map(({ createdAt }) => createdAt).sort().reverse());
    expect(await lane.refusal('tasks/list', { cursor: 'no cursor' })).toMatchObject({ code: -32602 });
    if ('server' in lane) await (lane as Awaited<ReturnType<typeof openStdioLane>>).server.close();
  });
});

describe.each(of2026)('%s: the methods', (name) => {
  it('tasks/list and tasks/result are not there', async () => {
    const lane = lanes.named(name);
    const taskId = await start(lane, asleep());
    expect(await lane.refusal('tasks/list', {})).toMatchObject({ code: -32601 });
    expect(await lane.refusal('tasks/result', { taskId })).toMatchObject({ code: -32601 });
  });

  it('tasks/update is acknowledged, and changes nothing of an operation, which asks nothing', async () => {
    const lane = lanes.named(name);
    const taskId = await start(lane, asleep());
    const { _meta, ...acknowledged } = await updateTask(lane, taskId);
    expect(acknowledged).toEqual({ resultType: 'complete' });
    expect(await lane.get(taskId)).toMatchObject({ status: 'working' });
    expect(await taggedAs(mongo.client, taskId)).toHaveLength(1);
  });

  it.each([['tasks/get', {}], ['tasks/update', { inputResponses: {} }], ['tasks/cancel', {}]])('%s is refused where the request does not declare the extension, and does nothing', async (method, params) => {
    const lane = lanes.named(name);
    const taskId = await start(lane, asleep());
    expect(await lane.refusal(method, { ...params, taskId }, { tasks: false })).toMatchObject({ code: -32021, data: { requiredCapabilities: { extensions: { 'io.modelcontextprotocol/tasks': {} } } } });
    expect(await lane.get(taskId)).toMatchObject({ status: 'working' });
    expect(await lane.call('status', { id: taskId })).not.toHaveProperty('kill');
    expect(await taggedAs(mongo.client, taskId)).toHaveLength(1);
  });
});

describe.each(of2025)('%s: the method', (name) => {
  it('tasks/update is not there', async () => {
    expect(await lanes.named(name).refusal('tasks/update', { taskId: 'any', inputResponses: {} })).toMatchObject({ code: -32601 });
  });
});

const methodsOf = (lane: TaskLane) => (lane.era === '2025' ? ['tasks/get', 'tasks/result', 'tasks/cancel'] : ['tasks/get', 'tasks/update', 'tasks/cancel']);
const paramsOf = (method: string, taskId: unknown) => ({ taskId, ...(method === 'tasks/update' ? { inputResponses: {} } : {}) });

describe.each(all)('%s: the id of a task', (name) => {
  it('that is unknown and one that can be none are refused in the same words', async () => {
    const lane = lanes.named(name);
    // Over HTTP, 2026 has the id in a header too, which cannot hold every text.
    const inHeaders = name === 'http 2026' ? [] : ['', '\u0000', '\n', '🗝'];
    const ids = ['0'.repeat(26), 'no-task', `${'0'.repeat(25)}U`, '../../etc/passwd', '0'.repeat(5_000), '$where', '{"$ne":null}', ...inHeaders];
    for (const method of methodsOf(lane)) {
      for (const id of ids) {
        const { code, message } = await lane.refusal(method, paramsOf(method, id));
        expect({ code, message }, `${method} ${id.slice(0, 30)}`).toEqual({ code: -32602, message: `There is no record of operation ${id.slice(0, 26)}. Check the id. operations lists what runs and what ended recently.` });
      }
    }
  });

  it('that is no text, or is missing, is refused by name', async () => {
    const lane = lanes.named(name);
    for (const method of methodsOf(lane)) {
      for (const id of [7, null, { $ne: 1 }, undefined]) {
        expect(await lane.refusal(method, paramsOf(method, id)), `${method} ${JSON.stringify(id)}`).toMatchObject({ code: -32602, message: expect.stringMatching(/taskId.*expected string/) });
      }
    }
  });
});

describe.each(['2025', '2026'] as const)('http %s: a task of another principal', (era) => {
  it('is not there, in the same words as one that never was, and is not touched', async () => {
    const [alice, bob] = await Promise.all([openHttpLane(era, shared, tokens.alice), openHttpLane(era, shared, tokens.bob)]);
    const running = await start(alice, asleep());
    const { taskId: over } = await alice.create({ ...onThings, pipeline: sleeping(50) });
    await ended(alice, over);
    for (const method of methodsOf(bob)) {
      for (const id of [running, over]) {
        const { code, message } = await bob.refusal(method, paramsOf(method, id));
        expect({ code, message }).toEqual({ code: -32602, message: `There is no record of operation ${id}. Check the id. operations lists what runs and what ended recently.` });
      }
    }
    expect(await taggedAs(mongo.client, running)).toHaveLength(1);
    expect(await alice.get(running)).toMatchObject({ status: 'working', statusMessage: expect.stringMatching(/^running: /) });
    if (era === '2025') {
      expect((await listTasks(bob)).tasks).toEqual([]);
      expect((await listTasks(alice)).tasks.map(({ taskId }) => taskId)).toEqual(expect.arrayContaining([running, over]));
    }
    await alice.cancel(running);
  });
});

describe('http 2025: a task of another session', () => {
  it('is not there for a session without authentication', async () => {
    const [own, other] = [lanes.named('http 2025'), await openHttpLane('2025', lanes.http)];
    const taskId = await start(own, asleep());
    expect(await other.refusal('tasks/get', { taskId })).toMatchObject({ code: -32602, message: expect.stringMatching(/^There is no record of operation/) });
    expect((await listTasks(other)).tasks).toEqual([]);
    expect(await own.get(taskId)).toMatchObject({ status: 'working' });
  });
});

it('nothing of these tests is left on the database', async () => {
  expect(await tagged(mongo.client)).toEqual([]);
});
