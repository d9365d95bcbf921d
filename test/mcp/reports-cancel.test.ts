/** A cancelled call is a stopped operation, and nothing else waits for it (cases D01, D02, D07, D28). */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RunawayCase, runawayCase, setUpRunaway } from '../support/cases.js';
import { type Checked, startChecked, startDetached } from '../support/checked.js';
import { eventually, tagged, taggedAs } from '../support/mongo.js';
import { openRaw } from '../support/raw-client.js';

let rig: Checked;
let crossJoin: RunawayCase;
let sleep: RunawayCase;

beforeAll(async () => {
  rig = await startChecked({ args: ['--allow-js'] });
  crossJoin = runawayCase('01');
  sleep = runawayCase('06');
  await setUpRunaway(rig.mongo.client, 'app', crossJoin);
  await setUpRunaway(rig.mongo.client, 'app', sleep);
});
afterAll(async () => {
  await rig.stop();
});

const runOf = ({ op }: RunawayCase) => ({ database: 'app', collection: op.coll, pipeline: op.pipeline });

/** Starts a run, and cancels it by the client once the database has shown it for so long. */
async function cancelAfter(runaway: RunawayCase, ms: number) {
  const { server, mongo } = rig;
  const stop = new AbortController();
  const call = server.call('run', runOf(runaway), stop.signal).then(() => 'answered', () => 'cancelled');
  const requestId = server.lastRequestId();
  const [row] = await eventually('the database shows the run', async () => {
    const rows = await tagged(mongo.client);
    return rows.length > 0 && rows;
  });
  await delay(ms);
  stop.abort();
  expect(await call).toBe('cancelled');
  return { requestId, opid: row?.['opid'] };
}

describe('a cancelled call', () => {
  it('is a runaway join killed in the database within 2 s, and status by its request id tells how (D01)', async () => {
    const { server, mongo } = rig;
    const { requestId, opid } = await cancelAfter(crossJoin, 1_000);
    await eventually('the database shows it no more', async () => (await tagged(mongo.client)).length === 0, 2_000);
    const status = await eventually('the report holds a look after the kill', async () => {
      const answer = await server.call('status', { requestId });
      return answer.kill.after.some(({ saw }: { saw: string }) => saw === 'nothing') && answer;
    }, 5_000);
    expect(status).toMatchObject({ requestId, wait: 'cancelled', server: 'ended', outcome: 'killed', by: 'us', cause: 'client_cancelled', verdict: 'stopped' });
    expect(status.kill).toMatchObject({ verdict: 'stopped', cause: 'client_cancelled', elapsedMs: expect.any(Number) });
    expect(status.kill.sent).toContainEqual(expect.objectContaining({ method: 'killOp', target: String(opid) }));
    expect(server.process.exitCode).toBeNull();
    const next = await server.call('run', { database: 'app', collection: 'left', pipeline: [{ $count: 'n' }] });
    expect(next.documents).toEqual([{ n: 30_000 }]);
  });

  it('is JavaScript killed in the database although the driver could only have dropped its socket (D07)', async () => {
    const { server, mongo } = rig;
    const { requestId, opid } = await cancelAfter(sleep, 1_000);
    await eventually('the database shows it no more', async () => (await tagged(mongo.client)).length === 0, 2_000);
    const status = await server.call('status', { requestId, waitMs: 5_000 });
    expect(status).toMatchObject({ outcome: 'killed', by: 'us', verdict: 'stopped' });
    // The outcome is the server's own word about the call, not that a promise was rejected.
    expect(status.evidence).toContainEqual(expect.objectContaining({ saw: 'reply', detail: 'error 11601' }));
    expect(status.kill.sent).toContainEqual(expect.objectContaining({ method: 'killOp', target: String(opid) }));
  });

  it('is never answered, while what comes after it is (D02)', async () => {
    const { another, mongo } = rig;
    const process = await another({ args: ['--allow-js'], raw: true });
    const raw = await openRaw(process);
    raw.callTool(2, 'run', runOf(sleep), { progressToken: 'p' });
    await eventually('the database shows the run', async () => (await tagged(mongo.client)).length > 0);
    raw.cancel(2);
    await eventually('the database shows it no more', async () => (await tagged(mongo.client)).length === 0, 2_000);
    raw.request(3, 'ping');
    raw.request(4, 'tools/list');
    raw.callTool(5, 'status', { requestId: 2, waitMs: 5_000 });
    expect((await raw.answer(3)).result).toEqual({});
    expect((await raw.answer(4)).result.tools.length).toBeGreaterThan(5);
    expect((await raw.answer(5)).result.structuredContent).toMatchObject({ wait: 'cancelled', outcome: 'killed', verdict: 'stopped' });
    // Whatever was still to be written has been written when the process has ended.
    expect(await process.close()).toEqual({ code: 0, signal: null });
    expect(raw.answersTo(2)).toEqual([]);
    expect(raw.garbage).toEqual([]);
  });

  it('has nothing sent of it when it is cancelled in the queue', async () => {
    const { another, mongo } = rig;
    const server = await another({ args: ['--allow-js', '--max-operations', '1'] });
    const first = await startDetached({ server, mongo }, runOf(sleep));
    const stop = new AbortController();
    const queued = server.call('run', { database: 'app', collection: 'four', pipeline: [] }, stop.signal).then(() => 'answered', () => 'cancelled');
    const requestId = server.lastRequestId();
    await eventually('it waits for a place', async () => (await server.call('operations')).load.queued === 1);
    stop.abort();
    expect(await queued).toBe('cancelled');
    const status = await eventually('its end is known', async () => {
      const answer = await server.call('status', { requestId });
      return answer.outcome !== null && answer;
    });
    expect(status).toMatchObject({ server: 'not_sent', outcome: 'never_sent', verdict: 'never_sent', wait: 'cancelled' });
    expect(await taggedAs(mongo.client, status.operationId)).toEqual([]);
    expect(await server.call('kill', { id: first.operationId })).toMatchObject({ verdict: 'stopped' });
  });
});

describe('while a runaway runs', () => {
  it('ping, tools/list, status, a short query and kill are each answered within a second (D28)', async () => {
    const { server, mongo } = rig;
    const handle = await startDetached(rig, runOf(crossJoin));
    const timed = async (what: () => Promise<unknown>) => {
      const startedAt = performance.now();
      const answer = await what();
      return { answer, ms: performance.now() - startedAt };
    };
    const answers = [
      await timed(() => server.client.ping()),
      await timed(() => server.client.listTools()),
      await timed(() => server.call('status', { id: handle.operationId })),
      await timed(() => server.call('run', { database: 'app', collection: 'left', pipeline: [{ $limit: 1 }] })),
      await timed(() => server.call('kill', { id: handle.operationId })),
    ];
    expect(answers[2]?.answer).toMatchObject({ server: 'running', outcome: null, wait: 'detached' });
    expect(answers[3]?.answer).toMatchObject({ outcome: 'succeeded', returned: 1 });
    expect(answers[4]?.answer).toMatchObject({ verdict: 'stopped' });
    expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);
    for (const { ms } of answers) expect(ms).toBeLessThan(1_000);
  });
});
