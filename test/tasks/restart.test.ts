/** What a task says to a client that comes back when the server that made it is dead. */

import type { ChildProcess } from 'node:child_process';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { sleeping } from '../support/checked.js';
import { startHttpServer } from '../support/http-server.js';
import { type TestMongo, eventually, killTagged, startMongo, taggedAs } from '../support/mongo.js';
import { freshFolder } from '../support/records.js';
import { type Era, type ShownTask, type TaskLane, listTasks, openHttpLane, openStdioLane } from '../support/task-lanes.js';

const ways = (['stdio', 'http'] as const).flatMap((transport) => (['2025', '2026'] as const).map((era) => ({ transport, era })));
const token = 'token-of-an-agent-0123456789abcdef';
let mongo: TestMongo;
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection<{ _id: number }>('things').insertMany([{ _id: 1 }, { _id: 2 }]);
});
/** None outlives its test, also when it fails. */
const ofTest = new Set<ChildProcess>();
afterEach(async () => {
  for (const child of ofTest) child.kill('SIGKILL');
  ofTest.clear();
  await killTagged(mongo.client);
});
afterAll(async () => {
  await mongo?.stop();
});

interface Life {
  lane: TaskLane;
  /** As its client ends it: the end of stdin, and SIGTERM over HTTP. */
  end(): Promise<void>;
  killHard(): Promise<void>;
}

async function live(transport: 'stdio' | 'http', era: Era, stateFolder: string, args: string[] = []): Promise<Life> {
  const options = { uri: mongo.uri, stateFolder, args: ['--allow-js', '--allow-writes', ...args] };
  if (transport === 'stdio') {
    const { server, ...lane } = await openStdioLane(era, options);
    ofTest.add(server.process);
    return { lane, end: async () => void (await server.close()), killHard: async () => { server.process.kill('SIGKILL'); await server.exited; } };
  }
  const http = await startHttpServer({ ...options, env: { MONGO_LEASH_TOKENS: `agent leash:kill ${token}` } });
  ofTest.add(http.process);
  return { lane: await openHttpLane(era, http, token), end: async () => void (await http.stop()), killHard: async () => { http.process.kill('SIGKILL'); await http.exited; } };
}

const onThings = { database: 'app', collection: 'things' };

async function start(lane: TaskLane, pipeline: object[]): Promise<string> {
  const { taskId } = await lane.create({ ...onThings, pipeline });
  await eventually('the database shows it', async () => (await taggedAs(mongo.client, taskId)).length > 0);
  return taskId;
}

const ended = (lane: TaskLane, taskId: string): Promise<ShownTask> => eventually('it has ended', async () => {
  const task = await lane.get(taskId);
  return task.status !== 'working' && task;
}, 20_000);

/** Over without success, and not by its client: the same answer in both versions. */
async function expectFailed(lane: TaskLane, taskId: string, answer: object): Promise<void> {
  expect((await ended(lane, taskId)).status).toBe(lane.era === '2025' ? 'failed' : 'completed');
  expect(await lane.resultOf(taskId)).toMatchObject({ isError: true, structuredContent: { operationId: taskId, ...answer } });
}

