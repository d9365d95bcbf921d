import { hostname, userInfo } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OperationRecord } from '../../src/domain/operation.js';
import { openLocalStore } from '../../src/store/local.js';
import { sleeping, startDetached } from '../support/checked.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { aRecord, documentsOf, ended, freshFolder, newOperationId } from '../support/records.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
const started: TestServer[] = [];
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('things').insertMany([{ i: 1 }, { i: 2 }]);
});
afterAll(async () => {
  await Promise.all(started.map((server) => server.close()));
  await mongo.stop();
});

const retentionMs = 1_000;
const principal = `${userInfo().username}@${hostname()}`;
const onThings = { database: 'app', collection: 'things' };

async function serve(stateFolder: string, ...args: string[]): Promise<TestServer> {
  const server = await startServer({ uri: mongo.uri, stateFolder, args: ['--allow-js', '--retention-ms', String(retentionMs), ...args] });
  started.push(server);
  return server;
}

/** What another program left in the folder: nothing of it is dropped yet. */
async function leave(folder: string, ...records: OperationRecord[]): Promise<void> {
  const store = openLocalStore({ folder, retentionMs: Number.MAX_SAFE_INTEGER, maxResultBytes: 1_000_000 });
  for (const record of records) {
    await store.put(record);
    await store.putDocuments(record.operationId, documentsOf({ i: 1 }));
  }
  await store.close();
}

const endedAgo = (ms: number, changes: Partial<OperationRecord> = {}) =>
  ended(aRecord({ principal, whereabouts: { set: null, nodes: mongo.hosts } }), { documentsRead: 1, endedAt: new Date(Date.now() - ms).toISOString(), ...changes });

/** The answer about an id, with the id taken out. */
async function told(server: TestServer, tool: string, id: string): Promise<string> {
  return JSON.stringify(await server.call(tool, { id })).replaceAll(id, '<id>');
}

describe('an operation whose record was kept for its time', () => {
  it.each(['local', 'memory'])('is gone, and its principal is told how it ended (store: %s)', async (kind) => {
    const folder = freshFolder();
    const server = await serve(folder, '--store', kind);
    const read = await server.call('run', { ...onThings, pipeline: [] });
    expect(read).toMatchObject({ outcome: 'succeeded' });
    const answer = await eventually('its record has expired', async () => {
      const found = await server.call('status', { id: read.operationId });
      return found.error !== undefined && found;
    });
    expect(answer.error).toMatchObject({
      code: 'expired',
      message: expect.stringMatching(new RegExp(`^Operation ${read.operationId} ended \\(succeeded\\) at 20\\S+Z; its record was kept for ${retentionMs} ms and is gone\\.$`)),
      databaseState: expect.stringContaining(`No operation or cursor with its tag that this user may see is on ${String(mongo.hosts[0])}.`),
    });
    expect(answer.next).toMatch(/Run it again if it is still needed/);
    for (const tool of ['kill', 'result']) expect(await server.call(tool, { id: read.operationId })).toMatchObject({ error: { code: 'expired' } });
    expect((await server.call('operations')).ended).toEqual([]);
    if (kind === 'memory') return;
    await server.close();
    const again = await serve(folder);
    expect((await again.call('status', { id: read.operationId })).error).toEqual(answer.error);
  });

  it('is to another principal as one that never was', async () => {
    const folder = freshFolder();
    const others = endedAgo(2 * retentionMs, { principal: 'else@here' });
    await leave(folder, others);
    const server = await serve(folder);
    for (const tool of ['status', 'kill', 'result']) {
      const answer = await told(server, tool, others.operationId);
      expect(JSON.parse(answer)).toMatchObject({ error: { code: 'not_found' } });
      expect(answer).toBe(await told(server, tool, newOperationId()));
    }
  });

  it('is shown as running when the database shows it all the same', async () => {
    const owner = await serve(freshFolder());
    const handle = await startDetached({ server: owner, mongo }, { ...onThings, pipeline: sleeping() });
    const folder = freshFolder();
    await leave(folder, endedAgo(2 * retentionMs, { operationId: handle.operationId }));
    const other = await serve(folder);
    expect(await other.call('status', { id: handle.operationId })).toMatchObject({ outcome: null, server: 'running' });
    expect(await other.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped' });
    expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);
  });

  it('tells where it was lost to look before it is run again', async () => {
    const folder = freshFolder();
    const lost = endedAgo(2 * retentionMs, { outcome: 'lost', cause: 'shutdown' });
    await leave(folder, lost);
    const answer = await (await serve(folder)).call('status', { id: lost.operationId });
    expect(answer).toMatchObject({ error: { code: 'expired', message: expect.stringContaining('(lost)'), databaseState: expect.stringContaining('cause shutdown') }, next: expect.stringMatching(/look at its target before you run it again/) });
  });
});

describe('a record', () => {
  it('that asks to be kept longer than others is, with its documents', async () => {
    const folder = freshFolder();
    const [longer, usual] = [endedAgo(20 * retentionMs, { keepMs: 3_600_000 }), endedAgo(20 * retentionMs)];
    await leave(folder, longer, usual);
    const server = await serve(folder);
    // What is too old is dropped when something is put.
    await server.call('run', { ...onThings, pipeline: [] });
    expect(await server.call('status', { id: usual.operationId })).toMatchObject({ error: { code: 'expired' } });
    expect(await server.call('status', { id: longer.operationId })).toMatchObject({ outcome: 'succeeded', documents: [{ i: 1 }] });
    expect(await server.call('result', { id: longer.operationId })).toMatchObject({ documents: [{ i: 1 }] });
  });

  it('of an operation that runs is there however old it is', async () => {
    const folder = freshFolder();
    const server = await serve(folder);
    const handle = await startDetached({ server, mongo }, { ...onThings, pipeline: sleeping() });
    const later = await server.call('run', { ...onThings, pipeline: [] });
    await eventually('one that began later has expired', async () => (await server.call('status', { id: later.operationId })).error?.code === 'expired');
    const store = openLocalStore({ folder, retentionMs, maxResultBytes: 1_000_000 });
    expect(await store.get(handle.operationId)).toMatchObject({ outcome: null, keepMs: retentionMs });
    await store.close();
    expect(await server.call('status', { id: handle.operationId })).toMatchObject({ outcome: null, server: 'running' });
    expect(await server.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped' });
  });
});
