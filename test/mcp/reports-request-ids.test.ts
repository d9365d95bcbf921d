/** Request ids of any kind, cancels that miss, and progress, on the wire itself (cases D01, D02). */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Checked, sleeping, startChecked } from '../support/checked.js';
import { eventually, tagged, taggedAs } from '../support/mongo.js';
import { type RawClient, openRaw } from '../support/raw-client.js';

let rig: Checked;
let raw: RawClient;

beforeAll(async () => {
  rig = await startChecked({ args: ['--allow-js'], raw: true });
  await rig.mongo.client.db('app').collection('one').insertOne({});
  raw = await openRaw(rig.server);
});
afterAll(async () => {
  await rig.stop();
  expect(raw.garbage).toEqual([]);
});

const run = { database: 'app', collection: 'one', pipeline: sleeping() };
/** One document that the server cannot be interrupted in, for some seconds (runaways/14, made shorter). */
const reduce = (times: number) => [{ $project: { x: { $reduce: { input: { $range: [0, times] }, initialValue: 0, in: { $add: ['$$value', { $reduce: { input: { $range: [0, 1_000] }, initialValue: 0, in: { $add: ['$$value', { $reduce: { input: { $range: [0, 1_000] }, initialValue: 0, in: { $add: ['$$value', 1] } } }] } } }] } } } } }];
const shown = async () => await eventually('the database shows it', async () => {
  const rows = await tagged(rig.mongo.client);
  return rows.length > 0 && rows;
});
const gone = async () => await eventually('the database shows nothing of ours', async () => (await tagged(rig.mongo.client)).length === 0, 2_000);
const statusOf = async (askId: string | number, args: Record<string, unknown>) => {
  raw.callTool(askId, 'status', args);
  return (await raw.answer(askId)).result.structuredContent;
};
const progressOf = (token: string | number) => raw.messages.filter(({ message }) => message.method === 'notifications/progress' && message.params.progressToken === token);

describe('a request id', () => {
  it('may be 0: the run is tagged with it, cancelled by it, found by it, and never answered', async () => {
    raw.callTool(0, 'run', run);
    const [row] = await shown();
    expect(row?.['command'].comment).toMatch(/\.n:0$/);
    raw.cancel(0);
    await gone();
    expect(await statusOf('ask-0', { requestId: 0, waitMs: 5_000 })).toMatchObject({ requestId: 0, wait: 'cancelled', outcome: 'killed', cause: 'client_cancelled', verdict: 'stopped' });
    expect(raw.answersTo(0)).toEqual([]);
  });

  it('of the number 7 and of the text "7" are two requests', async () => {
    raw.callTool(7, 'run', run);
    raw.callTool('7', 'run', { ...run, comment: 'the other' });
    const rows = await eventually('both run', async () => {
      const seen = await tagged(rig.mongo.client);
      return seen.length === 2 && seen;
    });
    expect(rows.map((row) => String(row['command'].comment).split('.').at(-1)).sort()).toEqual(['n:7', 's:7 the other']);
    raw.cancel('7');
    await eventually('only the number is left', async () => (await tagged(rig.mongo.client)).length === 1, 2_000);
    expect(await statusOf('ask-s7', { requestId: '7', waitMs: 5_000 })).toMatchObject({ requestId: '7', outcome: 'killed' });
    expect(await statusOf('ask-n7', { requestId: 7 })).toMatchObject({ requestId: 7, outcome: null, server: 'running' });
    raw.cancel(7);
    await gone();
    expect([...raw.answersTo(7), ...raw.answersTo('7')]).toEqual([]);
  });

  it('of any text is carried in the tag without breaking it', async () => {
    const id = 'a.b c/"$x"\n%00';
    raw.callTool(id, 'run', run);
    const [row] = await shown();
    expect(row?.['command'].comment).toMatch(/^mongo-leash\.1\.[\w.]+\.r\.s:[\w%]+$/);
    raw.cancel(id);
    await gone();
    expect(await statusOf('ask-text', { requestId: id, waitMs: 5_000 })).toMatchObject({ requestId: id, outcome: 'killed' });
  });
});

