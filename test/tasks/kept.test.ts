/** How long a task is kept, what is said of it after that, and what is said of one that nobody can know the end of. */

import { hostname, userInfo } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { OperationRecord } from '../../src/domain/operation.js';
import { taskView } from '../../src/mcp/tasks/operations.js';
import type { ToolLimits } from '../../src/mcp/tool.js';
import { openLocalStore } from '../../src/store/local.js';
import { sleeping } from '../support/checked.js';
import { type TestMongo, eventually, killTagged, startMongo, taggedAs } from '../support/mongo.js';
import { aRecord, freshFolder } from '../support/records.js';
import { type TaskLane, listTasks, openStdioLane, startLanes } from '../support/task-lanes.js';
import { type TcpProxy, startProxy } from '../support/tcp-proxy.js';

const retentionMs = 1_000;
const args = ['--allow-js', '--retention-ms', String(retentionMs)];
let mongo: TestMongo;
let proxy: TcpProxy;
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection<{ _id: number }>('things').insertMany([{ _id: 1 }, { _id: 2 }]);
  proxy = await startProxy(mongo.hosts[0] ?? '');
});
afterEach(() => killTagged(mongo.client));
afterAll(async () => {
  await proxy?.close();
  await mongo?.stop();
});

const onThings = { database: 'app', collection: 'things' };
const once = (ms: number) => [{ $sort: { _id: 1 } }, { $limit: 1 }, ...sleeping(ms)];

async function start(lane: TaskLane, pipeline: object[], ttl?: number): Promise<string> {
  const { taskId } = await lane.create({ ...onThings, pipeline }, ttl);
  await eventually('the database shows it', async () => (await taggedAs(mongo.client, taskId)).length > 0);
  return taskId;
}

it('a task that was kept for its time says that it has expired, and how it had ended, on every way', async () => {
  const lanes = await startLanes({ uri: mongo.uri, args });
  await Promise.all(lanes.all.map(async (lane) => {
    const taskId = await start(lane, once(200));
    const error = await eventually('it has expired', async () => (await lane.ask('tasks/get', { taskId })).error, 20_000);
    const expected = { code: -32602, message: expect.stringMatching(new RegExp(`^Operation ${taskId} ended \\(succeeded\\) at 20\\S+Z; its record was kept for ${retentionMs} ms and is gone\\.`)) };
    expect(error, lane.name).toMatchObject(expected);
    for (const method of lane.era === '2025' ? ['tasks/result', 'tasks/cancel'] : ['tasks/cancel', 'tasks/update']) expect(await lane.refusal(method, { taskId, inputResponses: {} }), `${lane.name} ${method}`).toMatchObject(expected);
    if (lane.era === '2025') expect((await listTasks(lane)).tasks).toEqual([]);
  }));
  await lanes.stop();
});

describe('the time to live', () => {
  it('never drops the record of a task that runs, in this server or another on the same folder', async () => {
    const stateFolder = freshFolder();
    const lane = await openStdioLane('2025', { uri: mongo.uri, stateFolder, args });
    const taskId = await start(lane, once(60_000), 1);
    const createdAt = Date.parse((await lane.get(taskId)).raw.createdAt);
    // Others come and go, which is when records are dropped for their age.
    await eventually('its time is long over', async () => {
      await lane.call('run', { ...onThings, pipeline: [] });
      return Date.now() > createdAt + 2 * retentionMs;
    });
    const other = await openStdioLane('2025', { uri: mongo.uri, stateFolder, args });
    await other.call('run', { ...onThings, pipeline: [] });
    for (const each of [lane, other]) {
      expect(await each.get(taskId)).toMatchObject({ status: 'working', ttl: 1, statusMessage: expect.stringMatching(/^running: /) });
      expect((await listTasks(each)).tasks.map((task) => task.taskId)).toEqual([taskId]);
    }
    expect((await lane.cancel(taskId)).result).toMatchObject({ status: 'cancelled' });
    await Promise.all([lane.server.close(), other.server.close()]);
  });

  it.each([0, 1])('of %i ms still lets whoever waits have the answer', async (ttl) => {
    const lane = await openStdioLane('2025', { uri: mongo.uri, args });
    const taskId = await start(lane, once(500), ttl);
    expect((await lane.get(taskId)).ttl).toBe(ttl);
    expect(await lane.resultOf(taskId)).toMatchObject({ isError: false, structuredContent: { outcome: 'succeeded', documents: [{ _id: 1 }] } });
    expect(await eventually('it has expired', async () => (await lane.ask('tasks/get', { taskId })).error)).toMatchObject({ code: -32602, message: expect.stringContaining('ended (succeeded)') });
    await lane.server.close();
  });

  it('longer than that of the server is honoured', async () => {
    const lane = await openStdioLane('2025', { uri: mongo.uri, args });
    const short = await start(lane, once(100));
    const long = await start(lane, once(101), 60_000);
    await eventually('the short one has expired', async () => (await lane.ask('tasks/get', { taskId: short })).error);
    await eventually('the long one is older than that', async () => Date.now() > Date.parse((await lane.get(long)).raw.lastUpdatedAt) + 2 * retentionMs);
    expect(await lane.get(long)).toMatchObject({ status: 'completed', ttl: 60_000 });
    expect((await lane.resultOf(long)).structuredContent.documents).toEqual([{ _id: 1 }]);
    await lane.server.close();
  });
});

