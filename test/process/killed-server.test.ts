/** A server that is killed with SIGKILL in the middle: what it left in the database is found and stopped by the next one. */
import { hostname, userInfo } from 'node:os';
import type { Document } from 'mongodb';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { formatTag, principalHash } from '../../src/domain/tag.js';
import { encodeId, idLengths } from '../../src/domain/ids.js';
import { sleeping } from '../support/checked.js';
import { type TestMongo, eventually, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

const args = ['--allow-js', '--allow-writes'];
const database = 'app';
let mongo: TestMongo;
let next: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db(database).collection<{ _id: number }>('few').insertMany([{ _id: 1 }, { _id: 2 }]);
  next = await startServer({ uri: mongo.uri, args });
  await next.client.listTools();
});
afterAll(async () => {
  await next.close();
  await mongo.stop();
});
beforeEach(async () => {
  expect(await tagged(mongo.client)).toEqual([]);
});

/** Starts the operations in a server, kills that with SIGKILL, and comes back when the database shows that they go on. */
async function leftBehind(...pipelines: Document[][]): Promise<string[]> {
  const server = await startServer({ uri: mongo.uri, args });
  const ids: string[] = [];
  for (const pipeline of pipelines) {
    const handle = await server.call('run', { database, collection: 'few', pipeline, waitMs: 0, startAnother: true });
    ids.push(handle.operationId);
    await eventually('the database shows it', async () => (await taggedAs(mongo.client, handle.operationId)).length === 1);
  }
  server.process.kill('SIGKILL');
  expect(await server.exited).toEqual({ code: null, signal: 'SIGKILL' });
  for (const id of ids) expect(await taggedAs(mongo.client, id)).toHaveLength(1);
  return ids;
}

describe('a read that it left', () => {
  it('is listed by operations, shown by status and proven stopped by kill, in another process', async () => {
    const [id = '', other = ''] = await leftBehind(sleeping(), sleeping());
    const list = await next.call('operations');
    expect(list.running.map(({ operationId }: any) => operationId).sort()).toEqual([id, other].sort());
    expect(list.running[0].evidence.length).toBeGreaterThan(0);

    const status = await next.call('status', { id });
    expect(status).toMatchObject({ operationId: id, server: 'running', outcome: null, evidence: [{ node: mongo.hosts[0], saw: 'operation' }] });

    const since = performance.now();
    const killed = await next.call('kill', { id });
    expect(killed).toMatchObject({ operationId: id, verdict: 'stopped', outcome: 'killed', by: 'us', kill: { sent: [{ method: 'killOp' }] } });
    expect(performance.now() - since).toBeLessThan(2_000);
    expect(await taggedAs(mongo.client, id)).toEqual([]);
    // Killing one leaves its twin alone.
    expect(await taggedAs(mongo.client, other)).toHaveLength(1);

    expect(await next.call('kill', { id: other })).toMatchObject({ verdict: 'stopped' });
    expect(await tagged(mongo.client)).toEqual([]);
    const after = await next.call('operations');
    expect(after.running).toEqual([]);
    expect(after.ended.map(({ operationId }: any) => operationId)).toEqual(expect.arrayContaining([id, other]));
    expect(await next.call('status', { id })).toMatchObject({ outcome: 'killed', verdict: 'stopped' });
  });

  it('that ends by itself while it is watched is gone, for nobody knows how', async () => {
    const [id = ''] = await leftBehind(sleeping(1_500));
    const status = await next.call('status', { id });
    expect(status).toMatchObject({ outcome: null });
    // Two documents of a second and a half each: it ends by itself.
    await eventually('it has ended in the database', async () => (await taggedAs(mongo.client, id)).length === 0);
    const after = await eventually('status knows', async () => {
      const answer = await next.call('status', { id });
      return answer.outcome === null ? null : answer;
    });
    expect(after).toMatchObject({ outcome: 'lost' });
  });
});

describe('a write that it left', () => {
  it('is gone when it was killed, not stopped: it may have done what it was asked to', async () => {
    const [id = ''] = await leftBehind([...sleeping(), { $merge: { into: 'target' } }]);
    const list = await next.call('operations');
    expect(list.running.map(({ operationId }: any) => operationId)).toEqual([id]);
    const killed = await next.call('kill', { id });
    expect(killed).toMatchObject({ verdict: 'gone', outcome: 'lost' });
    expect(JSON.stringify(killed)).toMatch(/partial or full effects/);
    expect(await taggedAs(mongo.client, id)).toEqual([]);
  });
});

describe('an idle cursor that it left', () => {
  const idOf = (seed: number) => encodeId(Uint8Array.from({ length: idLengths.operation }, (_, i) => seed * 7 + i), idLengths.operation);

  /** What a server leaves when it dies between two batches: made by hand, since that moment cannot be hit from outside. */
  async function leaveCursor(operationId: string, principal: string): Promise<void> {
    const comment = formatTag({ instance: 'a'.repeat(idLengths.instance), operationId, principal: principalHash(principal), session: 'a'.repeat(idLengths.session), kind: 'r', request: 'n:1', own: '' });
    await mongo.client.db(database).command({ aggregate: 'few', pipeline: [], cursor: { batchSize: 1 }, comment });
    await eventually('the database shows the cursor', async () => (await taggedAs(mongo.client, operationId))[0]?.['type'] === 'idleCursor');
  }

  it('is found by its id, and closed by kill', async () => {
    const id = idOf(1);
    await leaveCursor(id, `${userInfo().username}@${hostname()}`);
    expect(await next.call('status', { id })).toMatchObject({ server: 'idle_cursor', outcome: null });
    expect(await next.call('kill', { id })).toMatchObject({ verdict: 'stopped', kill: { sent: [{ method: 'killCursors' }] } });
    expect(await taggedAs(mongo.client, id)).toEqual([]);
  });

  it("of another principal is not_found in the same way as one that does not exist, and is left alone", async () => {
    const [theirs, nobodys] = [idOf(2), idOf(3)];
    await leaveCursor(theirs, 'somebody-else@elsewhere');
    expect((await next.call('operations')).running).toEqual([]);
    for (const tool of ['status', 'kill']) {
      const [one, two] = [await next.call(tool, { id: theirs }), await next.call(tool, { id: nobodys })];
      expect(one.error.code).toBe('not_found');
      expect(JSON.parse(JSON.stringify(one).replaceAll(theirs, nobodys))).toEqual(two);
    }
    const [cursor] = await taggedAs(mongo.client, theirs);
    expect(cursor).toMatchObject({ type: 'idleCursor' });
    await mongo.client.db(database).command({ killCursors: 'few', cursors: [cursor?.['cursor'].cursorId] });
  });
});
