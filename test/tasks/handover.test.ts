/** When a call becomes a native task, and what its client is handed, on both transports and in both protocol versions. */

import type { ChildProcess } from 'node:child_process';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { sleeping } from '../support/checked.js';
import { type TestMongo, eventually, killTagged, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { startHttpServer } from '../support/http-server.js';
import { freshFolder } from '../support/records.js';
import { startServer } from '../support/server.js';
import { type Lanes, type TaskLane, openHttpLane, openStdioLane, startLanes } from '../support/task-lanes.js';

const maxRetentionMs = 7_200_000;
let mongo: TestMongo;
let lanes: Lanes;

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection<{ _id: number }>('things').insertMany([{ _id: 1 }, { _id: 2 }]);
  lanes = await startLanes({ uri: mongo.uri, args: ['--allow-js', '--max-retention-ms', String(maxRetentionMs)] });
});
afterAll(async () => {
  await lanes?.stop();
  await mongo?.stop();
});

/** Servers that a test starts for itself: none outlives it, also when it fails. */
const ofTest = new Set<ChildProcess>();
afterEach(async () => {
  for (const child of ofTest) child.kill('SIGKILL');
  ofTest.clear();
  await killTagged(mongo.client);
});

const onThings = { database: 'app', collection: 'things' };
let marks = 0;
/** Equal to no other, so that it is not taken for one that runs. */
const slow = (ms = 30_000) => ({ ...onThings, pipeline: [...sleeping(ms), { $addFields: { mark: (marks += 1) } }] });
const names = ['stdio 2025', 'stdio 2026', 'http 2025', 'http 2026'] as const;
const of2025 = ['stdio 2025', 'http 2025'] as const;
const of2026 = ['stdio 2026', 'http 2026'] as const;

/** Its operation under its task id, as the witness sees it. */
async function onDatabase(taskId: string) {
  return await eventually(`the database shows ${taskId}`, async () => (await taggedAs(mongo.client, taskId))[0]);
}

async function stop(lane: TaskLane, taskId: string) {
  await lane.call('kill', { id: taskId });
  expect(await taggedAs(mongo.client, taskId)).toEqual([]);
}

describe.each(names)('%s: the task of a run', (name) => {
  it('has the operation id as its id, the one in the tag on the database and for the tools', async () => {
    const lane = lanes.named(name);
    const created = await lane.create(slow());
    expect(created).toMatchObject({ status: 'working', taskId: expect.stringMatching(/^[0-9a-z]{26}$/) });
    await onDatabase(created.taskId);
    const [task, told] = [await lane.get(created.taskId), await lane.call('status', { id: created.taskId })];
    expect(task).toMatchObject({ taskId: created.taskId, status: 'working', statusMessage: expect.stringMatching(/^running: The last look at .* sees that it is there\.$/) });
    expect(task.raw.createdAt).toBe(told.createdAt);
    expect(told).toMatchObject({ operationId: created.taskId, outcome: null, wait: 'detached' });
    expect(task.statusMessage).toBe(`${told.server}: ${told.reason}`);
    await stop(lane, created.taskId);
  });

  it('is stored before its handle is answered: a second server knows it after a SIGKILL of the first', async () => {
    const { era, transport } = lanes.named(name);
    const options = { uri: mongo.uri, stateFolder: freshFolder(), args: ['--allow-js', '--sweep', 'off'], env: { MONGO_LEASH_TOKENS: 'agent leash:kill a-token-of-this-test-0123456789' } };
    const open = async () => {
      if (transport === 'stdio') {
        const lane = await openStdioLane(era, options);
        ofTest.add(lane.server.process);
        return { lane: lane as TaskLane, process: lane.server.process, exited: lane.server.exited };
      }
      const http = await startHttpServer(options);
      ofTest.add(http.process);
      return { lane: await openHttpLane(era, http, 'a-token-of-this-test-0123456789'), process: http.process, exited: http.exited };
    };
    const first = await open();
    const created = await first.lane.create(slow());
    first.process.kill('SIGKILL');
    await first.exited;
    const second = await open();
    const task = await second.lane.get(created.taskId);
    // It may have been sent or not: the database says which.
    expect(task.statusMessage).toMatch(/^(running|not_seen|lost): /);
    expect(task.raw.createdAt).toBe(created.raw.createdAt);
    if (era === '2025') expect((await second.lane.ask('tasks/list')).result.tasks).toEqual([expect.objectContaining({ taskId: created.taskId })]);
    second.process.kill('SIGTERM');
    await second.exited;
  });
});