/** What a server that nobody knows anything of has left: sent, and not ended as far as the record goes. */
const unknownTo = (changes: Partial<OperationRecord>) =>
  aRecord({ principal: `${userInfo().username}@${hostname()}`, server: 'sent', sentAt: new Date().toISOString(), node: proxy.host, whereabouts: { set: null, nodes: [proxy.host] }, task: true, keepMs: 60_000, ...changes });

describe('a task of which only a record is left, and of whose server nobody knows whether it lives,', () => {
  it('is asked about on the database once a second by who waits for its result, and not without end', async () => {
    const folder = freshFolder();
    const record = unknownTo({ deadlineAt: new Date(Date.now() + 600_000).toISOString() });
    const store = openLocalStore({ folder, retentionMs: 600_000, maxResultBytes: 1_000_000 });
    await store.put(record);
    await store.close();
    const lane = await openStdioLane('2025', { uri: proxy.uri, stateFolder: folder, args: ['--sweep', 'off'] });
    expect(await lane.get(record.operationId)).toMatchObject({ status: 'working', statusMessage: expect.stringMatching(/^not_seen: .* lives is not known here/) });
    // What tasks/get knows, tasks/list shows.
    expect((await listTasks(lane)).tasks).toEqual([expect.objectContaining({ taskId: record.operationId, status: 'working', statusMessage: expect.stringMatching(/^not_seen: /) })]);
    const looks: number[] = [];
    proxy.onClientBytes((_wire, text) => { if (text.includes('$currentOp')) looks.push(performance.now()); });
    lane.raw.request('wait', 'tasks/result', { taskId: record.operationId });
    await eventually('it was looked for three times', () => looks.length >= 3);
    expect((looks[2] ?? 0) - (looks[0] ?? 0)).toBeGreaterThan(1_900);
    expect(lane.raw.answersTo('wait')).toEqual([]);
    lane.raw.cancel('wait');
    await lane.server.close();
  });

  const limits = { responseBytes: 10_000 } as ToolLimits;
  const deadlineAt = '2026-01-01T00:00:00.000Z';
  const at = (afterMs: number) => Date.parse(deadlineAt) + afterMs;

  it.each(['not_seen', 'unreachable', 'sent', 'not_sent'] as const)('is over for its client a minute after its deadline, as an error that says that its end is unknown (%s)', (server) => {
    const record = aRecord({ server, deadlineAt, task: true });
    for (const after of [-1, 0, 59_000]) expect(taskView(record, null, limits, at(after)).state).toBe('working');
    expect(taskView(record, null, limits, at(61_000))).toMatchObject({ state: 'ended', answer: { isError: true, body: { operationId: record.operationId, outcome: null, verdict: 'unknown', server, mongosh: expect.anything() } } });
  });

  it.each(['running', 'waiting_for_lock', 'idle_cursor', 'kill_pending'] as const)('works for its client as long as the database shows it, whatever its deadline was (%s)', (server) => {
    expect(taskView(aRecord({ server, deadlineAt, task: true }), null, limits, at(3_600_000)).state).toBe('working');
  });
});
