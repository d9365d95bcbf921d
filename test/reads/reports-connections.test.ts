/** Rights, secrets, names that do not resolve and connections that break, by the read tools and by connect (cases D08, D10, D11, D12, D23). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Checked, startChecked } from '../support/checked.js';
import { eventually, tagged } from '../support/mongo.js';
import { filtering, joining } from '../support/reads.js';
import { type RenamingTunnel, startRenamingTunnel } from '../support/renaming-tunnel.js';
import { type TestServer, startServer } from '../support/server.js';
import { type TcpProxy, closeInsteadOfReply, startProxy } from '../support/tcp-proxy.js';

let rig: Checked;
let tunnel: RenamingTunnel;
let proxy: TcpProxy;
const secret = 's3cr3t-Passw0rd';
const on = { database: 'app', collection: 'a' };

beforeAll(async () => {
  rig = await startChecked({}, { auth: true });
  const { client, hosts } = rig.mongo;
  for (const collection of ['a', 'b']) await client.db('app').collection<{ _id: number }>(collection).insertMany([{ _id: 1 }, { _id: 2 }]);
  await client.db('app').collection<{ _id: number; pad: string }>('megabytes').insertMany(Array.from({ length: 20 }, (_, _id) => ({ _id, pad: 'x'.repeat(1_000_000) })));
  const admin = client.db('admin');
  await admin.command({ createRole: 'onlyA', roles: [], privileges: [{ resource: { db: 'app', collection: 'a' }, actions: ['find'] }] });
  await admin.command({ createUser: 'narrow', pwd: secret, roles: ['onlyA'] });
  await admin.command({ createUser: 'reader', pwd: secret, roles: [{ role: 'read', db: 'app' }, 'clusterMonitor'] });
  tunnel = await startRenamingTunnel(hosts[0] ?? '');
  proxy = await startProxy(hosts[0] ?? '');
});
afterAll(async () => {
  await rig.stop();
  await tunnel.close();
  await proxy.close();
});

/** One call of every tool that asks the database, and wrong ones. */
const everyCall: [string, Record<string, unknown>][] = [
  ...filtering.map((how): [string, Record<string, unknown>] => [how.tool, { ...on, ...how.args({ _id: 1 }) }]),
  ...filtering.map((how): [string, Record<string, unknown>] => [how.tool, { ...on, ...how.args({ _id: { $bad: 1 } }) }]),
  ['aggregate-db', { database: 'app', pipeline: [{ $documents: [{}] }] }],
  ['collection-schema', on],
  ['collection-indexes', on],
  ['collection-storage-size', on],
  ['db-stats', { database: 'app' }],
  ['list-databases', {}],
  ['list-collections', { database: 'app' }],
  ['mongodb-logs', { limit: 1_000 }],
];

describe('a user who may find in one collection only (D23)', () => {
  let narrow: TestServer;
  beforeAll(async () => {
    narrow = await startServer({ uri: rig.mongo.uriFor('narrow', secret) });
  });
  afterAll(async () => void (await narrow.close()));

  it.each(filtering.map((how) => [how.tool, how] as const))('asks there by %s, and is refused elsewhere with the reason of the server', async (tool, how) => {
    const answer = await narrow.callRaw(tool, { ...on, ...how.args({ _id: 1 }) });
    expect(answer.isError, JSON.stringify(answer.structuredContent)).not.toBe(true);
    expect(how.found(answer.structuredContent)).toBe(1);
    for (const other of [{ collection: 'b' }, { database: 'elsewhere' }]) {
      const { isError, structuredContent: body } = await narrow.callRaw(tool, { ...on, ...how.args({ _id: 1 }), ...other });
      expect(isError).toBe(true);
      expect(body).toMatchObject({ outcome: 'failed', error: { code: 'operation_failed', serverCode: 13, message: expect.stringMatching(/not authorized/) } });
    }
  });

  it('is refused a join with what it may not read', async () => {
    const how = joining('b');
    expect(await narrow.call('aggregate-db', { database: 'app', ...how.args({}) })).toMatchObject({ outcome: 'failed', error: { serverCode: 13 } });
  });
});

describe('secrets', () => {
  const everything = (server: TestServer, answers: unknown[]) => [...server.stdout, ...server.stderr, ...answers.map((answer) => JSON.stringify(answer))].join('\n');

  it('stay out of every answer and line of a whole session of read tools, whose stdout is JSON-RPC and nothing else (D10) (D11)', async () => {
    const server = await startServer({ uri: rig.mongo.uriFor('reader', secret), args: ['--log-level', 'trace'] });
    const answers = [];
    for (const [tool, args] of everyCall) answers.push(await server.callRaw(tool, args));
    answers.push(await server.call('list-connections'), await server.call('connect', { connectionString: rig.mongo.uriFor('reader', secret), connectionName: 'again' }), await server.call('list-connections'));
    answers.push(await server.call('operations'), await server.client.listResources(), await server.client.readResource({ uri: 'mongo-leash://deployment' }));
    expect(answers.filter((answer: any) => answer.isError === true)).toHaveLength(filtering.length);
    expect(await server.close()).toEqual({ code: 0, signal: null });
    expect(everything(server, answers)).not.toContain(secret);
    for (const line of server.stdout) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
  });

  it.each([
    ['that are wrong', () => rig.mongo.uriFor('reader', `wrong-${secret}`), 'authentication_failed', /Authentication failed/],
    ['for a database that is not there', () => `mongodb://user:${secret}@127.0.0.1:1/`, 'unreachable', /127\.0\.0\.1:1 /],
  ])('%s are told apart by every read tool and by connect, and stay secret (D10) (D11)', async (_what, uriOf, code, message) => {
    const server = await startServer({ uri: uriOf(), args: ['--log-level', 'trace'] });
    const answers: any[] = await Promise.all([...everyCall.map(([tool, args]) => server.callRaw(tool, args)), server.callRaw('connect', { connectionString: uriOf() })]);
    for (const answer of answers) {
      expect(answer).toMatchObject({ isError: true, structuredContent: { error: { code, message: expect.stringMatching(message) }, next: expect.any(String) } });
    }
    // The sweep of the start may still be trying.
    const connections = await eventually('the connection is said to fail', async () => {
      const listed = (await server.call('list-connections')).connections;
      return listed[0].state === 'errored' && listed;
    });
    expect(connections).toMatchObject([{ connectionId: 'preconfigured', lastError: expect.stringMatching(message) }]);
    await server.close();
    expect(everything(server, [answers, connections])).not.toContain(secret);
    for (const line of server.stdout) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' });
  });
});

