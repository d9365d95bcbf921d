/** Every query tool is stopped in the database in the middle of its work, and ended by its time limit. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { slowDocuments, slowExpression, slowInVain, startCall } from '../support/reads.js';
import { untilGone } from '../support/runaways.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  server = await startServer({ uri: mongo.uri, args: ['--allow-js'] });
  await mongo.client.db('app').collection<{ _id: number }>('slow').insertMany(slowDocuments);
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

const on = { database: 'app', collection: 'slow' };
const pipeline = [{ $match: slowExpression }, { $group: { _id: '$k', n: { $sum: 1 } } }];
const explain = (name: string, args: Record<string, unknown>, verbosity = 'executionStats') => ({ ...on, method: [{ name, arguments: args }], verbosity });
/** What the call is, and the key of the command that the database must show. */
const slow = [
  ['aggregate', 'aggregate', 'aggregate', { ...on, pipeline }],
  ['aggregate-db', 'aggregate-db', 'aggregate', { database: 'app', pipeline: [{ $documents: [{ _id: 1 }] }, { $lookup: { from: 'slow', pipeline: [{ $match: slowExpression }], as: 'all' } }] }],
  ['find with $expr', 'find', 'find', { ...on, filter: slowInVain }],
  ['find with $where', 'find', 'find', { ...on, filter: { $where: 'sleep(20); return false' } }],
  ['count', 'count', 'aggregate', { ...on, query: slowExpression }],
  ['count of what only a find takes', 'count', 'count', { ...on, query: { $where: 'sleep(20); return false' } }],
  ['distinct', 'distinct', 'distinct', { ...on, field: 'k', query: slowExpression }],
  ['explain executionStats of aggregate', 'explain', 'explain', explain('aggregate', { pipeline })],
  ['explain executionStats of find', 'explain', 'explain', explain('find', { filter: slowInVain })],
  ['explain executionStats of count', 'explain', 'explain', explain('count', { query: slowExpression })],
  ['explain executionStats of distinct', 'explain', 'explain', explain('distinct', { field: 'k', query: slowExpression })],
  ['explain allPlansExecution of aggregate', 'explain', 'explain', explain('aggregate', { pipeline }, 'allPlansExecution')],
] as const;

describe.each(slow)('%s', (what, tool, command, args) => {
  it('is gone from the database within 2 s of its cancel, and status by its request id proves it', async () => {
    const started = await startCall(server, mongo.client, tool, args, `cancel ${what.replaceAll('$', '')}`);
    expect(Object.keys(started.row['command'])[0]).toBe(command);
    started.cancel();
    const goneMs = await untilGone(mongo.client, started.id, 2_000);
    await started.cancelled;
    const told = await server.call('status', { requestId: started.requestId, waitMs: 10_000 });
    expect(told).toMatchObject({ operationId: started.id, wait: 'cancelled', server: 'ended', outcome: 'killed', by: 'us', cause: 'client_cancelled', verdict: 'stopped' });
    expect(told.kill.sent).toContainEqual(expect.objectContaining({ method: 'killOp', target: String(started.row['opid']) }));
    expect(started.answered()).toBe(false);
    expect(goneMs).toBeLessThan(2_000);
  });

  it('is ended by maxTimeMS, which is no kill, and says so', async () => {
    const answer = await server.call(tool, { ...args, maxTimeMS: 300 });
    expect(answer).toMatchObject({ outcome: 'timed_out', server: 'ended', maxTimeMS: 300, error: { code: 'timed_out' } });
    expect(answer).not.toHaveProperty('kill');
    expect(answer.elapsedMs).toBeGreaterThanOrEqual(290);
    expect(answer.elapsedMs).toBeLessThan(2_300);
    expect(answer.next).toMatch(/300 ms.*ask for more with maxTimeMS/);
    expect(await taggedAs(mongo.client, answer.operationId)).toEqual([]);
  });
});

describe('a call with count: true', () => {
  it('is stopped by its cancel while it counts, and nothing more is sent of it', async () => {
    // The first documents come at once; the count of all is what takes long.
    const args = { ...on, pipeline: [{ $limit: 3_000 }, { $set: { work: slowExpression.$expr } }, { $match: { work: true } }], limit: 1, count: true };
    const started = await startCall(server, mongo.client, 'aggregate', args, 'cancel counting', ({ command }) => JSON.stringify(command.pipeline).includes('"$count"'));
    started.cancel();
    await started.cancelled;
    const told = await server.call('status', { requestId: started.requestId, waitMs: 10_000 });
    expect(told).toMatchObject({ operationId: started.id, wait: 'cancelled', outcome: 'killed', verdict: 'stopped' });
    await untilGone(mongo.client, started.id, 2_000);
    expect(started.answered()).toBe(false);
  });
});

describe('kill', () => {
  it('stops an explain by its operation id, and the waiting call is answered that it was killed', async () => {
    const call = server.call('explain', { ...explain('find', { filter: slowInVain }), comment: 'killed by id' });
    const requestId = server.lastRequestId();
    const { operationId: id } = await eventually('status says that it runs', async () => {
      const status = await server.call('status', { requestId });
      return status.server === 'running' && status;
    });
    expect(await server.call('kill', { id })).toMatchObject({ verdict: 'stopped' });
    expect(await call).toMatchObject({ operationId: id, outcome: 'killed', verdict: 'stopped', error: { code: 'killed' } });
    expect(await taggedAs(mongo.client, id)).toEqual([]);
  });
});
