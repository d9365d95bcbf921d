import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type TestMongo, eventually, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { startDetached, untilGone } from '../support/runaways.js';
import { type TestServer, type TestServerOptions, startServer } from '../support/server.js';

const database = 'load_cursors';
let mongo: TestMongo;
const servers: TestServer[] = [];

beforeAll(async () => {
  mongo = await startMongo();
  await setUpRunaway(mongo.client, database, runawayCase('15'));
});
afterAll(async () => {
  await Promise.all(servers.map((each) => each.close()));
  await mongo.stop();
});

async function start(options: TestServerOptions = {}): Promise<TestServer> {
  const server = await startServer({ uri: mongo.uri, ...options });
  servers.push(server);
  return server;
}

async function openCursors(): Promise<number> {
  return Number((await mongo.client.db('admin').command({ serverStatus: 1 }))['metrics'].cursor.open.total);
}

/** Batches of a quarter of a second or so. */
const sum = { $reduce: { input: { $range: [0, 2_000] }, initialValue: 0, in: { $add: ['$$value', { $mod: ['$$this', 7] }] } } };
const inBatches = { database, collection: 'seq', pipeline: [{ $project: { v: sum } }], limit: 10_000 };

describe('an idle cursor', () => {
  it('that a run leaves when it has read enough bytes is closed before the answer, and the run has succeeded', async () => {
    const server = await start({ args: ['--result-bytes', '2000'] });
    const before = await openCursors();
    const db = mongo.client.db(database);
    await db.command({ profile: 2 });
    const answer = await server.call('run', { database, collection: 'seq', pipeline: [], limit: 10_000 });
    expect(await taggedAs(mongo.client, answer.operationId)).toEqual([]);
    await db.command({ profile: 0 });
    expect(await openCursors()).toBe(before);
    expect(answer).toMatchObject({ outcome: 'succeeded', cause: 'answer_complete', more: true, kill: { verdict: 'stopped', sent: [{ method: 'killCursors' }] } });
    expect(answer.kill.before).toMatchObject([{ saw: 'idle_cursor', cursorId: answer.kill.sent[0].target }]);
    // The profiler of the database has the close of just this cursor.
    const closes = await db.collection('system.profile').find({ 'command.killCursors': 'seq' }, { promoteLongs: false }).toArray();
    expect(closes.map(({ command }) => command.cursors.map(String))).toEqual([[answer.kill.sent[0].target]]);
    console.log(`kill to gone: idle cursor of a run that has read enough: ${answer.kill.elapsedMs} ms`);
  });

  it('of a process that stands still is killed by another one, and the first learns that others did it', async () => {
    const standing = await start();
    const other = await start();
    const before = await openCursors();
    const { id } = await startDetached(standing, mongo.client, inBatches);
    await eventually('it reads in batches', async () => (await taggedAs(mongo.client, id)).some(({ op }) => op === 'getmore'));
    standing.process.kill('SIGSTOP');
    try {
      await eventually('its cursor is idle', async () => {
        const rows = await taggedAs(mongo.client, id);
        return rows.length > 0 && rows.every(({ type }) => type === 'idleCursor');
      });
      expect(await other.call('status', { id })).toMatchObject({ server: 'idle_cursor', outcome: null });
      const [goneMs, killed] = await Promise.all([untilGone(mongo.client, id, 2_000), other.call('kill', { id })]);
      expect(await taggedAs(mongo.client, id)).toEqual([]);
      expect(goneMs).toBeLessThan(2_000);
      expect(killed).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us', server: 'not_seen' });
      expect(killed.kill).toMatchObject({ before: [{ saw: 'idle_cursor' }], sent: [{ method: 'killCursors', node: mongo.hosts[0] }] });
      expect(await openCursors()).toBe(before);
      console.log(`kill to gone: idle cursor of another process: ${goneMs} ms`);
    } finally {
      standing.process.kill('SIGCONT');
    }
    expect(await standing.call('status', { id, waitMs: 10_000 })).toMatchObject({ outcome: 'killed', by: 'others', error: { serverCode: 43 } });
  });
});

describe('a cursor that is read in quick batches', () => {
  it('is gone within 2 s of the kill, whether the kill meets a getMore or the moment between two', async () => {
    const server = await start({ args: ['--max-limit', '1000000', '--result-bytes', '268435456'] });
    const before = await openCursors();
    const pipeline = [{ $project: { _id: 0, v: { $range: [0, 1_000] } } }, { $unwind: '$v' }];
    const { id } = await startDetached(server, mongo.client, { database, collection: 'seq', pipeline, limit: 1_000_000 });
    await eventually('some batches have been read', async () => (await server.call('status', { id })).documentsRead > 20_000);
    const [goneMs, killed] = await Promise.all([untilGone(mongo.client, id, 2_000), server.call('kill', { id })]);
    expect(await tagged(mongo.client)).toEqual([]);
    expect(goneMs).toBeLessThan(2_000);
    expect(killed).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us' });
    expect(killed.documentsRead).toBeLessThan(1_000_000);
    expect(await openCursors()).toBe(before);
    console.log(`kill to gone: quick batches: ${goneMs} ms`);
  });
});
