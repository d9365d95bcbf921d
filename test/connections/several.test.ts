/** Several deployments at once over stdio: each call goes where it says, each kill where its operation is, and one that is down holds up no other. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { sleeping, startDetached } from '../support/checked.js';
import { type TestMongo, eventually, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

let first: TestMongo;
let second: TestMongo;
let server: TestServer;
const secret = 's3cr3t-of-the-second';
const where = { database: 'app', collection: 'things' };
const all = { ...where, pipeline: [{ $project: { _id: 0 } }] };

beforeAll(async () => {
  [first, second] = await Promise.all([startMongo(), startMongo({ auth: true })]);
  await first.client.db('app').collection('things').insertOne({ of: 'first' });
  await second.client.db('app').collection('things').insertOne({ of: 'second' });
  await second.client.db('admin').command({ createUser: 'reader', pwd: secret, roles: [{ role: 'read', db: 'app' }] });
});
afterAll(async () => {
  await Promise.all([first.stop(), second.stop()]);
});
beforeEach(async () => {
  server = await startServer({ uri: first.uri, args: ['--allow-js', '--log-level', 'trace'] });
});
afterEach(async () => {
  await server.close();
});

const connectSecond = async (name?: string): Promise<string> => {
  const answer = await server.call('connect', { connectionString: second.uriFor('reader', secret), ...(name === undefined ? {} : { connectionName: name }) });
  expect(answer.connectionId, JSON.stringify(answer)).toMatch(/^[0-9a-z]{12}$/);
  return answer.connectionId;
};
const listed = async () => (await server.call('list-connections')).connections as any[];

describe('a second connection', () => {
  it('has an id of its own, and calls go where they say', async () => {
    expect(await server.call('run', all)).toMatchObject({ documents: [{ of: 'first' }] });
    const connectionId = await connectSecond('the other one');
    expect(await server.call('run', { ...all, connectionId })).toMatchObject({ documents: [{ of: 'second' }], connectionId });
    expect(await server.call('run', { ...all, connectionId: 'preconfigured' })).toMatchObject({ documents: [{ of: 'first' }] });
    const { error, next } = await server.call('run', all);
    expect(error).toMatchObject({ code: 'bad_argument', path: 'connectionId', message: expect.stringContaining(`preconfigured, ${connectionId}`) });
    expect(next).toContain('list-connections');
    for (const tool of ['list-databases', 'mongodb-logs']) expect((await server.call(tool)).error.code).toBe('bad_argument');
    expect((await server.call('list-databases', { connectionId })).databases.map(({ name }: { name: string }) => name)).toEqual(['app']);
    expect(await listed()).toEqual([
      { connectionId: 'preconfigured', name: 'preconfigured', source: 'preconfigured', state: 'connected', description: 'MongoDB connection (host type: local, auth: none)', createdAt: expect.any(String), lastUsedAt: expect.any(String) },
      { connectionId, name: 'the other one', source: 'explicit', state: 'connected', description: 'MongoDB connection (host type: local, auth: scram)', createdAt: expect.any(String), lastUsedAt: expect.any(String) },
    ]);
    expect(await connectSecond()).not.toBe(connectionId);
  });

  it('is where status, kill and operations look for what runs there', async () => {
    const connectionId = await connectSecond();
    const there = await startDetached({ server, mongo: second }, { ...where, connectionId, pipeline: sleeping() });
    const here = await startDetached({ server, mongo: first }, { ...where, connectionId: 'preconfigured', pipeline: sleeping() });
    expect(await server.call('status', { id: there.operationId })).toMatchObject({ server: 'running', connectionId, node: second.hosts[0] });
    const { running, silent, looked } = await server.call('operations');
    expect(running.map((each: any) => [each.operationId, each.connectionId]).sort()).toEqual([[there.operationId, connectionId], [here.operationId, 'preconfigured']].sort());
    expect(silent).toEqual([]);
    expect([...looked].sort()).toEqual([first.hosts[0], second.hosts[0]].sort());
    expect(await server.call('kill', { id: there.operationId })).toMatchObject({ verdict: 'stopped', outcome: 'killed', connectionId });
    expect(await taggedAs(second.client, there.operationId)).toEqual([]);
    expect(await taggedAs(first.client, here.operationId)).toHaveLength(1);
    expect(await server.call('kill', { id: here.operationId })).toMatchObject({ verdict: 'stopped' });
    expect((await server.call('result', { id: there.operationId })).outcome).toBe('killed');
  });

  it('is where a cancelled call is killed', async () => {
    const connectionId = await connectSecond();
    const abort = new AbortController();
    const call = server.call('aggregate', { ...where, connectionId, pipeline: sleeping() }, abort.signal).catch((error: unknown) => error);
    const requestId = server.lastRequestId();
    await eventually('the second database shows it', async () => (await tagged(second.client)).length > 0);
    abort.abort();
    await call;
    await eventually('it is gone', async () => (await tagged(second.client)).length === 0, 3_000);
    expect(await server.call('status', { requestId, waitMs: 5_000 })).toMatchObject({ outcome: 'killed', cause: 'client_cancelled', connectionId });
  });

  it('shares the limit of operations at once with the first', async () => {
    const few = await startServer({ uri: first.uri, args: ['--allow-js', '--max-operations', '1', '--max-queued', '0'] });
    try {
      const { connectionId } = await few.call('connect', { connectionString: second.uriFor('reader', secret) });
      const there = await startDetached({ server: few, mongo: second }, { ...where, connectionId, pipeline: sleeping() });
      expect((await few.call('run', { ...all, connectionId: 'preconfigured' })).error.code).toBe('busy');
      await few.call('kill', { id: there.operationId });
      expect(await few.call('run', { ...all, connectionId: 'preconfigured' })).toMatchObject({ outcome: 'succeeded' });
    } finally {
      await few.close();
    }
  });

  it('is emptied by the end of the process like the first', async () => {
    const connectionId = await connectSecond();
    const there = await startDetached({ server, mongo: second }, { ...where, connectionId, pipeline: sleeping() });
    const here = await startDetached({ server, mongo: first }, { ...where, connectionId: 'preconfigured', pipeline: sleeping() });
    expect(await server.close()).toEqual({ code: 0, signal: null });
    expect([...(await taggedAs(second.client, there.operationId)), ...(await taggedAs(first.client, here.operationId))]).toEqual([]);
    const report = JSON.parse(server.stderr.find((line) => line.includes('"allProven"')) ?? '{}');
    expect(report.operations.map(({ operationId }: { operationId: string }) => operationId).sort()).toEqual([there.operationId, here.operationId].sort());
  });
});

describe('disconnect', () => {
  it('kills and proves what runs there first, and nothing elsewhere', async () => {
    const connectionId = await connectSecond();
    const there = await startDetached({ server, mongo: second }, { ...where, connectionId, pipeline: sleeping() });
    const waiting = server.call('run', { ...where, connectionId, pipeline: [...sleeping(), { $match: {} }], waitMs: 60_000 });
    await eventually('both run', async () => (await tagged(second.client)).length === 2);
    const here = await startDetached({ server, mongo: first }, { ...where, connectionId: 'preconfigured', pipeline: sleeping() });
    const answer = await server.call('disconnect', { connectionId });
    expect(answer).toMatchObject({ outcome: 'removed' });
    expect(answer.operations.map(({ verdict }: { verdict: string }) => verdict)).toEqual(['stopped', 'stopped']);
    expect(await tagged(second.client)).toEqual([]);
    expect(await waiting).toMatchObject({ outcome: 'killed', cause: 'disconnect' });
    await eventually('the server has left the second database', async () => {
      const clients = await second.client.db('admin').aggregate([{ $currentOp: { allUsers: true, idleConnections: true } }, { $match: { appName: { $regex: '^mongo-leash' } } }]).toArray();
      return clients.length === 0;
    });
    expect((await server.call('run', { ...all, connectionId })).error).toMatchObject({ code: 'not_found', path: 'connectionId' });
    // There is one again, which goes without saying; and what became of the other is still told.
    expect(await server.call('run', all)).toMatchObject({ documents: [{ of: 'first' }] });
    expect(await server.call('status', { id: there.operationId })).toMatchObject({ outcome: 'killed', cause: 'disconnect', connectionId });
    expect(await server.call('kill', { id: here.operationId })).toMatchObject({ verdict: 'stopped' });
  });

  it('of the preconfigured one ends it until it is used again', async () => {
    const here = await startDetached({ server, mongo: first }, { ...where, pipeline: sleeping() });
    expect(await server.call('disconnect', { connectionId: 'preconfigured' })).toMatchObject({ outcome: 'disconnected', operations: [{ operationId: here.operationId, verdict: 'stopped' }] });
    expect(await listed()).toMatchObject([{ connectionId: 'preconfigured', state: 'disconnected' }]);
    expect(await server.call('run', all)).toMatchObject({ documents: [{ of: 'first' }] });
    expect(await listed()).toMatchObject([{ state: 'connected' }]);
    const again = await startDetached({ server, mongo: first }, { ...where, pipeline: sleeping() });
    expect(await server.call('kill', { id: again.operationId })).toMatchObject({ verdict: 'stopped' });
  });

  it('says that there is no such connection', async () => {
    expect((await server.call('disconnect', { connectionId: 'nope' })).error).toMatchObject({ code: 'not_found', message: 'There is no connection "nope".', databaseState: 'Nothing was sent to the database.' });
  });
});

describe('connect', () => {
  it.each([
    ['a wrong password', () => second.uriFor('reader', 'wr0ng-secret'), 'authentication_failed', /Authentication failed/],
    ['a server that is not there', () => 'mongodb://user:wr0ng-secret@127.0.0.1:1/?serverSelectionTimeoutMS=500', 'unreachable', /ECONNREFUSED/],
    ['a string that cannot be read', () => 'mongodb://user:wr0ng-secret@host@127.0.0.1:1/', 'bad_argument', /percent-encoded/],
    ['an option that does not exist', () => 'mongodb://user:wr0ng-secret@127.0.0.1:1/?nonsense=1', 'bad_argument', /nonsense/],
  ])('says why it fails with %s, without the secret, and leaves nothing', async (_what, uri, code, message) => {
    const { isError, content, structuredContent: body } = await server.callRaw('connect', { connectionString: uri() });
    expect(isError).toBe(true);
    expect(body.error).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(JSON.stringify(content) + JSON.stringify(body) + server.stderr.join('\n')).not.toContain('wr0ng-secret');
    expect(await listed()).toHaveLength(1);
  });

  it('never repeats the secret of a connection, in no answer and no line of the log', async () => {
    const connectionId = await connectSecond();
    await server.call('run', { ...all, connectionId });
    await server.call('run', { ...all, connectionId, pipeline: [{ $nonsense: 1 }] });
    await server.call('run', { ...all, connectionId: second.uriFor('reader', secret) });
    await server.call('run', { ...where, connectionId, pipeline: [{ $project: { x: { $divide: [1, 0] } } }] });
    await server.call('operations');
    await server.call('list-connections');
    await server.call('disconnect', { connectionId });
    await server.close();
    expect([...server.stdout, ...server.stderr].filter((line) => line.includes(secret))).toEqual([]);
  });

  it('refuses the name of the preconfigured connection, and too many', async () => {
    expect((await server.call('connect', { connectionString: second.uri, connectionName: 'preconfigured' })).error.path).toBe('connectionName');
    expect((await server.call('connect', {})).error.code).toBe('bad_argument');
    for (let i = 0; i < 10; i += 1) await connectSecond();
    expect(await server.call('connect', { connectionString: second.uri })).toMatchObject({ error: { code: 'busy' }, next: expect.stringContaining('disconnect') });
  }, 60_000);

  it('gives the server a database when it was started without one', async () => {
    const bare = await startServer();
    try {
      expect(await bare.call('list-connections')).toMatchObject({ connections: [] });
      expect((await bare.call('run', all)).error.code).toBe('not_configured');
      const { connectionId } = await bare.call('connect', { connectionString: first.uri });
      expect(await bare.call('run', all)).toMatchObject({ documents: [{ of: 'first' }], connectionId });
      await bare.call('disconnect', { connectionId });
      expect((await bare.call('run', all)).error.code).toBe('not_configured');
    } finally {
      await bare.close();
    }
  });

  it('is given up when the call is cancelled', async () => {
    second.freeze(second.hosts[0] ?? '');
    try {
      const abort = new AbortController();
      const call = server.call('connect', { connectionString: second.uriFor('reader', secret) }, abort.signal).catch((error: unknown) => error);
      await delay(300);
      abort.abort();
      await call;
      await eventually('the call ended', () => server.stderr.some((line) => line.includes('"tool":"connect"') && line.includes('"cancelled":true')), 2_000);
    } finally {
      second.thaw(second.hosts[0] ?? '');
    }
    expect(await listed()).toHaveLength(1);
  });
});

describe('a connection that is down', () => {
  it('holds up nothing of the others, and is said not to answer', async () => {
    const connectionId = await connectSecond();
    const there = await startDetached({ server, mongo: second }, { ...where, connectionId, pipeline: sleeping(60_000) });
    const here = await startDetached({ server, mongo: first }, { ...where, connectionId: 'preconfigured', pipeline: sleeping() });
    second.freeze(second.hosts[0] ?? '');
    const timed = async (act: () => Promise<any>): Promise<[any, number]> => {
      const startedAt = performance.now();
      const answer = await act();
      return [answer, performance.now() - startedAt];
    };
    try {
      const [answer, runMs] = await timed(() => server.call('run', { ...all, connectionId: 'preconfigured' }));
      expect(answer).toMatchObject({ documents: [{ of: 'first' }] });
      expect(runMs).toBeLessThan(1_000);
      const [list, listMs] = await timed(() => server.call('operations'));
      expect(listMs).toBeLessThan(4_000);
      expect(list.silent).toEqual([{ node: `connection ${connectionId}`, reason: expect.any(String) }]);
      expect(list.running.map(({ operationId }: { operationId: string }) => operationId).sort()).toEqual([there.operationId, here.operationId].sort());
      const [connections, connectionsMs] = await timed(listed);
      expect(connectionsMs).toBeLessThan(3_000);
      expect(connections).toMatchObject([{ connectionId: 'preconfigured', state: 'connected' }, { connectionId, state: 'errored', lastError: expect.any(String) }]);
      const [killed, killMs] = await timed(() => server.call('kill', { id: here.operationId }));
      expect(killed).toMatchObject({ verdict: 'stopped' });
      expect(killMs).toBeLessThan(2_000);
      const [unknown, unknownMs] = await timed(() => server.call('status', { id: '0'.repeat(26) }));
      expect(unknown.error.code).toBe('unreachable');
      expect(unknownMs).toBeLessThan(4_000);
      // What cannot be proven keeps its connection.
      const kept = await server.call('disconnect', { connectionId });
      expect(kept).toMatchObject({ outcome: 'still_connected', operations: [{ operationId: there.operationId, verdict: 'unknown' }] });
    } finally {
      second.thaw(second.hosts[0] ?? '');
    }
    await eventually('it is killed after all', async () => (await server.call('status', { id: there.operationId })).outcome === 'killed', 20_000);
    expect(await server.call('disconnect', { connectionId })).toMatchObject({ outcome: 'removed' });
  }, 60_000);
});

describe('an operation of an earlier process', () => {
  it.each(['by its record', 'by its tag'])('is found on the second connection %s', async (how) => {
    const folder = mkdtempSync(join(tmpdir(), 'mongo-leash-several-'));
    const connections = JSON.stringify({ other: second.uriFor('reader', secret) });
    const options = { uri: first.uri, args: ['--allow-js', '--sweep', 'off'], env: { MONGO_LEASH_CONNECTIONS: connections } };
    const dead = await startServer({ ...options, stateFolder: folder });
    const later = await startServer(how === 'by its record' ? { ...options, stateFolder: folder } : options);
    try {
      const left = await startDetached({ server: dead, mongo: second }, { ...where, connectionId: 'other', pipeline: sleeping(60_000) });
      dead.process.kill('SIGKILL');
      await dead.exited;
      if (how === 'by its tag') expect(await later.call('operations')).toMatchObject({ silent: [{ node: 'connection other' }] });
      expect(await later.call('status', { id: left.operationId })).toMatchObject({ server: 'running', node: second.hosts[0] });
      expect(await later.call('operations')).toMatchObject({ running: [{ operationId: left.operationId, connectionId: 'other' }], silent: [] });
      expect(await later.call('kill', { id: left.operationId })).toMatchObject({ verdict: expect.stringMatching(/stopped|gone/) });
      expect(await taggedAs(second.client, left.operationId)).toEqual([]);
    } finally {
      await later.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
