/** Limits are settled before the database is asked, and the answer says which one was used (case D06). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type Checked, sleeping, startChecked } from '../support/checked.js';
import { eventually, tagged, taggedAs } from '../support/mongo.js';
import type { TestServer } from '../support/server.js';

let rig: Checked;
let strict: TestServer;
const regex = runawayCase('02');
const run = { database: 'app', collection: regex.op.coll, pipeline: regex.op.pipeline };
const short = { database: 'app', collection: 'strings', pipeline: [{ $sort: { _id: 1 } }, { $project: { _id: 1 } }] };

beforeAll(async () => {
  rig = await startChecked();
  await setUpRunaway(rig.mongo.client, 'app', regex);
  strict = await rig.another({ args: ['--max-time-ms', '1500', '--max-time-ms-ceiling', '1500', '--max-limit', '50', '--limit', '20', '--deny-disk-use', '--allow-js'] });
});
afterAll(async () => {
  await rig.stop();
});

/** What the database was asked, as its profiler saw it: the witness for "before the database is asked". */
async function profiled(work: () => Promise<void>): Promise<number> {
  const db = rig.mongo.client.db('app');
  await db.command({ profile: 2 });
  await work();
  await db.command({ profile: 0 });
  const count = await db.collection('system.profile').countDocuments({ 'command.comment': { $regex: '^mongo-leash\\.1\\.' } });
  await db.collection('system.profile').drop();
  return count;
}

