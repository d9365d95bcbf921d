/** How an export ends before its end: the database is the judge of the operation, the folder of the file. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { createCli } from '../support/cli.js';
import { aggregating, database, exportFiles, fill, findAll, halves, hangsAt, isHanging, startHanging, textOf } from '../support/exports.js';
import { type TestMongo, eventually, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { freshFolder } from '../support/records.js';
import { type TestServer, startServer } from '../support/server.js';
import { mountSmallDisk } from '../support/small-disk.js';

let mongo: TestMongo;
const started: TestServer[] = [];
const collection = 'many';

beforeAll(async () => {
  mongo = await startMongo();
  await fill(mongo.client, collection, 20_000);
});
afterAll(async () => {
  await Promise.all(started.map((server) => server.close()));
  await mongo.stop();
});
beforeEach(async () => {
  expect(await tagged(mongo.client)).toEqual([]);
});

async function serve(stateFolder: string, ...args: string[]): Promise<TestServer> {
  const server = await startServer({ uri: mongo.uri, stateFolder, args: ['--allow-js', ...args] });
  started.push(server);
  return server;
}

/** Nothing runs, and nothing is left of the file. */
async function expectGone(stateFolder: string, operationId: string): Promise<void> {
  expect(await taggedAs(mongo.client, operationId)).toEqual([]);
  await eventually('no half file is left', () => exportFiles(stateFolder).every(({ name }) => !name.startsWith(operationId)));
}

describe('an export that runs', () => {
  const stateFolder = freshFolder();
  let server: TestServer;
  beforeAll(async () => { server = await serve(stateFolder); });

  it('is killed by the cancel of its call, and its half file removed', async () => {
    const cancel = new AbortController();
    const call = server.callRaw('export', { database, collection, ...aggregating(hangsAt(5_000)) }, cancel.signal);
    const cancelled = expect(call).rejects.toThrow();
    await eventually('the half file grows', () => halves(stateFolder).some(({ bytes }) => bytes > 0));
    await eventually('it hangs in a getMore', async () => (await tagged(mongo.client)).some(isHanging));
    const requestId = server.lastRequestId();
    cancel.abort();
    await cancelled;
    await eventually('the database has none of it', async () => (await tagged(mongo.client)).length === 0, 3_000);
    const status = await eventually('its end is known', async () => {
      const answer = await server.call('status', { requestId });
      return answer.outcome === null ? null : answer;
    });
    expect(status).toMatchObject({ outcome: 'killed', cause: 'client_cancelled', verdict: 'stopped', export: { complete: null } });
    expect(status.export.documents).toBeGreaterThan(0);
    expect(status.export.resource).toBeUndefined();
    await expectGone(stateFolder, status.operationId);
  });

  it('goes on when it was handed over, tells how far it is, and is killed by its id', async () => {
    const id = await startHanging(server, mongo.client, stateFolder, collection);
    const status = await server.call('status', { id });
    expect(status).toMatchObject({ outcome: null, server: 'running', export: { format: 'jsonl', complete: null } });
    expect(status.export.bytes).toBeGreaterThan(0);
    const again = await server.call('export', { database, collection, ...aggregating(hangsAt(5_000)), waitMs: 0 });
    expect(again).toMatchObject({ operationId: id, alreadyRunning: true });
    expect(await server.call('kill', { id })).toMatchObject({ verdict: 'stopped', outcome: 'killed' });
    await expectGone(stateFolder, id);
  });

  it('is killed from the command line, and the server that ran it removes the half file', async () => {
    const id = await startHanging(server, mongo.client, stateFolder, collection);
    const cli = createCli(mongo.uri);
    const killed = await cli.run(['kill', id, '--yes', '--json']);
    cli.end();
    expect(killed.code, killed.stderr).toBe(0);
    await expectGone(stateFolder, id);
    expect(await server.call('status', { id })).toMatchObject({ outcome: 'killed', by: 'others' });
  });

  it('is ended by its time limit, with the reason and no file', async () => {
    const answer = await server.call('export', { database, collection, ...aggregating(hangsAt(5_000)), maxTimeMS: 700 });
    expect(answer).toMatchObject({ outcome: 'timed_out', error: { code: 'timed_out' } });
    await expectGone(stateFolder, answer.operationId);
  });

  it('tells of its documents and bytes as progress', async () => {
    const told: string[] = [];
    const done = server.client.callTool({ name: 'export', arguments: { database, collection, ...aggregating(hangsAt(19_999, 2_500)) } }, undefined, { onprogress: ({ message }) => { told.push(message ?? ''); } });
    const result = await done;
    expect(result.structuredContent).toMatchObject({ documents: 20_000, complete: true });
    expect(told).toContainEqual(expect.stringMatching(/^1\d{4} documents, \d+ bytes written; running: /));
  });

  it('is killed at the end of the process, which leaves no half file', async () => {
    const folder = freshFolder();
    const other = await serve(folder);
    await startHanging(other, mongo.client, folder, collection);
    expect(await other.close()).toEqual({ code: 0, signal: null });
    expect(exportFiles(folder)).toEqual([]);
    expect(await tagged(mongo.client)).toEqual([]);
  });
});

