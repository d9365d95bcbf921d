/** Narrow rights are enough for what they allow, a plain reader kills its own, and passwords stay secret (cases D11, D23). */
import { MongoClient } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Checked, sleeping, startChecked, startDetached } from '../support/checked.js';
import { eventually, taggedAs } from '../support/mongo.js';
import type { TestServer } from '../support/server.js';

let rig: Checked;
const secret = 's3cr3t-Passw0rd';
/** With every character that has a meaning in a connection string. */
const special = 'p@ss:w/o?r#d%[1]&=+ é"\'s3cr3t';
const run = { database: 'app', collection: 'a', pipeline: [{ $sort: { _id: 1 } }] };

beforeAll(async () => {
  rig = await startChecked({ args: ['--allow-js', '--log-level', 'trace'] }, { auth: true });
  const { client } = rig.mongo;
  const db = client.db('app');
  for (const collection of ['a', 'b']) await db.collection<{ _id: number }>(collection).insertOne({ _id: 1 });
  await db.createCollection('viewOfB', { viewOn: 'b', pipeline: [] });
  const admin = client.db('admin');
  const user = (name: string, roles: unknown[], pwd = secret) => admin.command({ createUser: name, pwd, roles });
  await admin.command({ createRole: 'onlyA', roles: [], privileges: [{ resource: { db: 'app', collection: 'a' }, actions: ['find'] }] });
  await admin.command({ createRole: 'onlyViewOfB', roles: [], privileges: [{ resource: { db: 'app', collection: 'viewOfB' }, actions: ['find'] }] });
  await user('reader', [{ role: 'read', db: 'app' }]);
  await user('narrow', ['onlyA']);
  await user('viewer', ['onlyViewOfB']);
  await user('special', [{ role: 'read', db: 'app' }], special);
});
afterAll(async () => {
  await rig.stop();
});

const serverFor = (user: string, password = secret): Promise<TestServer> => rig.another({ uri: rig.mongo.uriFor(user, password), args: ['--allow-js', '--log-level', 'trace'] });

