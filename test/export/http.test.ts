/** Exports over HTTP: a download for their principal alone, or, where nobody is authenticated, for whoever holds the link. */
import { EJSON } from 'bson';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { database, fill, findAll, startHanging } from '../support/exports.js';
import { type HttpClient, type HttpTestServer, ask, connectLegacy, connectModern, modernRequest, startHttpServer } from '../support/http-server.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { freshFolder, newOperationId } from '../support/records.js';

let mongo: TestMongo;
const collection = 'many';
const alice = 'alice-token-0123456789';
const bob = 'bob-token-0123456789';
const admin = 'admin-token-0123456789';
const tokens = `alice leash:read,leash:kill ${alice};bob leash:read ${bob};root leash:admin ${admin}`;
const bearer = (token: string, more: Record<string, string> = {}) => ({ headers: { Authorization: `Bearer ${token}`, ...more } });

beforeAll(async () => {
  mongo = await startMongo();
  await fill(mongo.client, collection, 20_000);
});
afterAll(() => mongo.stop());

describe('with authentication', () => {
  const stateFolder = freshFolder();
  let server: HttpTestServer;
  const clients: HttpClient[] = [];
  const connect = async (token: string, how = connectLegacy) => {
    const client = await how(server.url, token);
    clients.push(client);
    return client;
  };
  beforeAll(async () => {
    server = await startHttpServer({ uri: mongo.uri, stateFolder, args: ['--allow-js'], env: { MONGO_LEASH_TOKENS: tokens } });
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await server.stop();
  });

  it.each([['2025-11-25', connectLegacy], ['2026-07-28', connectModern]] as const)('a client of %s is told an address, which gives its principal the file, and no path', async (_era, how) => {
    const answer = await (await connect(alice, how)).call('export', { database, collection, ...findAll({ sort: { _id: 1 } }) });
    expect(answer).toMatchObject({ documents: 20_000, complete: true, download: server.at(`/operations/${answer.operationId}/result`).href });
    expect(JSON.stringify(answer)).not.toContain(stateFolder);
    const response = await fetch(answer.download, bearer(alice));
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/jsonl; charset=utf-8',
      'content-length': String(answer.bytes),
      'content-disposition': `attachment; filename="${answer.operationId}.jsonl"`,
      'cache-control': 'private, no-store',
      'accept-ranges': 'bytes',
    });
    const lines = (await response.text()).trimEnd().split('\n');
    expect(lines).toHaveLength(20_000);
    expect(EJSON.parse(lines[19_999] ?? '')).toMatchObject({ _id: 19_999 });
  });

  it('a part of it is had by its range, as a download that was cut off needs it', async () => {
    const answer = await (await connect(alice)).call('export', { database, collection, ...findAll({ limit: 3, sort: { _id: 1 } }) });
    const whole = await (await fetch(answer.download, bearer(alice))).text();
    for (const [range, expected, contentRange] of [['bytes=5-9', whole.slice(5, 10), '5-9'], [`bytes=${whole.length - 4}-`, whole.slice(-4), `${whole.length - 4}-${whole.length - 1}`], ['bytes=-4', whole.slice(-4), `${whole.length - 4}-${whole.length - 1}`]]) {
      const part = await fetch(answer.download, bearer(alice, { Range: range ?? '' }));
      expect([part.status, await part.text(), part.headers.get('content-range')]).toEqual([206, expected, `bytes ${contentRange}/${whole.length}`]);
    }
    expect((await fetch(answer.download, bearer(alice, { Range: `bytes=${whole.length}-` }))).status).toBe(416);
    const head = await fetch(answer.download, { method: 'HEAD', ...bearer(alice) });
    expect([head.status, head.headers.get('content-length'), await head.text()]).toEqual([200, String(whole.length), '']);
  });

  it('others do not find it, in the same words as what is not there; an administrator does', async () => {
    const hers = await connect(alice);
    const his = await connect(bob);
    const answer = await hers.call('export', { database, collection, ...findAll({ limit: 3 }) });
    const absent = server.at(`/operations/${newOperationId()}/result`);
    const seenBy = async (token: string, url: string | URL) => {
      const response = await fetch(url, bearer(token));
      return [response.status, await response.text()];
    };
    expect(await seenBy(bob, answer.download)).toEqual(await seenBy(bob, absent));
    expect((await seenBy(bob, answer.download))[0]).toBe(404);
    expect((await fetch(answer.download)).status).toBe(401);
    expect((await fetch(`${answer.download as string}?access_token=${alice}`)).status).toBe(400);
    expect((await seenBy(admin, answer.download))[0]).toBe(200);
    const failure = (uri: string) => his.request('resources/read', { uri }).catch((error: unknown) => String((error as Error).message).replaceAll(uri, 'URI'));
    expect(await failure(answer.resource)).toBe(await failure(`mongo-leash://operations/${newOperationId()}/result`));
    expect((await his.request('resources/list')).resources.map(({ uri }: any) => uri)).toEqual(['mongo-leash://deployment']);
    expect((await hers.request('resources/list')).resources.map(({ uri }: any) => uri)).toContain(answer.resource);
  });

  it('of one that runs there is no file yet; one that was killed has none', async () => {
    const hers = await connect(alice);
    const as = { call: (name: string, args: object) => hers.call(name, args as Record<string, unknown>) };
    const id = await startHanging(as as never, mongo.client, stateFolder, collection);
    const url = server.at(`/operations/${id}/result`);
    expect((await fetch(url, bearer(alice))).status).toBe(409);
    expect((await fetch(url, bearer(bob))).status).toBe(404);
    expect(await hers.call('kill', { id })).toMatchObject({ verdict: 'stopped' });
    expect(await taggedAs(mongo.client, id)).toEqual([]);
    expect((await fetch(url, bearer(alice))).status).toBe(404);
  });

  it('goes on as a native task, whose result tells the address', async () => {
    const call = (method: string, params: Record<string, unknown>) => ask(server.url, modernRequest(1, method, params, { token: alice }));
    const created = (await call('tools/call', { name: 'export', arguments: { database, collection, ...findAll(), waitMs: 0 } })).result;
    expect(created).toMatchObject({ resultType: 'task' });
    const task = await eventually('the task has completed', async () => {
      const answer = (await call('tasks/get', { taskId: created.taskId })).result;
      return answer.status === 'completed' ? answer : null;
    });
    expect(task.result.structuredContent).toMatchObject({ operationId: created.taskId, documents: 20_000, complete: true, download: server.at(`/operations/${created.taskId}/result`).href });
    expect(task.result.content[1]).toMatchObject({ type: 'resource_link', uri: `mongo-leash://operations/${created.taskId}/result` });
  });
});

describe('without authentication', () => {
  let server: HttpTestServer;
  beforeAll(async () => { server = await startHttpServer({ uri: mongo.uri }); });
  afterAll(() => server.stop());

  it('the link holds a key that nobody guesses, good for this one file', async () => {
    const client = await connectLegacy(server.url);
    const answer = await client.call('export', { database, collection, ...findAll({ limit: 3 }) });
    const other = await client.call('export', { database, collection, ...findAll({ limit: 4 }) });
    const key = new URL(answer.download).searchParams.get('key');
    expect(key).toMatch(/^[\w-]{32}$/);
    expect((await fetch(answer.download)).status).toBe(200);
    for (const url of [`/operations/${answer.operationId}/result`, `/operations/${answer.operationId}/result?key=`, `/operations/${answer.operationId}/result?key=${'A'.repeat(32)}`, `/operations/${other.operationId}/result?key=${key}`]) {
      expect((await fetch(server.at(url))).status).toBe(404);
    }
    expect((await fetch(answer.download, { method: 'POST' })).status).toBe(405);
    // A web page elsewhere gets nothing, with the key or without.
    expect((await fetch(answer.download, { headers: { Origin: 'https://evil.example.com' } })).status).toBe(403);
    await client.close();
  });
});