describe('an export whose server process is killed with SIGKILL', () => {
  it('is killed by the next server, which removes the half file and keeps the whole ones', async () => {
    const folder = freshFolder();
    const first = await serve(folder);
    const whole = await first.call('export', { database, collection, ...findAll({ limit: 10 }) });
    const id = await startHanging(first, mongo.client, folder, collection);
    first.process.kill('SIGKILL');
    await first.exited;
    expect(halves(folder)).toHaveLength(1);
    const next = await serve(folder);
    await eventually('the sweep has killed it', async () => (await tagged(mongo.client)).length === 0);
    await expectGone(folder, id);
    expect(exportFiles(folder).map(({ name }) => name)).toEqual([`${whole.operationId}.jsonl`]);
    // It lives on: another process reads it by the record.
    const read = await next.client.readResource({ uri: `mongo-leash://operations/${whole.operationId}/result` });
    expect(read.contents[0]).toMatchObject({ text: textOf(whole) });
  });
});

describe('an export that fails', () => {
  const stateFolder = freshFolder();
  let server: TestServer;
  beforeAll(async () => { server = await serve(stateFolder); });

  it('says so, with what the database said', async () => {
    const answer = await server.callRaw('export', { database, collection, ...aggregating([{ $project: { a: { $divide: [1, 0] } } }]) });
    expect(answer).toMatchObject({ isError: true, structuredContent: { outcome: 'failed', error: { code: 'operation_failed', message: expect.stringMatching(/divide by zero/) } } });
    expect(answer.content).toHaveLength(1);
    await expectGone(stateFolder, answer.structuredContent.operationId);
  });

  it.each<[string, object, object]>([
    ['a pipeline that writes', aggregating([{ $out: 'x' }]), { code: 'refused_by_policy' }],
    ['a stage that shows the work of others', aggregating([{ $currentOp: {} }]), { code: 'refused_by_policy' }],
    ['a system collection', { ...findAll(), database: 'admin', collection: 'system.users' }, { code: 'refused_by_policy' }],
    ['no target', { exportTarget: [] }, { code: 'bad_argument' }],
    ['an argument of the other method', { exportTarget: [{ name: 'find', arguments: { pipeline: [] } }] }, { code: 'bad_argument', message: expect.stringMatching(/find takes no pipeline/) }],
    ['columns for what has none', { ...findAll(), fields: ['a'] }, { code: 'bad_argument', path: 'fields' }],
    ['an argument that there is not', { ...findAll(), exportTitle: 'x', nonsense: 1 }, { code: 'bad_argument', message: expect.stringMatching(/no argument "nonsense"/) }],
  ])('is refused before anything is sent: %s', async (_what, args, error) => {
    const answer = await server.callRaw('export', { database, collection, ...args });
    expect(answer).toMatchObject({ isError: true, structuredContent: { error } });
    expect(exportFiles(stateFolder)).toEqual([]);
  });

  it('is refused by the index check where it would scan the whole collection, and runs where it would not', async () => {
    const folder = freshFolder();
    const other = await serve(folder, '--index-check');
    expect(await other.call('export', { database, collection, ...findAll({ filter: { text: 'y' } }) })).toMatchObject({ error: { code: 'refused_by_policy', message: expect.stringMatching(/index check refused this export/) } });
    expect(await other.call('export', { database, collection, ...findAll({ filter: { _id: { $lt: 3 } } }), connectionId: 'preconfigured' })).toMatchObject({ documents: 3, complete: true });
    expect(exportFiles(folder)).toHaveLength(1);
  });

  it('says so before anything is sent when its folder cannot be made', async () => {
    const file = join(freshFolder(), 'file');
    writeFileSync(file, '');
    const other = await serve(join(file, 'state'));
    expect(await other.call('export', { database, collection, ...findAll() })).toMatchObject({ error: { code: 'export_failed', message: expect.stringMatching(/ENOTDIR/), databaseState: 'Nothing was sent to the database.' } });
  });

  it('is refused where no documents may be on the disk', async () => {
    const folder = freshFolder();
    const other = await serve(folder, '--keep-results', 'false');
    expect(await other.call('export', { database, collection, ...findAll() })).toMatchObject({ error: { code: 'refused_by_policy', message: expect.stringMatching(/--keep-results/) } });
    expect(exportFiles(folder)).toEqual([]);
  });
});

