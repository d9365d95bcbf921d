/** Agents repeat calls, and clients cut them: neither starts a second copy that nobody asked for (case D29). */
import { hostname, userInfo } from 'node:os';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { formatTag, principalHash } from '../../src/domain/tag.js';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type Checked, sleeping, startChecked, startDetached } from '../support/checked.js';
import { eventually, tagged, taggedAs } from '../support/mongo.js';

let rig: Checked;
const group = runawayCase('03');
const run = { database: 'app', collection: 'one', pipeline: sleeping() };
const runGroup = { database: 'app', collection: group.op.coll, pipeline: group.op.pipeline };

beforeAll(async () => {
  rig = await startChecked({ args: ['--allow-js'] });
  await rig.mongo.client.db('app').collection<{ _id: number }>('one').insertOne({ _id: 1 });
  await setUpRunaway(rig.mongo.client, 'app', group);
});
afterEach(async () => {
  expect(await tagged(rig.mongo.client), 'a test leaves nothing running').toEqual([]);
});
afterAll(async () => {
  await rig.stop();
});

const kill = async (id: string) => { expect(await rig.server.call('kill', { id })).toMatchObject({ verdict: 'stopped' }); };
/** What runs, counted by the database. */
const countNow = async () => (await tagged(rig.mongo.client)).length;

describe('a call that takes longer than it may wait', () => {
  it('is answered before its client would cut it, and status later tells the end (D29)', async () => {
    const { server, mongo } = rig;
    const { structuredContent: handle } = (await server.client.callTool({ name: 'run', arguments: { ...runGroup, waitMs: 2_000, maxTimeMS: 5_000 } }, undefined, { timeout: 6_000 })) as { structuredContent: any };
    expect(handle).toMatchObject({ wait: 'detached', server: 'running', outcome: null, maxTimeMS: 5_000 });
    expect(handle.next).toContain(handle.operationId);
    expect(handle.pollAfterMs).toBeGreaterThan(0);
    expect(await taggedAs(mongo.client, handle.operationId)).toHaveLength(1);
    const status = await server.call('status', { id: handle.operationId, waitMs: 15_000 });
    expect(status).toMatchObject({ outcome: 'timed_out', server: 'ended', error: { serverCode: 50 } });
  });

  it('gives its documents to status when it has succeeded meanwhile (D29)', async () => {
    const { server } = rig;
    const handle = await startDetached(rig, { ...run, pipeline: sleeping(1_500) });
    expect(await server.call('status', { id: handle.operationId })).toMatchObject({ outcome: null, server: 'running', wait: 'detached' });
    const status = await server.call('status', { id: handle.operationId, waitMs: 10_000 });
    expect(status).toMatchObject({ outcome: 'succeeded', wait: 'detached', documents: [{ _id: 1 }], returned: 1, more: false });
    expect(await server.call('status', { requestId: handle.requestId })).toMatchObject({ operationId: handle.operationId, outcome: 'succeeded', documents: [{ _id: 1 }] });
  });
});

describe('a call that repeats one that was handed over', () => {
  it('is told the running id, and nothing is started (D29)', async () => {
    const { server, mongo } = rig;
    const first = await startDetached(rig, run);
    const repeated = await server.call('run', run);
    expect(repeated).toMatchObject({ alreadyRunning: true, operationId: first.operationId, outcome: null });
    expect(repeated.next).toContain(first.operationId);
    expect(repeated.next).toContain('startAnother');
    expect(await countNow()).toBe(1);
    expect(await taggedAs(mongo.client, first.operationId)).toHaveLength(1);
    await kill(first.operationId);
  });

  it('is recognised however the arguments are spelt, and whatever is asked about the answer alone', async () => {
    const { server } = rig;
    const first = await startDetached(rig, { ...run, limit: 10 });
    const repeats = [
      { pipeline: run.pipeline, collection: 'one', limit: '10', database: 'app' },
      { ...run, pipeline: JSON.stringify(run.pipeline), limit: 10 },
      { ...run, pipeline: run.pipeline[0], limit: 10 },
      { ...run, limit: 10, waitMs: 0, canonical: true, responseBytesLimit: 5_000, comment: 'again' },
    ];
    for (const repeat of repeats) expect(await server.call('run', repeat)).toMatchObject({ alreadyRunning: true, operationId: first.operationId });
    expect(await countNow()).toBe(1);
    await kill(first.operationId);
  });

  it('that asks the database for something else is started', async () => {
    const { server } = rig;
    const first = await startDetached(rig, run);
    const others = [{ ...run, limit: 7 }, { ...run, collection: 'four' }, { ...run, pipeline: sleeping(29_999) }, { ...run, maxTimeMS: 60_000 }, { ...run, let: { a: 1 } }];
    await rig.mongo.client.db('app').collection('four').insertOne({});
    const started = [];
    for (const other of others) started.push(await startDetached(rig, other));
    expect(new Set([first, ...started].map(({ operationId }) => operationId)).size).toBe(6);
    expect(await countNow()).toBe(6);
    for (const { operationId } of [first, ...started]) await kill(operationId);
    expect((await server.call('operations')).running).toEqual([]);
  });

  it('starts another when it says startAnother', async () => {
    const first = await startDetached(rig, run);
    const second = await startDetached(rig, { ...run, startAnother: true });
    expect(second.operationId).not.toBe(first.operationId);
    expect(await countNow()).toBe(2);
    await kill(first.operationId);
    await kill(second.operationId);
  });

  it('starts anew when that one was killed or has ended', async () => {
    const { server } = rig;
    const first = await startDetached(rig, run);
    await kill(first.operationId);
    const second = await startDetached(rig, run);
    expect(second.operationId).not.toBe(first.operationId);
    await kill(second.operationId);
    const short = { ...run, pipeline: [] };
    const ended = await server.call('run', short);
    expect((await server.call('run', short)).operationId).not.toBe(ended.operationId);
  });
});

