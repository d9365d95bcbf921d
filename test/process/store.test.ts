import { mkdirSync, readFileSync, readdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { localStorePath } from '../../src/store/local-path.js';
import { sleeping, startDetached } from '../support/checked.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { isAlive, storeProcessOf } from '../support/processes.js';
import { freshFolder, holdsText } from '../support/records.js';
import { type TestServer, startServer } from '../support/server.js';
import { mountSmallDisk } from '../support/small-disk.js';

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

async function serve(stateFolder: string, ...args: string[]): Promise<TestServer> {
  const server = await startServer({ uri: mongo.uri, stateFolder, args: ['--allow-js', ...args] });
  started.push(server);
  return server;
}

const onThings = { database: 'app', collection: 'things' };
const sleeper = { ...onThings, pipeline: sleeping() };
const complaints = (server: TestServer) => server.stderr.filter((line) => line.includes('store of operation records cannot be used'));

async function expectThatAllGoesOn(server: TestServer, why: RegExp): Promise<void> {
  const read = await server.call('run', { ...onThings, pipeline: [] });
  expect(read).toMatchObject({ outcome: 'succeeded', returned: 2 });
  const noted = await eventually('what could not be recorded is said', async () => (await server.call('status', { id: read.operationId })).notes);
  expect(noted).toEqual([expect.stringMatching(/kept in this process only/)]);
  expect(noted[0]).toMatch(why);
  const handle = await startDetached({ server, mongo }, sleeper);
  const startedAt = performance.now();
  expect(await server.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped', outcome: 'killed' });
  expect(performance.now() - startedAt).toBeLessThan(2_000);
  expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);
  expect(await server.call('status', { id: handle.operationId })).toMatchObject({ outcome: 'killed', verdict: 'stopped' });
  expect(await server.call('result', { id: read.operationId })).toMatchObject({ documents: [{ i: 1 }, { i: 2 }] });
  expect((await server.call('operations')).notes).toEqual([expect.stringMatching(why)]);
  expect(await server.call('status', { id: '0'.repeat(26) })).toMatchObject({ error: { code: 'not_found', message: expect.stringMatching(why) } });
  expect(complaints(server)).toHaveLength(1);
}

describe('a server whose store', () => {
  it('is of a newer version leaves it as it is, and goes on', async () => {
    const folder = freshFolder();
    const path = localStorePath(folder);
    const newer = open({ path, encoding: 'json', overlappingSync: false });
    await newer.put('schema', { version: 999 });
    await newer.close();
    const before = readFileSync(path);
    const server = await serve(folder);
    await expectThatAllGoesOn(server, /newer mongo-leash/);
    await server.close();
    expect(readFileSync(path).equals(before)).toBe(true);
  });

  it('cannot have its folder goes on', async () => {
    const file = join(freshFolder(), 'file');
    writeFileSync(file, '');
    await expectThatAllGoesOn(await serve(join(file, 'state')), /ENOTDIR/);
  });

  it('was cut in the middle goes on', async () => {
    const folder = freshFolder();
    const first = await serve(folder);
    for (let i = 0; i < 20; i += 1) await first.call('run', { ...onThings, pipeline: [{ $match: { i } }] });
    await first.close();
    const path = localStorePath(folder);
    truncateSync(path, Math.floor(statSync(path).size / 2));
    await expectThatAllGoesOn(await serve(folder), /SIGBUS|SIGSEGV/);
  });

  const { disk, why } = mountSmallDisk(300);
  afterAll(() => disk?.remove());
  it.skipIf(disk === null)(`has no room goes on${why === null ? '' : ` (skipped: ${why})`}`, async () => {
    if (disk === null) return;
    const folder = join(disk.folder, 'state');
    const server = await serve(folder);
    const before = await server.call('run', { ...onThings, pipeline: [] });
    expect(before).not.toHaveProperty('notes');
    disk.fill();
    await expectThatAllGoesOn(server, /No space|ENOSPC|Input\/output|SIGBUS/);
    expect(await server.call('status', { id: before.operationId })).toMatchObject({ outcome: 'succeeded' });
    await server.close();
  });

  it('hangs in the middle of everything still kills in time, and says what it could not record', async () => {
    const server = await serve(freshFolder());
    const handle = await startDetached({ server, mongo }, sleeper);
    process.kill(storeProcessOf(server.process.pid ?? 0) ?? 0, 'SIGSTOP');
    const startedAt = performance.now();
    expect(await server.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped' });
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    const told = await eventually('it is known that its end could not be recorded', async () => {
      const answer = await server.call('status', { id: handle.operationId });
      return answer.notes !== undefined && answer;
    });
    expect(told).toMatchObject({ outcome: 'killed', verdict: 'stopped', notes: [expect.stringMatching(/in this process only.*did not answer within/)] });
    expect(complaints(server)).toHaveLength(1);
  });

  it('hangs ends in time, and takes the process of the store with it', async () => {
    const server = await serve(freshFolder());
    const handle = await startDetached({ server, mongo }, sleeper);
    const holder = storeProcessOf(server.process.pid ?? 0) ?? 0;
    process.kill(holder, 'SIGSTOP');
    const startedAt = performance.now();
    expect(await server.close()).toEqual({ code: 0, signal: null });
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);
    process.kill(holder, 'SIGCONT');
    await eventually('it is gone', () => !isAlive(holder));
  });
});

describe('what a server leaves on the disk', () => {
  it('is nothing with --store memory', async () => {
    const folder = freshFolder();
    const server = await serve(folder, '--store', 'memory');
    const read = await server.call('run', { ...onThings, pipeline: [] });
    expect(read).not.toHaveProperty('notes');
    expect(await server.call('result', { id: read.operationId })).toMatchObject({ returned: 2 });
    expect(storeProcessOf(server.process.pid ?? 0)).toBeNull();
    await server.close();
    expect(readdirSync(folder)).toEqual([]);
  });

  it('is no document with --keep-results false', async () => {
    const folder = freshFolder();
    const server = await serve(folder, '--keep-results', 'false');
    const answer = await server.call('run', { ...onThings, pipeline: [{ $limit: 1 }, { $project: { secret: { $concat: ['production', '-', 'data'] } } }] });
    expect(answer.documents).toMatchObject([{ secret: 'production-data' }]);
    await server.close();
    expect(holdsText(folder, answer.operationId)).toBe(true);
    expect(holdsText(folder, 'production-data')).toBe(false);
  });

  it('is for its owner alone, whatever the umask', async () => {
    const folder = join(freshFolder(), 'state');
    const before = process.umask(0);
    const server = await serve(folder);
    process.umask(before);
    await server.call('run', { ...onThings, pipeline: [] });
    await server.close();
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true });
    const modes = entries.map((entry) => [entry.isFile(), (statSync(join(entry.parentPath, entry.name)).mode & 0o777).toString(8)]);
    expect(modes.sort()).toEqual([[false, '700'], [true, '600'], [true, '600'], [true, '600']]);
    expect((statSync(folder).mode & 0o777).toString(8)).toBe('700');
  });

  it('is not begun by listing the tools without a connection string', async () => {
    const folder = join(freshFolder(), 'state');
    mkdirSync(folder);
    const server = await startServer({ stateFolder: folder });
    started.push(server);
    expect((await server.client.listTools()).tools.length).toBeGreaterThan(0);
    expect(storeProcessOf(server.process.pid ?? 0)).toBeNull();
    expect(readdirSync(folder)).toEqual([]);
  });
});