describe('an export larger than the limit', () => {
  it('is cut after a whole document, says so, and its cursor is closed', async () => {
    const folder = freshFolder();
    const server = await serve(folder, '--export-bytes', '100000');
    for (const format of ['jsonl', 'json', 'csv']) {
      const answer = await server.call('export', { database, collection, ...findAll(), format });
      expect(answer).toMatchObject({ complete: false, next: expect.stringMatching(/was cut at the limit of 100000 bytes/) });
      expect(answer.bytes).toBeLessThanOrEqual(100_000);
      expect(answer.bytes).toBeGreaterThan(99_800);
      expect(answer.path).toBe(join(folder, 'exports', `${answer.operationId}.cut.${format}`));
      const text = textOf(answer);
      if (format === 'json') expect(JSON.parse(text)).toHaveLength(answer.documents);
      else expect(text.trimEnd().split('\n')).toHaveLength(answer.documents + (format === 'csv' ? 1 : 0));
      expect(await taggedAs(mongo.client, answer.operationId)).toEqual([]);
    }
  });

  it('and all of them together are limited: the oldest file goes, and its resource says so', async () => {
    const folder = freshFolder();
    const server = await serve(folder, '--export-store-bytes', '30000');
    const first = await server.call('export', { database, collection, ...findAll({ limit: 200 }) });
    const second = await server.call('export', { database, collection, ...findAll({ limit: 200, skip: 1 }) });
    const third = await server.call('export', { database, collection, ...findAll({ limit: 200, skip: 2 }) });
    await eventually('the oldest is gone', () => exportFiles(folder).length === 2);
    expect(exportFiles(folder).map(({ name }) => name).sort()).toEqual([`${second.operationId}.jsonl`, `${third.operationId}.jsonl`].sort());
    await expect(server.client.readResource({ uri: first.resource })).rejects.toThrow(/no file: its file was removed to make room/);
  });
});

describe('a full disk', () => {
  const { disk, why } = mountSmallDisk(2_048);
  afterAll(() => disk?.remove());

  it.skipIf(disk === null)(`ends the export with the reason, in the database too, and leaves no half file${why === null ? '' : ` (${why})`}`, async () => {
    const folder = disk!.folder;
    const server = await serve(folder);
    await fill(mongo.client, 'large', 20_000, 500);
    const answer = await server.callRaw('export', { database, collection: 'large', ...findAll() });
    expect(answer).toMatchObject({ isError: true, structuredContent: { outcome: 'failed', error: { code: 'export_failed', message: expect.stringMatching(/ENOSPC/) } } });
    expect(answer.structuredContent.cause).toBe('export_failed');
    await expectGone(folder, answer.structuredContent.operationId);
    // There is room again, for what is smaller.
    const small = await server.call('export', { database, collection: 'large', ...findAll({ limit: 3 }) });
    expect(readFileSync(small.path, 'utf8').trimEnd().split('\n')).toHaveLength(3);
  });
});