describe('maxTimeMS', () => {
  it('of 2,000 ends the operation at about 2 s as a time limit, which is not a cancel (D06)', async () => {
    const { server, mongo } = rig;
    const answer = await server.callRaw('run', { ...run, maxTimeMS: 2_000 });
    expect(answer.isError).toBe(true);
    const body = answer.structuredContent;
    expect(body).toMatchObject({ outcome: 'timed_out', server: 'ended', wait: 'answered', maxTimeMS: 2_000, error: { code: 'timed_out', serverCode: 50, serverCodeName: 'MaxTimeMSExpired' } });
    expect(body.cause).toBeUndefined();
    expect(body.by).toBeUndefined();
    expect(body.elapsedMs).toBeGreaterThanOrEqual(1_900);
    expect(body.elapsedMs).toBeLessThan(4_000);
    expect(body.next).toMatch(/2000 ms.*maxTimeMS, up to 3600000/);
    expect(await taggedAs(mongo.client, body.operationId)).toEqual([]);
  });

  it.each([
    [0, 'at least 1'],
    [-1, 'at least 1'],
    [1.5, 'whole number'],
    [2_147_483_648, 'at most 2147483647'],
    [1e300, 'maxTimeMS'],
    ['abc', 'maxTimeMS'],
    ['', 'maxTimeMS'],
    ['0', 'at least 1'],
    [null, 'maxTimeMS'],
    [true, 'maxTimeMS'],
    [[5], 'maxTimeMS'],
    [{ $numberLong: '5000' }, 'maxTimeMS'],
  ])('of %j is refused before the database is asked (D06)', async (maxTimeMS, says) => {
    let answer: any;
    expect(await profiled(async () => { answer = await rig.server.callRaw('run', { ...short, maxTimeMS }); })).toBe(0);
    expect(answer.isError).toBe(true);
    expect(answer.structuredContent.error).toMatchObject({ code: 'bad_argument', path: 'maxTimeMS', databaseState: 'Nothing was sent to the database.' });
    expect(answer.structuredContent.error.message).toContain('maxTimeMS');
    expect(answer.structuredContent.error.message).toContain(says);
    expect(answer.structuredContent.error.message.length).toBeLessThan(150);
  });

  it('as the text "5000" is read as a number, and the answer says so (D06)', async () => {
    const answer = await rig.server.call('run', { ...short, maxTimeMS: '5000' });
    expect(answer).toMatchObject({ outcome: 'succeeded', maxTimeMS: 5_000, notes: [expect.stringMatching(/maxTimeMS came as text.*5000/)] });
  });

  it('above the ceiling of the server is lowered to it, and the answer says so (D06)', async () => {
    const answer = await strict.call('run', { ...run, maxTimeMS: 60_000 });
    expect(answer).toMatchObject({ outcome: 'timed_out', maxTimeMS: 1_500, error: { serverCode: 50 } });
    expect(answer.notes).toEqual([expect.stringMatching(/maxTimeMS was 60000.*at most 1500/)]);
    expect(answer.next).toContain('the most that this server allows');
    expect(answer.elapsedMs).toBeLessThan(3_500);
  });

  it('that the server ignores, as in JavaScript, is kept by our own deadline and named a time limit', async () => {
    const { mongo } = rig;
    const answer = await strict.call('run', { database: 'app', collection: 'strings', pipeline: [{ $limit: 1 }, ...sleeping(20_000)], maxTimeMS: 500 });
    // The deadline is 2 s after maxTimeMS, and a kill within 2 s after that.
    expect(answer).toMatchObject({ outcome: 'timed_out', by: 'us', cause: 'deadline', error: { code: 'timed_out' } });
    expect(answer.elapsedMs).toBeLessThan(4_500);
    expect(answer.kill).toMatchObject({ verdict: 'stopped', cause: 'deadline' });
    expect(await taggedAs(mongo.client, answer.operationId)).toEqual([]);
  });

  it('is what the server sends when the call names none', async () => {
    const { server, mongo } = rig;
    const handle = await server.call('run', { ...run, waitMs: 0 });
    const [row] = await eventually('the database shows it', async () => {
      const rows = await taggedAs(mongo.client, handle.operationId);
      return rows.length > 0 && rows;
    });
    expect(row?.['command'].maxTimeMS).toBe(300_000);
    expect(await server.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped' });
    expect(await tagged(mongo.client)).toEqual([]);
  });
});

describe('waitMs', () => {
  it.each([-1, 0.5, 600_001, 'soon', null])('of %j is refused', async (waitMs) => {
    for (const [tool, args] of [['run', short], ['kill', { requestId: 1 }], ['status', { requestId: 1 }]] as const) {
      const { error } = await rig.server.call(tool, { ...args, waitMs });
      expect(error).toMatchObject({ code: 'bad_argument', path: 'waitMs' });
    }
  });
});

describe('limit', () => {
  it.each([0, -5, 2.5, 'ten', null])('of %j is refused', async (limit) => {
    expect((await rig.server.call('run', { ...short, limit })).error).toMatchObject({ code: 'bad_argument', path: 'limit' });
  });

  it('above the maximum of 10,000 is lowered to it, and the answer says so', async () => {
    const answer = await rig.server.call('run', { ...short, limit: 1_000_000 });
    expect(answer.notes).toContainEqual(expect.stringMatching(/limit was 1000000.*at most 10000/));
    expect(answer).toMatchObject({ outcome: 'succeeded', more: true, truncated: true });
    const { documentsRead } = await rig.server.call('result', { id: answer.operationId, offset: 0, limit: 1 });
    expect(documentsRead).toBe(10_000);
  });

  it('of the operator is a default and a ceiling', async () => {
    expect(await strict.call('run', short)).toMatchObject({ returned: 20, more: true, truncated: false });
    const asked = await strict.call('run', { ...short, limit: 51 });
    expect(asked).toMatchObject({ returned: 50, more: true });
    expect(asked.notes).toContainEqual(expect.stringMatching(/limit was 51.*at most 50/));
    expect(await strict.call('run', { ...short, limit: 30 })).toMatchObject({ returned: 30, more: true });
  });
});

describe('allowDiskUse', () => {
  it('is refused where the operator denies it, and passed on elsewhere', async () => {
    expect((await strict.call('run', { ...short, allowDiskUse: true })).error).toMatchObject({ code: 'refused_by_policy', path: 'allowDiskUse' });
    expect(await rig.server.call('run', { ...short, allowDiskUse: true })).toMatchObject({ outcome: 'succeeded' });
  });
});
