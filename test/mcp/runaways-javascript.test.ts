import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type TestMongo, eventually, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { runArguments, startWaiting, untilGone } from '../support/runaways.js';
import { type TestServer, startServer } from '../support/server.js';

const database = 'runaway_06';
const runaway = runawayCase('06');
const request = runArguments(runaway, database);
let mongo: TestMongo;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  await setUpRunaway(mongo.client, database, runaway);
  server = await startServer({ uri: mongo.uri, args: ['--allow-js'] });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

describe('a $function that sleeps', () => {
  it('does not obey maxTimeMS, so the deadline of the wall clock kills it 2 s later, and it is a time limit by name', async () => {
    const call = server.call('run', { ...request, maxTimeMS: 1_000 });
    const row = await eventually('the database runs it long past its maxTimeMS', async () => (await tagged(mongo.client)).find((each) => Number(each['microsecs_running']) > 2_000_000));
    expect(row?.['command'].maxTimeMS).toBe(1_000);
    const answer = await call;
    expect(await taggedAs(mongo.client, answer.operationId)).toEqual([]);
    expect(answer).toMatchObject({ outcome: 'timed_out', cause: 'deadline', by: 'us', server: 'ended', error: { code: 'timed_out', serverCode: 11601 } });
    expect(answer.elapsedMs).toBeGreaterThanOrEqual(2_990);
    expect(answer.elapsedMs).toBeLessThan(5_000);
    expect(answer.kill).toMatchObject({ verdict: 'stopped', cause: 'deadline', sent: [{ method: 'killOp', target: String(row?.['opid']), node: mongo.hosts[0] }] });
    expect(answer.kill.after).toContainEqual(expect.objectContaining({ saw: 'nothing' }));
    expect(answer.next).toMatch(/1000 ms.*ask for more with maxTimeMS/);
  });

  it('is killed within 2 s when its call is cancelled', async () => {
    const started = await startWaiting(server, mongo.client, request, 'sleeping');
    started.cancel();
    expect(await untilGone(mongo.client, started.id, 2_000)).toBeLessThan(2_000);
    await started.cancelled;
    const told = await server.call('status', { requestId: started.requestId, waitMs: 10_000 });
    expect(told).toMatchObject({ operationId: started.id, wait: 'cancelled', outcome: 'killed', by: 'us', cause: 'client_cancelled', verdict: 'stopped', error: { serverCode: 11601 } });
    expect(started.answered()).toBe(false);
  });
});