describe('a call that is made twice at once', () => {
  it('runs twice, and the second is told the id of the first', async () => {
    const { server } = rig;
    const first = server.call('run', { ...run, waitMs: 2_500 });
    await eventually('the first runs', async () => (await countNow()) === 1);
    const second = await startDetached(rig, { ...run, startAnother: false });
    const { operationId } = await first;
    expect(second.operationId).not.toBe(operationId);
    expect(second.notes).toContainEqual(expect.stringContaining(operationId));
    await kill(operationId);
    await kill(second.operationId);
  });
});

describe('operations', () => {
  it('lists so many that its answer keeps its size, and says how many more there are', async () => {
    const { server, mongo } = rig;
    const collection = mongo.client.db('app').collection<{ _id: number }>(`many ${'n'.repeat(150)}`);
    await collection.insertMany(Array.from({ length: 10 }, (_, _id) => ({ _id })));
    // Idle cursors with tags of the same person, as a past life of the server would leave them.
    const tagOf = (n: number) => formatTag({ instance: 'past000000', operationId: String(n).padStart(26, '0'), principal: principalHash(`${userInfo().username}@${hostname()}`), session: 'past00', kind: 'r', request: 'n:1', own: '' });
    const cursors = Array.from({ length: 120 }, (_, n) => collection.aggregate([], { batchSize: 1, comment: tagOf(n) }));
    await Promise.all(cursors.map((cursor) => cursor.next()));
    expect(await countNow()).toBe(120);
    const { content, structuredContent: list } = await server.callRaw('operations');
    expect(content[0].text.length).toBeLessThanOrEqual(40_000);
    expect(list.running.length).toBeGreaterThanOrEqual(20);
    expect(list.running.length + list.runningNotShown).toBe(120);
    expect(list.running[0]).toMatchObject({ server: 'idle_cursor', evidence: [expect.objectContaining({ saw: 'idle_cursor' })] });
    await Promise.all(cursors.map((cursor) => cursor.close()));
    const after = await server.call('operations');
    expect(after.running).toEqual([]);
    expect(after.ended[0]).toMatchObject({ outcome: 'lost', server: 'not_seen' });
    expect(after.ended.length + after.endedNotShown).toBeGreaterThanOrEqual(120);
  });

  it('lists what runs and what ended lately, and nothing of others', async () => {
    const { server, mongo } = rig;
    const stranger = mongo.client.db('app').collection('one').aggregate(sleeping(), { comment: 'mongo-leash.not.ours' }).toArray().catch(() => undefined);
    const handle = await startDetached(rig, { ...run, comment: 'the long one' });
    const ended = await server.call('run', { ...run, pipeline: [] });
    const list = await server.call('operations');
    expect(list.running.map(({ operationId }: { operationId: string }) => operationId)).toEqual([handle.operationId]);
    expect(list.running[0]).toMatchObject({ database: 'app', collection: 'one', server: 'running', evidence: [expect.objectContaining({ saw: 'operation' })] });
    expect(list.ended[0]).toMatchObject({ operationId: ended.operationId, outcome: 'succeeded' });
    expect(list).toMatchObject({ looked: mongo.hosts, silent: [], load: { running: 1, queued: 0 } });
    await kill(handle.operationId);
    const [row] = await mongo.client.db('admin').aggregate([{ $currentOp: {} }, { $match: { 'command.comment': 'mongo-leash.not.ours' } }]).toArray();
    await mongo.client.db('admin').command({ killOp: 1, op: row?.['opid'] });
    await stranger;
  });
});
