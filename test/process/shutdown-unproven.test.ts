/** Ends of the process where the proof does not come, or where there is nothing to prove: the exit code says which it was. */
import { type AddressInfo, createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { reportOf, untilNoneIsLeft } from '../support/busy-server.js';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { sleeping } from '../support/checked.js';
import { type TestMongo, eventually, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { isListed } from '../support/processes.js';
import { startServer } from '../support/server.js';

let mongo: TestMongo;
let host: string;
beforeAll(async () => {
  mongo = await startMongo();
  host = mongo.hosts[0] ?? '';
  await mongo.client.db('app').collection<{ _id: number }>('few').insertMany([{ _id: 1 }, { _id: 2 }]);
});
afterAll(() => mongo.stop());

const sleep = { database: 'app', collection: 'few', pipeline: sleeping(), waitMs: 0 };

describe('when it cannot be proven that all stopped, the exit code is not 0, within 5 s', () => {
  it('an operation that the server cannot interrupt is still_running, and a neighbour is stopped all the same', async () => {
    const own = await startMongo();
    try {
      const runaway = runawayCase('14');
      await setUpRunaway(own.client, 'app', runaway);
      const server = await startServer({ uri: own.uri, args: ['--allow-js'] });
      const stubborn = await server.call('run', { database: 'app', collection: runaway.op.coll, pipeline: runaway.op.pipeline, waitMs: 0 });
      const neighbour = await server.call('run', { ...sleep, collection: 'one' });
      await eventually('the database shows both', async () => (await tagged(own.client)).length === 2);
      const since = performance.now();
      server.process.kill('SIGTERM');
      await eventually('the neighbour is gone', async () => (await taggedAs(own.client, neighbour.operationId)).length === 0, 2_000);
      const { code } = await server.exited;
      expect(performance.now() - since).toBeLessThan(5_000);
      expect(code).toBe(1);
      const rows = await taggedAs(own.client, stubborn.operationId);
      expect(rows.map(({ killPending }) => killPending as unknown)).toEqual([true]);
      const report = reportOf(server);
      expect(report).toMatchObject({ shutdown: 'SIGTERM', allProven: false });
      const verdicts = Object.fromEntries(report['operations'].map(({ operationId, verdict }: any) => [operationId, verdict]));
      expect(verdicts).toEqual({ [stubborn.operationId]: 'still_running', [neighbour.operationId]: 'stopped' });
    } finally {
      // An orderly stop would wait for the end of what cannot be interrupted.
      const pid = own.pid(own.hosts[0] ?? '');
      process.kill(pid, 'SIGKILL');
      await eventually('the mongod is dead', () => !isListed(pid));
      await own.stop();
    }
  });

  it('a database that is frozen makes it unknown, not stopped, and does not hold up the exit', async () => {
    const server = await startServer({ uri: mongo.uri, args: ['--allow-js'] });
    await server.call('run', sleep);
    await eventually('the database shows it', async () => (await tagged(mongo.client)).length === 1);
    mongo.freeze(host);
    const since = performance.now();
    try {
      server.process.kill('SIGTERM');
      expect(await server.exited).toEqual({ code: 1, signal: null });
      expect(performance.now() - since).toBeLessThan(5_000);
      expect(reportOf(server)).toMatchObject({ allProven: false, operations: [{ verdict: 'unknown', kill: { verdict: 'unknown' } }] });
    } finally {
      mongo.thaw(host);
    }
    // What was on the wire takes effect all the same.
    await untilNoneIsLeft(mongo.client, performance.now(), 10_000);
  });
});

describe('when nothing was sent, that is proof too', () => {
  it('a run that waits for a database that does not answer is never_sent', async () => {
    // A fault of the wire: a port that accepts and never says a word.
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => { silent.listen(0, '127.0.0.1', resolve); });
    const { port } = silent.address() as AddressInfo;
    const server = await startServer({ uri: `mongodb://127.0.0.1:${port}/?directConnection=true`, args: ['--allow-js'] });
    const call = await server.call('run', sleep);
    expect(call).toMatchObject({ wait: 'detached', server: 'not_sent', outcome: null });
    const since = performance.now();
    server.process.kill('SIGTERM');
    expect(await server.exited).toEqual({ code: 0, signal: null });
    expect(performance.now() - since).toBeLessThan(5_000);
    expect(reportOf(server)).toMatchObject({ allProven: true, operations: [{ operationId: call.operationId, verdict: 'never_sent' }] });
    silent.close();
  });
});

describe('a write that the end of the process kills', () => {
  it('is proven not to run any more by its own reply, and its target is described, not called rolled back', async () => {
    const server = await startServer({ uri: mongo.uri, args: ['--allow-js', '--allow-writes'] });
    const pipeline = [...sleeping(), { $merge: { into: 'target' } }];
    const handle = await server.call('run', { ...sleep, pipeline });
    await eventually('the database shows it', async () => (await taggedAs(mongo.client, handle.operationId)).length === 1);
    const since = performance.now();
    server.process.stdin?.end();
    expect(await untilNoneIsLeft(mongo.client, since, 2_000)).toBeLessThan(2_000);
    expect(await server.exited).toEqual({ code: 0, signal: null });
    const report = reportOf(server);
    expect(report['operations']).toHaveLength(1);
    expect(['stopped', 'gone']).toContain(report['operations'][0].verdict);
    expect(JSON.stringify(report)).not.toMatch(/rolled back/i);
  });
});