describe('a replica set behind a tunnel, whose member names do not resolve here,', () => {
  const credentials = 'root:root-secret@';

  it('is said to be so by connect within 10 s, with the name and what to do, and is no connection then (D12)', async () => {
    const startedAt = performance.now();
    const answer = await rig.server.callRaw('connect', { connectionString: `mongodb://${credentials}${tunnel.host}/?authSource=admin` });
    expect(performance.now() - startedAt).toBeLessThan(10_000);
    expect(answer).toMatchObject({ isError: true, structuredContent: { error: { code: 'unreachable', message: expect.stringContaining(tunnel.memberName) } } });
    expect(answer.structuredContent.next).toContain('directConnection=true');
    expect((await rig.server.call('list-connections')).connections).toHaveLength(1);
  });

  it('is opened with directConnection=true, and every tool goes to that one node (D12)', async () => {
    const { connectionId } = await rig.server.call('connect', { connectionString: `mongodb://${credentials}${tunnel.host}/?directConnection=true&authSource=admin` });
    for (const how of filtering.filter(({ tool }) => tool !== 'export')) {
      const answer = await rig.server.call(how.tool, { ...on, ...how.args({ _id: 1 }), connectionId });
      expect(how.found(answer)).toBe(1);
      expect(await rig.server.call('status', { id: answer.operationId })).toMatchObject({ node: tunnel.host, connectionId });
    }
    expect(await rig.server.call('list-collections', { database: 'app', connectionId })).toMatchObject({ totalCount: 3 });
    expect(await rig.server.call('disconnect', { connectionId })).toMatchObject({ outcome: 'removed' });
  });
});

describe('a result over 16 MB (D08)', () => {
  const pushed = [{ $group: { _id: null, all: { $push: '$pad' } } }];
  let server: TestServer;
  let sends = 0;
  beforeAll(async () => {
    proxy.onClientBytes((_wire, text) => { sends += text.split('megabytes\0').length - 1; });
    server = await startServer({ uri: `mongodb://root:root-secret@${proxy.host}/?directConnection=true&authSource=admin` });
    // The first call also asks what the collection is.
    await server.call('count', { database: 'app', collection: 'megabytes' });
  });
  afterAll(async () => void (await server.close()));

  it.each<[string, object, number]>([
    ['aggregate', { pipeline: pushed }, 10_334],
    ['aggregate', { pipeline: [{ $facet: { all: [{ $project: { pad: 1 } }] } }] }, 10_334],
    ['distinct', { field: 'pad2' }, 0],
    ['explain', { method: [{ name: 'aggregate', arguments: { pipeline: pushed } }], verbosity: 'executionStats' }, 0],
    ['export', { exportTarget: [{ name: 'aggregate', arguments: { pipeline: pushed } }] }, 10_334],
  ])('is asked for once by %s %j, named for what it is, and the next query works', async (tool, args, serverCode) => {
    sends = 0;
    const { isError, structuredContent: body } = await server.callRaw(tool, { database: 'app', collection: 'megabytes', ...args });
    expect(sends).toBe(1);
    if (serverCode === 0) expect(isError).not.toBe(true);
    else {
      expect(body).toMatchObject({ outcome: 'failed', server: 'ended', error: { code: 'operation_failed', serverCode } });
      expect(body.next).toMatch(/16 MB.*project fewer fields.*\$unwind/);
    }
    expect(await server.call('find', { database: 'app', collection: 'megabytes', projection: { _id: 1 }, limit: 1 })).toMatchObject({ returned: 1 });
    expect(sends).toBe(2);
    expect(await tagged(rig.mongo.client)).toEqual([]);
  });

  it('for which the server closes the connection, as some do, is asked for once, and suspected by name', async () => {
    sends = 0;
    const close = closeInsteadOfReply(proxy, '$push');
    const body = await server.call('aggregate', { database: 'app', collection: 'megabytes', pipeline: pushed });
    expect(close.isDone()).toBe(true);
    expect(sends).toBe(1);
    expect(JSON.stringify(body)).toMatch(/16 MB.*project fewer fields.*\$unwind/);
    expect(body.outcome).not.toBe('succeeded');
    expect(await server.call('count', { database: 'app', collection: 'megabytes' })).toMatchObject({ count: 20 });
  });
});