describe.each(of2026)('%s: a run', (name) => {
  it('that is not ended after waitMs becomes a flat task, where the request declares the extension', async () => {
    const lane = lanes.named(name);
    for (const waitMs of [0, 300]) {
      const startedAt = performance.now();
      const created = await lane.create({ ...slow(), waitMs });
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(waitMs);
      const { _meta, ...flat } = created.raw;
      expect(Object.keys(_meta)).toEqual(['io.modelcontextprotocol/serverInfo']);
      expect(flat).toEqual({ resultType: 'task', taskId: created.taskId, status: 'working', statusMessage: expect.any(String), createdAt: expect.any(String), lastUpdatedAt: expect.any(String), ttlMs: 3_600_000, pollIntervalMs: expect.any(Number) });
      await onDatabase(created.taskId);
      await stop(lane, created.taskId);
    }
  });

  it('is a plain handle where the request does not declare it', async () => {
    const lane = lanes.named(name);
    const { result } = await lane.ask('tools/call', { name: 'run', arguments: { ...slow(), waitMs: 0 } }, { tasks: false });
    expect(result).toMatchObject({ resultType: 'complete', isError: false, structuredContent: { wait: 'detached', outcome: null } });
    expect(result).not.toHaveProperty('taskId');
    const id = result.structuredContent.operationId;
    expect(JSON.parse(result.content[0].text)).toEqual(result.structuredContent);
    await onDatabase(id);
    await stop(lane, id);
  });

  it('that ends before waitMs is a plain result, with the extension too, whether it succeeds or not', async () => {
    const lane = lanes.named(name);
    const ended = (pipeline: object[]) => lane.ask('tools/call', { name: 'run', arguments: { ...onThings, pipeline, waitMs: 60_000 } });
    expect((await ended([{ $sort: { _id: 1 } }])).result).toMatchObject({ resultType: 'complete', isError: false, structuredContent: { outcome: 'succeeded', documents: [{ _id: 1 }, { _id: 2 }] } });
    expect((await ended([{ $project: { x: { $divide: [1, 0] } } }])).result).toMatchObject({ resultType: 'complete', isError: true, structuredContent: { outcome: 'failed' } });
    expect((await ended(sleeping(700))).result).toMatchObject({ resultType: 'complete', isError: false, structuredContent: { outcome: 'succeeded' } });
  });

  it('with bad arguments is a plain error of the tool, and nothing is sent', async () => {
    const lane = lanes.named(name);
    const { result } = await lane.ask('tools/call', { name: 'run', arguments: { ...onThings, pipeline: 'no pipeline', waitMs: 0 } });
    expect(result).toMatchObject({ resultType: 'complete', isError: true, structuredContent: { error: { code: 'bad_argument', message: expect.stringContaining('pipeline') } } });
    expect(await tagged(mongo.client)).toEqual([]);
  });

  it('is listed without a word of tasks, which the extension in the capabilities says', async () => {
    const lane = lanes.named(name);
    const { result } = await lane.ask('tools/list');
    for (const tool of result.tools) expect(tool).not.toHaveProperty('execution');
    const discovered = (await lane.ask('server/discover')).result;
    expect(discovered.capabilities.extensions).toEqual({ 'io.modelcontextprotocol/tasks': {} });
    expect(discovered.capabilities).not.toHaveProperty('tasks');
  });

  it('takes no notice of the params.task of the other version', async () => {
    const lane = lanes.named(name);
    const { result } = await lane.ask('tools/call', { name: 'run', arguments: { ...onThings, pipeline: [], waitMs: 60_000 }, task: { ttl: 1 } });
    expect(result).toMatchObject({ resultType: 'complete', structuredContent: { outcome: 'succeeded' } });
  });
});

