/** A kill says what the database showed, hits the right operation only, and may be asked for at any time (cases D03, D04, D05). */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type Checked, startChecked, startDetached } from '../support/checked.js';
import { eventually, running, tagged, taggedAs } from '../support/mongo.js';

let rig: Checked;
const sleep = runawayCase('06');
const runSleep = { database: 'app', collection: sleep.op.coll, pipeline: sleep.op.pipeline };
const runShort = { database: 'app', collection: 'four', pipeline: [] };

beforeAll(async () => {
  rig = await startChecked({ args: ['--allow-js'] });
  await setUpRunaway(rig.mongo.client, 'app', sleep);
});
afterEach(async () => {
  expect(await tagged(rig.mongo.client), 'a test leaves nothing running').toEqual([]);
});
afterAll(async () => {
  await rig.stop();
});

describe('kill', () => {
  it('of an operation that has ended says that there was nothing to kill (D03)', async () => {
    const { server } = rig;
    const { operationId } = await server.call('run', runShort);
    const answer = await server.call('kill', { id: operationId });
    expect(answer).toMatchObject({ operationId, verdict: 'ended_first', outcome: 'succeeded', server: 'ended' });
    expect(answer.next).toContain('nothing to kill');
    // No kill was sent, and none is told of.
    expect(answer.kill).toBeUndefined();
    expect(await server.call('status', { id: operationId })).toMatchObject({ outcome: 'succeeded', returned: 4 });
  });

  it('of an operation that failed says so, and changes nothing of it (D03)', async () => {
    const { server } = rig;
    const { operationId } = await server.call('run', { ...runShort, pipeline: [{ $project: { x: { $divide: [1, 0] } } }] });
    expect(await server.call('kill', { id: operationId })).toMatchObject({ verdict: 'ended_first', outcome: 'failed' });
  });

  it('of an id that was never given out is not_found, after a look at the database (D03)', async () => {
    const answer = await rig.server.callRaw('kill', { id: '0'.repeat(26) });
    expect(answer.isError).toBe(true);
    expect(answer.structuredContent).toMatchObject({ verdict: 'not_found', error: { code: 'not_found' } });
    expect(answer.structuredContent.error.databaseState).toContain(rig.mongo.hosts[0]);
  });

  it.each(['', ' ', 'x', '../../etc/passwd', '{"$ne": null}', 'a'.repeat(10_000), '.*', '0'.repeat(25), `${'0'.repeat(25)}L`])('of an id that cannot be one is refused with what an id looks like: %j', async (id) => {
    const answer = await rig.server.callRaw('kill', { id });
    expect(answer.isError).toBe(true);
    expect(answer.structuredContent.error.code).toBe(id === '' ? 'bad_argument' : 'not_found');
    expect(answer.content[0].text.length).toBeLessThan(600);
  });

  it('needs one id, and says so', async () => {
    const { server } = rig;
    expect((await server.call('kill', {})).error).toMatchObject({ code: 'bad_argument', message: expect.stringContaining('id') });
    expect((await server.call('kill', { id: '0'.repeat(26), requestId: 1 })).error).toMatchObject({ code: 'bad_argument', message: expect.stringContaining('not both') });
    expect(await server.call('kill', { requestId: 4_711 })).toMatchObject({ verdict: 'not_found', error: { code: 'not_found' } });
  });

  it('asked for twice, one after the other, reports the first kill again (D03)', async () => {
    const { server, mongo } = rig;
    const { operationId } = await startDetached(rig, runSleep);
    const first = await server.call('kill', { id: operationId });
    expect(first).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us', cause: 'kill_tool' });
    expect(await taggedAs(mongo.client, operationId)).toEqual([]);
    const second = await server.call('kill', { id: operationId });
    expect(second).toMatchObject({ verdict: 'stopped', outcome: 'killed' });
    expect(second.kill.requestedAt).toBe(first.kill.requestedAt);
    expect(second.kill.sent).toEqual(first.kill.sent);
  });

  it('asked for twice at once is one kill, told to both', async () => {
    const { server } = rig;
    const { operationId } = await startDetached(rig, runSleep);
    const both = await Promise.all([server.call('kill', { id: operationId }), server.call('kill', { id: operationId })]);
    for (const answer of both) expect(answer).toMatchObject({ verdict: 'stopped', outcome: 'killed' });
    expect(both[0].kill.sent).toHaveLength(1);
    expect(both[1].kill.sent).toEqual(both[0].kill.sent);
  });

  it('shows before, what was sent where, and after, with the opid as the database has it (D05)', async () => {
    const { server, mongo } = rig;
    const { operationId } = await startDetached(rig, runSleep);
    const [row] = await taggedAs(mongo.client, operationId);
    const { kill } = await server.call('kill', { id: operationId });
    const node = mongo.hosts[0];
    expect(kill.before).toContainEqual(expect.objectContaining({ node, saw: 'operation', opid: String(row?.['opid']), namespace: 'app.four' }));
    expect(kill.sent).toEqual([expect.objectContaining({ node, method: 'killOp', target: String(row?.['opid']) })]);
    expect(kill.after).toContainEqual(expect.objectContaining({ node, saw: 'nothing' }));
    expect(kill.elapsedMs).toBeLessThan(2_000);
  });

  it('stops one of two identical operations, and leaves the other and a stranger to run (D04)', async () => {
    const { server, mongo } = rig;
    const first = await startDetached(rig, runSleep);
    const second = await startDetached(rig, { ...runSleep, startAnother: true });
    const stranger = mongo.client.db('app').collection('four').aggregate(runSleep.pipeline, { comment: 'a stranger' }).toArray().then(() => 'ended', () => 'killed');
    await eventually('the stranger runs', async () => (await running(mongo.client, 'a stranger')).length === 1);
    const opids = async () => [...(await taggedAs(mongo.client, second.operationId)), ...(await running(mongo.client, 'a stranger'))].map((row) => row['opid'] as number);
    const before = await opids();
    expect(await server.call('kill', { id: first.operationId })).toMatchObject({ verdict: 'stopped' });
    expect(await taggedAs(mongo.client, first.operationId)).toEqual([]);
    await delay(3_000);
    expect(before).toHaveLength(2);
    expect(await opids()).toEqual(before);
    expect(await server.call('kill', { id: second.operationId })).toMatchObject({ verdict: 'stopped' });
    await mongo.client.db('admin').command({ killOp: 1, op: before[1] });
    expect(await stranger).toBe('killed');
  });

  it("does not take another session's request id for one of its own, and its operation runs on", async () => {
    const { server, mongo } = rig;
    const other = await rig.another({ args: ['--allow-js'] });
    const handle = await startDetached(rig, runSleep);
    for (const tool of ['kill', 'status', 'result']) {
      const answer = await other.call(tool, { requestId: handle.requestId });
      expect(answer.error.code).toBe('not_found');
      expect(JSON.stringify(answer)).not.toContain(handle.operationId);
    }
    expect(await taggedAs(mongo.client, handle.operationId)).toHaveLength(1);
    expect(await server.call('kill', { requestId: handle.requestId })).toMatchObject({ operationId: handle.operationId, verdict: 'stopped' });
  });

  it('of an operation that another process of the same person started finds it by its tag', async () => {
    const { server, mongo } = rig;
    const other = await rig.another({ args: ['--allow-js'] });
    const handle = await startDetached(rig, runSleep);
    expect(await other.call('status', { id: handle.operationId })).toMatchObject({ server: 'running', outcome: null });
    expect(await other.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped' });
    expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);
    // Who started it learns from the reply that it was killed, and not by itself.
    expect(await server.call('status', { id: handle.operationId, waitMs: 5_000 })).toMatchObject({ outcome: 'killed', by: 'others' });
  });
});