describe('a user who may find in one collection only', () => {
  it('runs there, and is refused elsewhere with the reason of the server (D23)', async () => {
    const server = await serverFor('narrow');
    expect(await server.call('run', run)).toMatchObject({ outcome: 'succeeded', documents: [{ _id: 1 }] });
    for (const other of [{ ...run, collection: 'b' }, { ...run, collection: 'viewOfB' }, { ...run, database: 'elsewhere' }, { ...run, pipeline: [{ $unionWith: 'b' }] }]) {
      const { isError, structuredContent: body } = await server.callRaw('run', other);
      expect(isError).toBe(true);
      expect(body).toMatchObject({ outcome: 'failed', error: { code: 'operation_failed', serverCode: 13, serverCodeName: 'Unauthorized', message: expect.stringMatching(/not authorized/) } });
    }
    expect(await server.call('operations')).toMatchObject({ running: [], silent: [] });
    expect(await server.call('run', run)).toMatchObject({ outcome: 'succeeded' });
  });

  it('kills its own there (D23)', async () => {
    const server = await serverFor('narrow');
    const handle = await startDetached({ server, mongo: rig.mongo }, { ...run, pipeline: sleeping() });
    expect(await server.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped', outcome: 'killed' });
    expect(await taggedAs(rig.mongo.client, handle.operationId)).toEqual([]);
  });

  it('is told that a view whose definition it may not read cannot be checked', async () => {
    const server = await serverFor('viewer');
    const body = await server.call('run', { ...run, collection: 'viewOfB' });
    expect(body.error).toMatchObject({ code: 'refused_by_policy', message: expect.stringContaining('app.viewOfB') });
    expect(body.next).toContain('listCollections');
    // Where nothing is to be checked, it is read.
    const open = await rig.another({ uri: rig.mongo.uriFor('viewer', secret), args: ['--allow-js', '--allow-internal'] });
    expect(await open.call('run', { ...run, collection: 'viewOfB' })).toMatchObject({ outcome: 'succeeded', documents: [{ _id: 1 }] });
  });
});

describe('a plain read user', () => {
  it('finds, watches, cancels and kills its own operations, and leaves those of another user alone', async () => {
    const { mongo } = rig;
    const server = await serverFor('reader');
    const slow = { ...run, pipeline: sleeping() };
    const stranger = mongo.client.db('app').collection('a').aggregate(sleeping(), { comment: 'of root' }).toArray().catch(() => undefined);
    const handle = await startDetached({ server, mongo }, slow);
    expect(await server.call('status', { id: handle.operationId })).toMatchObject({ server: 'running', evidence: [expect.objectContaining({ saw: 'operation' })] });
    expect((await server.call('operations')).running).toHaveLength(1);
    const killed = await server.call('kill', { id: handle.operationId });
    expect(killed).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us' });
    expect(killed.kill.sent[0].error).toBeUndefined();
    expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);

    const stop = new AbortController();
    const cancelled = server.call('run', slow, stop.signal).then(() => 'answered', () => 'cancelled');
    const requestId = server.lastRequestId();
    const [row] = await eventually('the database shows the second one', async () => {
      const rows = await mongo.client.db('admin').aggregate([{ $currentOp: { allUsers: true } }, { $match: { 'command.comment': { $regex: `\\.n:${requestId}$` } } }]).toArray();
      return rows.length > 0 && rows;
    });
    stop.abort();
    expect(await cancelled).toBe('cancelled');
    await eventually('the database shows it no more', async () => (await mongo.client.db('admin').aggregate([{ $currentOp: { allUsers: true } }, { $match: { opid: row?.['opid'] as number } }]).toArray()).length === 0, 2_000);
    expect(await server.call('status', { requestId, waitMs: 5_000 })).toMatchObject({ outcome: 'killed', cause: 'client_cancelled' });

    const others = await mongo.client.db('admin').aggregate([{ $currentOp: { allUsers: true } }, { $match: { 'command.comment': 'of root' } }]).toArray();
    expect(others).toHaveLength(1);
    await mongo.client.db('admin').command({ killOp: 1, op: others[0]?.['opid'] });
    await stranger;
  });

  it('cannot see what another user of the database runs under our tag, and says not_found', async () => {
    const handle = await startDetached(rig, { ...run, pipeline: sleeping() });
    const server = await serverFor('reader');
    expect(await server.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'not_found' });
    expect(await taggedAs(rig.mongo.client, handle.operationId)).toHaveLength(1);
    expect(await rig.server.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped' });
  });
});