describe('a cancel', () => {
  it('of a request that was never made, or has been answered, changes nothing', async () => {
    raw.callTool('short', 'run', { ...run, pipeline: [] });
    expect((await raw.answer('short')).result.structuredContent.outcome).toBe('succeeded');
    raw.callTool('long', 'run', run);
    await shown();
    for (const id of ['short', 'nobody', 4_711, -1]) raw.cancel(id);
    raw.send({ method: 'notifications/cancelled', params: {} });
    raw.request('after', 'ping');
    expect((await raw.answer('after')).result).toEqual({});
    expect(await statusOf('ask-short', { requestId: 'short' })).toMatchObject({ outcome: 'succeeded', wait: 'answered' });
    expect(await statusOf('ask-long', { requestId: 'long' })).toMatchObject({ outcome: null, server: 'running' });
    raw.cancel('long');
    await gone();
  });

  it('sent twice is one kill', async () => {
    raw.callTool('twice', 'run', run);
    await shown();
    raw.cancel('twice');
    raw.cancel('twice');
    await gone();
    const status = await statusOf('ask-twice', { requestId: 'twice', waitMs: 5_000 });
    expect(status).toMatchObject({ outcome: 'killed', verdict: 'stopped' });
    expect(status.kill.sent).toHaveLength(1);
  });

  it('sent in the same breath as its run leaves nothing running and no answer', async () => {
    raw.callTool('breath', 'run', run);
    raw.cancel('breath');
    const status = await eventually('its end is known', async () => {
      const answer = await statusOf(`ask-breath-${Math.random()}`, { requestId: 'breath', waitMs: 1_000 });
      return (answer.error !== undefined || answer.outcome !== null) && answer;
    });
    // Not even begun, or stopped on its way.
    expect(['never_sent', 'killed', undefined]).toContain(status.outcome);
    await gone();
    expect(raw.answersTo('breath')).toEqual([]);
  });

  it('of what cannot be interrupted is told as pending, without a word of progress or an answer', async () => {
    raw.callTool('deaf', 'run', { ...run, pipeline: reduce(90) }, { progressToken: 0 });
    await eventually('the first progress came', () => progressOf(0).length > 0);
    raw.cancel('deaf');
    const before = progressOf(0).length;
    await eventually('the database shows the kill as pending', async () => (await tagged(rig.mongo.client)).some((row) => row['killPending'] === true), 2_000);
    expect(await statusOf('ask-deaf', { requestId: 'deaf' })).toMatchObject({ server: 'kill_pending', outcome: null, wait: 'cancelled', verdict: 'pending' });
    // Time for the next progress, which would be due a second after the last.
    await delay(1_500);
    const [row] = await tagged(rig.mongo.client);
    expect(row, 'it must still have been running for this to mean anything').toBeDefined();
    expect(progressOf(0)).toHaveLength(before);
    await eventually('it has ended by itself', async () => (await tagged(rig.mongo.client)).length === 0, 50_000);
    expect((await statusOf('ask-deaf-2', { requestId: 'deaf', waitMs: 5_000 })).outcome).not.toBeNull();
    expect(raw.answersTo('deaf')).toEqual([]);
  });
});

describe('progress', () => {
  it('comes at most once a second, rises, and says what the database reports', async () => {
    raw.callTool('progress', 'run', { ...run, waitMs: 3_500 }, { progressToken: 'token' });
    const answer = await raw.answer('progress');
    expect(answer.result.structuredContent).toMatchObject({ wait: 'detached', server: 'running' });
    const { operationId } = answer.result.structuredContent;
    expect(await taggedAs(rig.mongo.client, operationId)).toHaveLength(1);
    const told = progressOf('token').map(({ message }) => message.params);
    expect(told.length).toBeGreaterThanOrEqual(2);
    expect(told.length).toBeLessThanOrEqual(3);
    for (const [at, { progress, message }] of told.entries()) {
      expect(message).toMatch(/^running: /);
      // Seconds since the start, rounded to tenths.
      expect(progress - (told[at - 1]?.progress ?? 0)).toBeGreaterThanOrEqual(0.9);
    }
    raw.callTool('stop', 'kill', { id: operationId });
    expect((await raw.answer('stop')).result.structuredContent.verdict).toBe('stopped');
    expect(progressOf('token')).toHaveLength(told.length);
  });

  it('is not sent to who did not ask for it', async () => {
    const before = raw.messages.length;
    raw.callTool('quiet', 'run', { ...run, waitMs: 1_500 });
    const { operationId } = (await raw.answer('quiet')).result.structuredContent;
    expect(raw.messages.slice(before).filter(({ message }) => message.method !== undefined)).toEqual([]);
    raw.callTool('quiet-stop', 'kill', { id: operationId });
    await raw.answer('quiet-stop');
    await gone();
  });
});
