/** Who sees and stops what over HTTP: what is not one's own is not there, in the very words for what never was. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpTestServer, ask, modernRequest, startHttpServer } from '../support/http-server.js';
import { type RawSession, beginSession, joinSession, seen, sleepFor } from '../support/http-sessions.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { untilGone } from '../support/runaways.js';

let mongo: TestMongo;
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('one').insertOne({});
});
afterAll(() => mongo.stop());

const isThere = async (id: string) => (await taggedAs(mongo.client, id)).length > 0;

/** A caller of either era: the answer to a request, as it came. */
interface Asker {
  request(method: string, params: Record<string, unknown>): Promise<any>;
}

const modern = (url: URL, token?: string): Asker => ({ request: (method, params) => ask(url, modernRequest('ask', method, params, { token })) });

/** Everything that can be asked about an operation, with what is answered; the id itself and times are left out. */
async function allAbout(asker: Asker, id: string, methods: readonly string[]): Promise<unknown[]> {
  const tool = (name: string) => asker.request('tools/call', { name, arguments: { id } });
  const answers = [await tool('status'), await tool('result'), await tool('kill')];
  for (const method of methods) answers.push(await asker.request(method, { taskId: id, ...(method === 'tasks/update' ? { inputResponses: {} } : {}) }));
  return answers.map((answer) => {
    const { id: _request, ...rest } = answer as { id: unknown };
    return JSON.parse(JSON.stringify(rest).replaceAll(id, '<id>').replace(/"\d{4}-\d\d-\d\dT[^"]+"/g, '"<time>"').replace(/"(elapsedMs)":\d+/g, '"$1":0')) as unknown;
  });
}

const methods = { legacy: ['tasks/get', 'tasks/result', 'tasks/cancel'], modern: ['tasks/get', 'tasks/update', 'tasks/cancel'] } as const;

/** An id of the right form that no operation has. */
const neverWas = (id: string) => [...id].reverse().join('');

/** Neither the operations that run nor the one that has ended are there for this caller, whatever is asked. */
async function expectNotThere(asker: Asker, era: keyof typeof methods, ids: readonly string[]): Promise<void> {
  const [first = ''] = ids;
  const unknown = await allAbout(asker, neverWas(first), methods[era]);
  expect(JSON.stringify(unknown[0])).toContain('not_found');
  for (const id of ids) expect(await allAbout(asker, id, methods[era])).toEqual(unknown);
  const listed = (await asker.request('tools/call', { name: 'operations', arguments: {} })).result.structuredContent;
  expect(listed).toMatchObject({ running: expect.any(Array) as unknown, ended: expect.any(Array) as unknown });
  for (const id of ids) expect(JSON.stringify(listed)).not.toContain(id);
  if (era === 'legacy') expect((await asker.request('tasks/list', {})).result.tasks).toEqual([]);
}

/** One that waits, one that was handed over, a task, and one that has ended. */
async function startAll(session: RawSession): Promise<string[]> {
  const waiting = sleepFor(60_000);
  session.call('mine', 'run', waiting);
  const detached = await session.ask('run', sleepFor(60_000, { waitMs: 0 }));
  const { task } = (await session.request('tools/call', { name: 'run', arguments: sleepFor(60_000), task: {} })).result;
  const ended = await session.ask('run', sleepFor(1));
  const running = [await seen(mongo.client, waiting.comment), detached.operationId as string, task.taskId as string];
  for (const id of running) await eventually('it runs', () => isThere(id));
  return [...running, ended.operationId as string];
}

describe('without authentication, a session of the 2025 era', () => {
  let server: HttpTestServer;
  beforeAll(async () => {
    server = await startHttpServer({ uri: mongo.uri, args: ['--allow-js'] });
  });
  afterAll(() => server.stop());

  it('is a principal of its own: nothing of another one is there for it, and nothing is stopped by it', async () => {
    const session = await beginSession(server.url);
    const ids = await startAll(session);
    const stranger = await beginSession(server.url);
    await expectNotThere(stranger, 'legacy', ids);
    // The stranger's own request of that id is none.
    expect(await stranger.ask('status', { requestId: 'mine' })).toMatchObject({ error: { code: 'not_found' } });
    for (const id of ids.slice(0, 3)) expect(await isThere(id)).toBe(true);
    expect((await session.request('tasks/list')).result.tasks).toMatchObject([{ taskId: ids[2] }]);
    await session.end();
    for (const id of ids.slice(0, 3)) await untilGone(mongo.client, id, 2_000);
  });

  it('is not there for callers of 2026-07-28 either, nor they for it', async () => {
    const session = await beginSession(server.url);
    const ids = await startAll(session);
    await expectNotThere(modern(server.url), 'modern', ids);
    const handle = await ask(server.url, modernRequest(1, 'tools/call', { name: 'run', arguments: sleepFor(60_000, { waitMs: 0 }) }));
    const other = handle.result.taskId as string;
    await eventually('it runs', () => isThere(other));
    expect(await session.ask('kill', { id: other })).toMatchObject({ error: { code: 'not_found' } });
    expect(await isThere(other)).toBe(true);
    await ask(server.url, modernRequest(2, 'tasks/cancel', { taskId: other }));
    await untilGone(mongo.client, other, 2_000);
    await session.end();
  });
});

describe('with tokens', () => {
  const tokens = { alice: 'alice-0123456789abcdef', carol: 'carol-0123456789abcdef', bob: 'bob-0123456789abcdef', root: 'root-0123456789abcdef' };
  let server: HttpTestServer;
  beforeAll(async () => {
    const entries = [`alice leash:kill ${tokens.alice}`, `carol leash:kill ${tokens.carol}`, `bob leash:read ${tokens.bob}`, `root leash:admin ${tokens.root}`];
    server = await startHttpServer({ uri: mongo.uri, args: ['--allow-js'], env: { MONGO_LEASH_TOKENS: entries.join(';') } });
  });
  afterAll(() => server.stop());
  const begin = (name: keyof typeof tokens) => beginSession(server.url, { token: tokens[name] });

  it('clients of one token share what they run, in both eras, and others have nothing of it', async () => {
    const first = await begin('alice');
    const ids = await startAll(first);
    const [waiting = '', detached = '', task = ''] = ids;
    const carol = await begin('carol');
    await expectNotThere(carol, 'legacy', ids);
    await expectNotThere(modern(server.url, tokens.carol), 'modern', ids);
    for (const id of ids.slice(0, 3)) expect(await isThere(id)).toBe(true);

    const second = await begin('alice');
    expect(await second.ask('status', { id: waiting })).toMatchObject({ operationId: waiting, server: 'running' });
    // A request id means something in its own session only.
    expect(await second.ask('status', { requestId: 'mine' })).toMatchObject({ error: { code: 'not_found' } });
    expect(await second.ask('kill', { id: waiting })).toMatchObject({ verdict: 'stopped', cause: 'kill_tool' });
    await untilGone(mongo.client, waiting, 2_000);
    const killed = await modern(server.url, tokens.alice).request('tools/call', { name: 'kill', arguments: { id: detached } });
    expect(killed.result.structuredContent).toMatchObject({ operationId: detached, verdict: 'stopped', cause: 'kill_tool' });
    expect((await modern(server.url, tokens.alice).request('tasks/get', { taskId: task })).result).toMatchObject({ status: 'working' });
    await first.end();
    await untilGone(mongo.client, task, 2_000);
  });

  it('leash:admin sees what anyone runs, and kills it as an administrator', async () => {
    const alice = await begin('alice');
    const ids = await startAll(alice);
    const [waiting = '', detached = '', task = '', ended = ''] = ids;
    const root = await begin('root');
    const listed = JSON.stringify(await root.ask('operations'));
    for (const id of ids) expect(listed).toContain(id);
    expect(await root.ask('status', { id: ended })).toMatchObject({ outcome: 'succeeded' });
    const killed = { verdict: 'stopped', cause: 'administrator' };
    expect(await root.ask('kill', { id: waiting })).toMatchObject(killed);
    const byModern = await modern(server.url, tokens.root).request('tools/call', { name: 'kill', arguments: { id: detached } });
    expect(byModern.result.structuredContent).toMatchObject(killed);
    for (const id of [waiting, detached]) await untilGone(mongo.client, id, 2_000);
    expect(await isThere(task)).toBe(true);
    expect(await alice.ask('status', { requestId: 'mine' })).toMatchObject({ outcome: 'killed', ...killed });
    await alice.end();
    await untilGone(mongo.client, task, 2_000);
  });

  it('the id of another principal\'s session is of no use: it is not there', async () => {
    const alice = await begin('alice');
    const id = (await alice.ask('run', sleepFor(60_000, { waitMs: 0 }))).operationId as string;
    await eventually('it runs', () => isThere(id));
    const words = new Set<string>();
    for (const sessionId of [alice.id, '00000000-0000-4000-8000-000000000000']) {
      for (const name of ['carol', 'root'] as const) {
        const thief = joinSession(server.url, sessionId, { token: tokens[name] });
        const stream = thief.call(1, 'status', { id });
        expect((await stream.response).status).toBe(404);
        await stream.over;
        words.add(stream.text());
        expect((await thief.get().response).status).toBe(404);
        expect(await thief.end()).toBe(404);
        expect(await thief.cancel(1)).toBe(404);
      }
    }
    expect(words.size).toBe(1);
    expect((await joinSession(server.url, alice.id).get().response).status).toBe(401);
    expect(await isThere(id)).toBe(true);
    expect(await alice.ask('status', { id })).toMatchObject({ server: 'running' });
    await alice.end();
    await untilGone(mongo.client, id, 2_000);
  });

  it('leash:read runs, asks and cancels its own calls, and is refused what kills with 403', async () => {
    const bob = await begin('bob');
    const work = sleepFor(60_000);
    const stream = bob.call('call', 'run', work);
    const id = await seen(mongo.client, work.comment);
    const refusals = [
      bob.call(1, 'kill', { id }).response,
      bob.post({ jsonrpc: '2.0', id: 2, method: 'tasks/cancel', params: { taskId: id } }).response,
      bob.post([{ jsonrpc: '2.0', method: 'notifications/initialized' }, { jsonrpc: '2.0', id: 3, method: 'tools/call', params: { name: 'kill', arguments: { id } } }]).response,
    ];
    for (const { status, headers } of await Promise.all(refusals)) {
      expect(status).toBe(403);
      expect(headers['www-authenticate']).toMatch(/error="insufficient_scope".*scope="leash:kill"/);
    }
    const refused = await fetch(server.url, modernRequest(4, 'tools/call', { name: 'kill', arguments: { id } }, { token: tokens.bob }));
    expect(refused.status).toBe(403);
    expect(await isThere(id)).toBe(true);
    expect(await bob.ask('status', { id })).toMatchObject({ server: 'running' });
    expect(await bob.cancel('call')).toBe(202);
    await untilGone(mongo.client, id, 2_000);
    expect(await stream.over).toBe('ended');
  });

  it('no token is in a tag, a log line or an answer', async () => {
    const alice = await begin('alice');
    const work = sleepFor(60_000);
    const stream = alice.call(1, 'run', work);
    const id = await seen(mongo.client, work.comment);
    const rows = JSON.stringify(await mongo.client.db('admin').aggregate([{ $currentOp: { allUsers: true, idleConnections: true } }]).toArray());
    const answers = JSON.stringify([await alice.ask('status', { id }), await alice.ask('kill', { id })]) + stream.text();
    for (const token of Object.values(tokens)) for (const text of [rows, answers, server.stderr.join('\n')]) expect(text).not.toContain(token);
  });
});
