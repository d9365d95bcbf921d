import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { runArguments, spilledFiles, startDetached, startWaiting, untilGone } from '../support/runaways.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  server = await startServer({ uri: mongo.uri });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

const reads = [
  { name: '01', what: 'a $lookup cross join without an index', stop: 'kill' },
  { name: '02', what: 'a backtracking $regex over a collection', stop: 'cancel' },
  { name: '03', what: 'a $group over everything', stop: 'kill' },
  { name: '04', what: 'an unbounded $graphLookup', stop: 'cancel' },
  { name: '05', what: 'a $sort that spills to disk', stop: 'kill' },
] as const;

describe.each(reads)('$what', ({ name, stop }) => {
  const database = `runaway_${name}`;
  const runaway = runawayCase(name);
  const request = runArguments(runaway, database);

  beforeAll(async () => {
    await setUpRunaway(mongo.client, database, runaway);
  });

  async function start(): Promise<{ id: string; stop(): Promise<any> }> {
    if (stop === 'kill') {
      const { id } = await startDetached(server, mongo.client, request);
      return { id, stop: () => server.call('kill', { id }) };
    }
    const started = await startWaiting(server, mongo.client, request, `runaway-${name}`);
    return {
      id: started.id,
      async stop() {
        started.cancel();
        await started.cancelled;
        const told = await server.call('status', { requestId: started.requestId, waitMs: 10_000 });
        expect(started.answered()).toBe(false);
        expect(told).toMatchObject({ operationId: started.id, wait: 'cancelled' });
        return told;
      },
    };
  }

  it(`is told of as the database shows it, and is gone within 2 s of its ${stop}`, async () => {
    const { id, stop: stopIt } = await start();
    const told = await server.call('status', { id, waitMs: 1_000 });
    const [row] = await taggedAs(mongo.client, id);
    expect(told).toMatchObject({ operationId: id, server: 'running', outcome: null, node: mongo.hosts[0] });
    expect(told.evidence.at(-1)).toMatchObject({ saw: 'operation', opid: String(row?.['opid']), namespace: row?.['ns'], planSummary: row?.['planSummary'], waitingForLock: false, killPending: false });
    const { secondsRunning } = told.evidence.at(-1);
    expect(secondsRunning).toBeGreaterThanOrEqual(0.9);
    expect(secondsRunning).toBeLessThanOrEqual(Number(row?.['microsecs_running']) / 1e6 + 0.1);
    // No row comes before the end, so none may be promised.
    expect(told.evidence.at(-1)).not.toHaveProperty('documentsSoFar');
    if (name === '05') await eventually('the sort spills', () => spilledFiles(mongo).length > 0);

    const [goneMs, stopped] = await Promise.all([untilGone(mongo.client, id, 2_000), stopIt()]);
    expect(goneMs).toBeLessThan(2_000);
    expect(await taggedAs(mongo.client, id)).toEqual([]);
    expect(stopped).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us', cause: stop === 'kill' ? 'kill_tool' : 'client_cancelled', server: 'ended', error: { code: 'killed', serverCode: 11601 } });
    expect(stopped.kill.before).toMatchObject([{ saw: 'operation', opid: String(row?.['opid']) }]);
    expect(stopped.kill.sent[0]).toMatchObject({ node: mongo.hosts[0], method: 'killOp', target: String(row?.['opid']) });
    expect(stopped.kill.after).toEqual(expect.arrayContaining([expect.objectContaining({ saw: 'nothing' })]));
    if (name === '05') await eventually('its temporary files are gone', () => spilledFiles(mongo).length === 0, 2_000);
  });

  it('is ended by its time limit of 2 s, which is no kill, and the answer says how to ask for more', async () => {
    const answer = await server.call('run', { ...request, maxTimeMS: 2_000 });
    expect(answer).toMatchObject({ outcome: 'timed_out', server: 'ended', maxTimeMS: 2_000, error: { code: 'timed_out', serverCode: 50 } });
    expect(answer).not.toHaveProperty('kill');
    expect(answer).not.toHaveProperty('cause');
    expect(answer.elapsedMs).toBeGreaterThanOrEqual(1_990);
    expect(answer.elapsedMs).toBeLessThan(4_000);
    expect(answer.next).toMatch(/2000 ms.*ask for more with maxTimeMS, up to 3600000/);
    expect(await taggedAs(mongo.client, answer.operationId)).toEqual([]);
    expect(await server.call('status', { id: answer.operationId })).toMatchObject({ outcome: 'timed_out', next: answer.next });
    expect(await server.call('kill', { id: answer.operationId })).toMatchObject({ verdict: 'ended_first', outcome: 'timed_out' });
  });
});
