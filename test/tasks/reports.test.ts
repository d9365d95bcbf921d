/** What others reported of cancels and long calls, over HTTP, with clients of both protocol versions that no one here wrote (cases D01, D02, D03, D07, D28, D29). */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { productTools } from '../../src/mcp/tools/all.js';
import { type RunawayCase, runawayCase, setUpRunaway } from '../support/cases.js';
import { type HttpClient, type HttpTestServer, connectLegacy, connectModern, startHttpServer } from '../support/http-server.js';
import { type TestMongo, eventually, killTagged, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { type TaskLane, openHttpLane } from '../support/task-lanes.js';

const crossJoin = runawayCase('01');
const sleep = runawayCase('06');
const token = 'token-of-an-agent-0123456789abcdef';
let mongo: TestMongo;
let http: HttpTestServer;
beforeAll(async () => {
  mongo = await startMongo();
  for (const runaway of [crossJoin, sleep]) await setUpRunaway(mongo.client, 'app', runaway);
  http = await startHttpServer({ uri: mongo.uri, args: ['--allow-js'], env: { MONGO_LEASH_TOKENS: `agent leash:kill ${token}` } });
});
afterEach(() => killTagged(mongo.client));
afterAll(async () => {
  await http?.stop();
  await mongo?.stop();
});

const runOf = ({ op }: RunawayCase) => ({ database: 'app', collection: op.coll, pipeline: op.pipeline });
const idOf = (row: Record<string, any>) => String(row['command']?.comment ?? row['cursor']?.originatingCommand?.comment).split('.')[3] ?? '';

async function timed<T>(what: () => Promise<T>): Promise<{ answer: T; ms: number }> {
  const startedAt = performance.now();
  return { answer: await what(), ms: performance.now() - startedAt };
}

describe.each([['2025', connectLegacy], ['2026', connectModern]] as const)('http %s:', (era, connect) => {
  let client: HttpClient;
  let lane: TaskLane;
  beforeAll(async () => {
    [client, lane] = await Promise.all([connect(http.url, token), openHttpLane(era, http, token)]);
  });
  afterAll(async () => {
    await client?.close();
  });

  /** Starts a run, and has its client cancel it when the database has shown it for a second. */
  async function cancelAfterASecond(runaway: RunawayCase) {
    const stop = new AbortController();
    const call = client.call('run', { ...runOf(runaway), waitMs: 60_000 }, { signal: stop.signal }).then(() => 'answered', () => 'cancelled');
    const row = await eventually('the database has shown the run for a second', async () => (await tagged(mongo.client)).find(({ microsecs_running: micros }) => Number(micros) > 1_000_000));
    stop.abort();
    const cancelledAt = performance.now();
    expect(await call).toBe('cancelled');
    await eventually('the database shows it no more', async () => (await tagged(mongo.client)).length === 0, 2_000);
    expect(performance.now() - cancelledAt).toBeLessThan(2_000);
    return { id: idOf(row), opid: String(row['opid']) };
  }

  it.each([['a runaway join (D01)', crossJoin], ['JavaScript, for which a dropped socket does nothing (D07)', sleep]])('a cancelled call is killed in the database, and status tells with what evidence: %s', async (_what, runaway) => {
    const { id, opid } = await cancelAfterASecond(runaway);
    const status = await eventually('the report holds a look after the kill', async () => {
      const answer = await client.call('status', { id, waitMs: 5_000 });
      return answer.kill.after.some(({ saw }: { saw: string }) => saw === 'nothing') && answer;
    });
    expect(status).toMatchObject({ outcome: 'killed', by: 'us', verdict: 'stopped', wait: 'cancelled', cause: era === '2025' ? 'client_cancelled' : 'stream_closed' });
    expect(status.kill.sent).toContainEqual(expect.objectContaining({ method: 'killOp', target: opid }));
    // The server's own word about the call, not that a promise was rejected.
    expect(status.evidence).toContainEqual(expect.objectContaining({ saw: 'reply', detail: 'error 11601' }));
    expect(http.process.exitCode).toBeNull();
  });

  it('the same operation as a task, and its tasks/cancel, ends in the same way (D01, D07)', async () => {
    for (const runaway of [crossJoin, sleep]) {
      const { taskId } = await lane.create(runOf(runaway));
      const row = await eventually('the database shows it', async () => (await taggedAs(mongo.client, taskId))[0]);
      await lane.cancel(taskId);
      await eventually('the database shows it no more', async () => (await taggedAs(mongo.client, taskId)).length === 0, 2_000);
      await eventually('its task says so', async () => (await lane.get(taskId)).status === 'cancelled');
      const { kill } = await lane.call('status', { id: taskId });
      expect(kill).toMatchObject({ verdict: 'stopped', cause: 'tasks_cancel', sent: [{ method: 'killOp', target: String(row['opid']) }] });
    }
  });

  it('what comes after a cancelled call is answered as if nothing had been (D02)', async () => {
    await cancelAfterASecond(sleep);
    const asked = await Promise.all([client.request('tools/list'), client.call('operations')]);
    expect(asked[0].tools).toHaveLength(productTools.length);
    expect(asked[1].ended[0]).toMatchObject({ outcome: 'killed' });
    if (era === '2025') expect(await client.request('ping')).toMatchObject({});
  });

  it('a cancel of a task that has ended, of none, and a second one say what the first did, never more (D03)', async () => {
    const refusedIn2025 = (answer: any, code: number, words: RegExp) => {
      if (era === '2025') expect(answer.error).toMatchObject({ code, message: expect.stringMatching(words) });
      else expect(answer.result).toMatchObject({ resultType: 'complete' });
    };
    const done = await client.call('run', { database: 'app', collection: 'left', pipeline: [{ $limit: 1 }] });
    refusedIn2025(await lane.cancel(done.operationId), -32602, /^The task is completed already\. succeeded: /);
    expect(await lane.get(done.operationId)).toMatchObject({ status: 'completed' });
    expect(await client.call('status', { id: done.operationId })).not.toHaveProperty('kill');

    expect((await lane.cancel('0'.repeat(26))).error).toMatchObject({ code: -32602, message: expect.stringMatching(/^There is no record of operation/) });

    const { taskId } = await lane.create(runOf(sleep));
    await eventually('the database shows it', async () => (await taggedAs(mongo.client, taskId)).length > 0);
    await lane.cancel(taskId);
    await eventually('its task says so', async () => (await lane.get(taskId)).status === 'cancelled');
    const first = (await client.call('status', { id: taskId })).kill;
    refusedIn2025(await lane.cancel(taskId), -32602, /^The task is cancelled already\. killed: /);
    const again = await client.call('kill', { id: taskId });
    expect(again).toMatchObject({ verdict: 'stopped', outcome: 'killed' });
    expect(again.kill.sent).toEqual(first.sent);
    expect(again.kill.requestedAt).toBe(first.requestedAt);
  });

  it('while a runaway runs as a task, everything else is answered within a second (D28)', async () => {
    const { taskId } = await lane.create(runOf(crossJoin));
    await eventually('the database shows it', async () => (await taggedAs(mongo.client, taskId)).length > 0);
    const answers = [
      await timed(() => client.request('tools/list')),
      await timed(() => lane.get(taskId)),
      await timed(() => client.call('status', { id: taskId })),
      await timed(() => client.call('run', { database: 'app', collection: 'left', pipeline: [{ $limit: 1 }], startAnother: true })),
      await timed(() => client.call('kill', { id: taskId })),
    ];
    expect(answers[1]?.answer).toMatchObject({ status: 'working' });
    expect(answers[2]?.answer).toMatchObject({ server: 'running', outcome: null });
    expect(answers[3]?.answer).toMatchObject({ outcome: 'succeeded', returned: 1 });
    expect(answers[4]?.answer).toMatchObject({ verdict: 'stopped' });
    expect(await taggedAs(mongo.client, taskId)).toEqual([]);
    for (const { ms } of answers) expect(ms).toBeLessThan(1_000);
  });

  it('a call is handed over before its client would cut it, and a repeated one is told of the one that runs (D29)', async () => {
    const { answer: handle, ms } = await timed(() => client.call('run', { ...runOf(sleep), waitMs: 1_000 }));
    expect(ms).toBeGreaterThanOrEqual(1_000);
    expect(ms).toBeLessThan(4_000);
    expect(handle).toMatchObject({ wait: 'detached', server: 'running', outcome: null });
    const repeated = await client.call('run', { ...runOf(sleep), waitMs: 1_000 });
    expect(repeated).toMatchObject({ operationId: handle.operationId, alreadyRunning: true });
    expect((await tagged(mongo.client)).map(idOf)).toEqual([handle.operationId]);
    expect(await lane.get(handle.operationId)).toMatchObject({ status: 'working' });
    await client.call('kill', { id: handle.operationId });
    expect(await client.call('status', { id: handle.operationId })).toMatchObject({ outcome: 'killed' });
  });
});