describe.each(ways)('$transport $era: the task of a server that is no more', ({ transport, era }) => {
  it('says how it ended, with its documents when it had succeeded, and the report of the kill when the end of the server killed it', async () => {
    const folder = freshFolder();
    const first = await live(transport, era, folder);
    const succeeded = await start(first.lane, [{ $sort: { _id: 1 } }, ...sleeping(100)]);
    const cancelled = await start(first.lane, sleeping(60_000));
    await first.lane.cancel(cancelled);
    const before = await Promise.all([ended(first.lane, succeeded), ended(first.lane, cancelled)]);
    const result = await first.lane.resultOf(succeeded);
    const running = await start(first.lane, sleeping(59_000));
    await first.end();
    expect(await taggedAs(mongo.client, running)).toEqual([]);

    const second = await live(transport, era, folder);
    const { lane } = second;
    const after = await Promise.all([lane.get(succeeded), lane.get(cancelled)]);
    expect(after.map(({ status, statusMessage }) => ({ status, statusMessage }))).toEqual(before.map(({ status, statusMessage }) => ({ status, statusMessage })));
    expect(after.map(({ status }) => status)).toEqual(['completed', 'cancelled']);
    expect(await lane.resultOf(succeeded)).toEqual(result);
    expect(result.structuredContent.documents).toEqual([{ _id: 1 }, { _id: 2 }]);
    await expectFailed(lane, running, { outcome: 'killed', by: 'us', cause: 'shutdown', kill: expect.objectContaining({ verdict: 'stopped', cause: 'shutdown', sent: expect.arrayContaining([expect.objectContaining({ method: 'killSessions' })]) }) });
    if (era === '2025') expect((await listTasks(lane)).tasks.map(({ taskId, status }) => ({ taskId, status }))).toEqual([{ taskId: running, status: 'failed' }, { taskId: cancelled, status: 'cancelled' }, { taskId: succeeded, status: 'completed' }]);
    await second.end();
  });

  it('that was killed hard works on, is lost when it is gone without a word, and is ended by the sweep', async () => {
    const folder = freshFolder();
    const first = await live(transport, era, folder);
    const read = await start(first.lane, sleeping(60_000));
    const write = await start(first.lane, [...sleeping(59_000), { $merge: { into: 'merged' } }]);
    await first.killHard();
    expect(await taggedAs(mongo.client, write)).toHaveLength(1);

    const watching = await live(transport, era, folder, ['--sweep', 'off']);
    expect(await watching.lane.get(write)).toMatchObject({ status: 'working', statusMessage: expect.stringMatching(/^running: /) });
    for (const { opid } of await taggedAs(mongo.client, read)) await mongo.client.db('admin').command({ killOp: 1, op: opid });
    await eventually('the read is gone', async () => (await taggedAs(mongo.client, read)).length === 0);
    await expectFailed(watching.lane, read, { outcome: 'lost', reason: expect.stringMatching(/is dead/) });
    await watching.end();

    const sweeping = await live(transport, era, folder);
    await expectFailed(sweeping.lane, write, { outcome: 'lost', cause: 'sweep', kill: expect.objectContaining({ cause: 'sweep' }), writes: expect.objectContaining({ effects: expect.stringMatching(/possible/) }) });
    expect(await taggedAs(mongo.client, write)).toEqual([]);
    await sweeping.end();
  });

  it('and still runs is cancelled by the next server as by the first', async () => {
    const folder = freshFolder();
    const first = await live(transport, era, folder);
    const write = await start(first.lane, [...sleeping(60_000), { $merge: { into: 'merged' } }]);
    await first.killHard();
    const second = await live(transport, era, folder, ['--sweep', 'off']);
    const answer = await second.lane.cancel(write);
    expect(await eventually('it is gone', async () => (await taggedAs(mongo.client, write)).length === 0)).toBe(true);
    // How a write of another process ended is never known for sure: that is no proven cancel.
    if (era === '2025') expect(answer.error).toMatchObject({ code: -32602, message: expect.stringMatching(/^The task is over, and nothing proves that this cancellation ended it: it is failed\. lost: /) });
    await expectFailed(second.lane, write, { outcome: 'lost', cause: 'tasks_cancel' });
    await second.end();
  });
});

it('an operation that was handed over plainly, and then again as a task, is a task to the next server too', async () => {
  const folder = freshFolder();
  const first = await live('stdio', '2025', folder);
  const request = { ...onThings, pipeline: sleeping(60_000) };
  const handle = await first.lane.call('run', { ...request, waitMs: 0 });
  expect((await listTasks(first.lane)).tasks).toEqual([]);
  expect((await first.lane.create(request)).taskId).toBe(handle.operationId);
  await first.killHard();
  const second = await live('stdio', '2025', folder, ['--sweep', 'off']);
  expect((await listTasks(second.lane)).tasks.map(({ taskId }) => taskId)).toEqual([handle.operationId]);
  await second.end();
});