describe('credentials', () => {
  /** Everything that the process wrote and answered. */
  const everything = (server: TestServer, answers: unknown[]) => [...server.stdout, ...server.stderr, ...answers.map((answer) => JSON.stringify(answer))].join('\n');

  it('that are wrong are told apart from a database that is not there, and stay secret (D10) (D11)', async () => {
    const wrong = await serverFor('reader', `wrong-${secret}`);
    // A port that was free a moment ago.
    const nobody = await rig.another({ uri: `mongodb://user:${secret}@127.0.0.1:1/`, args: ['--log-level', 'trace'] });
    const calls: [string, Record<string, unknown>][] = [['run', run], ['kill', { id: '0'.repeat(26) }], ['status', { id: '0'.repeat(26) }], ['operations', {}], ['result', { id: '0'.repeat(26) }]];
    const ask = (server: TestServer) => Promise.all(calls.map(([tool, args]) => server.callRaw(tool, args)));
    const [refused, unreachable] = await Promise.all([ask(wrong), ask(nobody)]);
    for (const answer of refused) expect(answer).toMatchObject({ isError: true, structuredContent: { error: { code: 'authentication_failed', message: expect.stringContaining('Authentication failed') }, next: expect.stringContaining('password') } });
    for (const answer of unreachable) expect(answer).toMatchObject({ isError: true, structuredContent: { error: { code: 'unreachable', message: expect.stringContaining('127.0.0.1:1') } } });
    await Promise.all([wrong.close(), nobody.close()]);
    expect(wrong.stderr.join('\n')).toMatch(/refused the credentials/);
    for (const line of [...wrong.stdout, ...nobody.stdout]) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
    expect(everything(wrong, refused)).not.toContain(secret);
    expect(everything(nobody, unreachable)).not.toContain(secret);
  });

  it.each(['environment', "stock server's variable", 'command line'])('from the %s stay out of every answer and log line of a whole session (D10) (D11)', async (from) => {
    const uri = rig.mongo.uriFor('reader', secret);
    const options = from === 'command line' ? { args: ['--uri', uri] } : { args: [], env: { [from === 'environment' ? 'MONGO_LEASH_URI' : 'MDB_MCP_CONNECTION_STRING']: uri } };
    const server = await rig.another({ uri: '', ...options, args: [...options.args, '--allow-js', '--log-level', 'trace'] });
    const handle = await startDetached({ server, mongo: rig.mongo }, { ...run, pipeline: sleeping() });
    const answers = [
      handle,
      await server.call('run', run),
      await server.call('run', { ...run, pipeline: [{ $nonsense: 1 }] }),
      await server.call('run', { ...run, pipeline: [{ $project: { x: { $divide: [1, 0] } } }] }),
      await server.call('status', { id: handle.operationId }),
      await server.call('operations'),
      await server.call('kill', { id: handle.operationId }),
      await server.call('kill', { id: 'nonsense' }),
    ];
    expect(answers[1]).toMatchObject({ outcome: 'succeeded' });
    expect(answers[6]).toMatchObject({ verdict: 'stopped' });
    expect(await server.close()).toEqual({ code: 0, signal: null });
    expect(everything(server, answers)).not.toContain(secret);
    // stdout is JSON-RPC and nothing else; logs are on stderr.
    for (const line of server.stdout) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
    expect(server.stderr.length).toBeGreaterThan(10);
  });

  it('with every special character work when they are percent-encoded, and stay secret in both forms (D11)', async () => {
    const encoded = encodeURIComponent(special);
    const server = await serverFor('special', encoded);
    const answers = [await server.call('run', run)];
    expect(answers[0]).toMatchObject({ outcome: 'succeeded' });
    const wrong = await serverFor('special', `${encoded}x`);
    const refused = [await wrong.call('run', run)];
    expect(refused[0].error.code).toBe('authentication_failed');
    await Promise.all([server.close(), wrong.close()]);
    for (const text of [everything(server, answers), everything(wrong, refused)]) {
      expect(text).not.toContain('s3cr3t');
      expect(text).not.toContain(encoded);
    }
  });

  it.each(['@', ':', '/', '?', '#', '[', ']', '%', '%zz'])('with a bare %s stop the start, say what to write, and are not repeated (D11)', async (character) => {
    const hosts = rig.mongo.hosts[0] ?? '';
    const server = await rig.another({ raw: true, uri: `mongodb://reader:s3cr3t${character}s3cr3t@${hosts}/?authSource=admin` });
    const { code } = await server.exited;
    expect(code).toBe(2);
    const said = server.stderr.join('\n');
    expect(said).toMatch(/special character.*percent-encoded.*%40/);
    expect(said).not.toContain('s3cr3t');
    expect(server.stdout).toEqual([]);
  });

  it('of the witness differ from those of the server, so that what it sees is its own', async () => {
    const reader = new MongoClient(rig.mongo.uriFor('reader', secret));
    await expect(reader.db('admin').aggregate([{ $currentOp: { allUsers: true } }]).toArray()).rejects.toMatchObject({ code: 13 });
    await reader.close();
  });
});