describe.each(of2025)('%s: a run', (name) => {
  const callAsTask = (tool: string, args: object, task: object = {}) => lanes.named(name).ask('tools/call', { name: tool, arguments: args, task });

  it('with params.task is a task at once, with the time that the server keeps things, or that it asked for', async () => {
    const lane = lanes.named(name);
    const plain = await lane.create({ ...slow(), waitMs: 60_000 });
    expect(plain).toMatchObject({ status: 'working', ttl: 3_600_000 });
    expect(plain.raw).not.toHaveProperty('resultType');
    const asked = await lane.create(slow(), 123_456);
    expect(asked.ttl).toBe(123_456);
    expect((await lane.get(asked.taskId)).ttl).toBe(123_456);
    await Promise.all([stop(lane, plain.taskId), stop(lane, asked.taskId)]);
  });

  it('is kept no longer than the server allows, and says so in what it answers', async () => {
    const lane = lanes.named(name);
    const created = await lane.create({ ...onThings, pipeline: [] }, maxRetentionMs * 10);
    expect(created.ttl).toBe(maxRetentionMs);
    expect((await lane.resultOf(created.taskId)).structuredContent.notes).toEqual([expect.stringMatching(new RegExp(`^ttl was ${maxRetentionMs * 10}; this server allows at most ${maxRetentionMs}`))]);
    expect((await lane.call('status', { id: created.taskId })).notes).toEqual([expect.stringContaining('ttl was')]);
  });

  it.each([{ ttl: 'soon' }, { ttl: 1.5 }, { ttl: -1 }, { ttl: null }, { ttl: [5] }])('with a time to live that is none (%j) is refused, and nothing is sent', async (task) => {
    const { error, result } = await callAsTask('run', slow(), task);
    expect(result).toBeUndefined();
    expect(error).toMatchObject({ code: -32602, message: expect.stringContaining('ttl') });
    expect(await tagged(mongo.client)).toEqual([]);
  });

  it('without params.task is a plain result or handle', async () => {
    const lane = lanes.named(name);
    const ended = await lane.callRaw('run', { ...onThings, pipeline: [] });
    expect(ended).toMatchObject({ isError: false, structuredContent: { outcome: 'succeeded' } });
    const handle = await lane.callRaw('run', { ...slow(), waitMs: 0 });
    expect(handle).toMatchObject({ isError: false, structuredContent: { wait: 'detached', outcome: null } });
    expect(handle).not.toHaveProperty('task');
    await stop(lane, handle.structuredContent.operationId);
  });

  it('with params.task and bad arguments is an error of the protocol that says what to correct, and nothing is sent', async () => {
    const wrong = (await callAsTask('run', { ...onThings, pipeline: [{ $mtch: {} }] })).error;
    expect(wrong).toMatchObject({ code: -32602, message: expect.stringContaining('$match') });
    const refused = (await callAsTask('run', { ...onThings, pipeline: [{ $out: 'elsewhere' }] })).error;
    expect(refused).toMatchObject({ code: -32602, message: expect.stringContaining('$out') });
    const missing = (await callAsTask('run', { database: 'app' })).error;
    expect(missing).toMatchObject({ code: -32602, message: expect.stringContaining('pipeline') });
    // It says the same as the plain answer would, and what is known of the database.
    expect(missing.data).toMatchObject({ error: { code: 'bad_argument', databaseState: 'Nothing was sent to the database.' } });
    expect(await tagged(mongo.client)).toEqual([]);
  });

  it('may be called as a task, like an export and no other tool, and the list says so', async () => {
    const { result } = await lanes.named(name).ask('tools/list');
    for (const tool of result.tools) expect(tool.execution, tool.name).toEqual(['run', 'export'].includes(tool.name) ? { taskSupport: 'optional' } : undefined);
    for (const tool of ['status', 'operations', 'kill', 'result']) {
      expect((await callAsTask(tool, {})).error).toMatchObject({ code: -32601, message: expect.stringContaining(tool) });
    }
  });

  it('that is asked for as a task twice is one operation and one task', async () => {
    const lane = lanes.named(name);
    const request = slow();
    const first = await lane.create(request);
    await onDatabase(first.taskId);
    expect((await lane.create(request)).taskId).toBe(first.taskId);
    await stop(lane, first.taskId);
  });
});

it('a server of 2025 says in its capabilities what of tasks it has', async () => {
  const server = await startServer({ uri: mongo.uri });
  expect(server.client.getServerCapabilities()).toMatchObject({ tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } });
  expect(server.client.getServerCapabilities()).not.toHaveProperty('extensions');
  await server.close();
});
