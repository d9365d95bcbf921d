/** Who may do what, over the real program and its database: bearer tokens in both eras, scopes, other people's operations, and where a token must never be seen. */
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { challenge, initialize } from '../support/challenge.js';
import { type HttpTestServer, ask, connectLegacy, connectModern, modernRequest, startHttpServer } from '../support/http-server.js';
import { beginSession, joinSession, seen, sleepFor, toolCall } from '../support/http-sessions.js';
import { type TestMongo, eventually, killTagged, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { descendants, processes } from '../support/processes.js';
import { untilGone } from '../support/runaways.js';

const alice = 'tok-alice-0123456789abcdef';
const bob = 'tok-bob-0123456789abcdef';
const reader = 'tok-reader-0123456789abcdef';
const root = 'tok-root-0123456789abcdef';
const goneWithinMs = 5_000;

let mongo: TestMongo;
let folder: string;
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('one').insertOne({});
  folder = mkdtempSync(join(tmpdir(), 'mongo-leash-authorization-'));
});
afterAll(async () => {
  await mongo.stop();
  rmSync(folder, { recursive: true });
});

describe('bearer tokens', () => {
  let server: HttpTestServer;
  let stateFolder: string;
  beforeAll(async () => {
    const tokensFile = join(folder, 'tokens');
    writeFileSync(tokensFile, `# the team\nbob leash:kill ${bob}\nreader leash:read ${reader}\n`, { mode: 0o600 });
    stateFolder = join(folder, 'state');
    server = await startHttpServer({ uri: mongo.uri, stateFolder, args: ['--allow-js', '--log-level', 'debug', '--tokens-file', tokensFile], env: { MONGO_LEASH_TOKENS: `alice leash:kill ${alice};root leash:admin ${root}` } });
  });
  afterAll(async () => {
    await killTagged(mongo.client);
    await server.stop();
  });

  const connectors = [['2025', connectLegacy], ['2026', connectModern]] as const;
  /** Starts a sleep in the database as one who may read. */
  async function start(token: string, era: (typeof connectors)[number][0] = '2026') {
    const client = await (era === '2025' ? connectLegacy : connectModern)(server.url, token);
    const { operationId } = await client.call('run', sleepFor(30_000, { waitMs: 0 }));
    await eventually('the database shows it', async () => (await taggedAs(mongo.client, operationId)).length > 0);
    return { client, operationId: operationId as string, isThere: async () => (await taggedAs(mongo.client, operationId)).length > 0 };
  }

  it.each(connectors)('of the environment and of a file are known to clients of %s', async (_era, connect) => {
    for (const token of [alice, bob, reader]) {
      const client = await connect(server.url, token);
      expect(await client.call('run', { database: 'app', collection: 'one', pipeline: [] })).toMatchObject({ outcome: 'succeeded' });
      await client.close();
    }
  });

  it.each(connectors)('that are missing, wrong or in the address let no client of %s in', async (era, connect) => {
    await expect(connect(server.url)).rejects.toThrow(/A bearer token is needed|Unauthorized|401/);
    await expect(connect(server.url, `${alice}x`)).rejects.toThrow(/not known here|Unauthorized|401/);
    const init = (token?: string) => (era === '2025' ? initialize(token) : modernRequest(1, 'server/discover', {}, { token }));
    for (const [wanted, token] of [['A bearer token is needed', undefined], ['The token is not known here', `${alice}x`], ['The token is not known here', alice.toUpperCase()]] as const) {
      const refused = await challenge(server.url, init(token));
      expect(refused).toMatchObject({ status: 401, challenge: expect.stringMatching(new RegExp(`^Bearer error="invalid_token", error_description="${wanted}[^"]*", scope="leash:read leash:kill"$`)) });
    }
    expect(await challenge(new URL(`${server.url.href}?access_token=${alice}`), init(alice))).toMatchObject({ status: 400, text: expect.stringContaining('never into the address') });
  });

  it('of the scope leash:read do not kill, in 2025', async () => {
    const { client, operationId, isThere } = await start(reader, '2025');
    await expect(client.call('kill', { id: operationId })).rejects.toMatchObject({ code: 403 });
    await expect(client.request('tasks/cancel', { taskId: operationId })).rejects.toMatchObject({ code: 403 });
    const session = joinSession(server.url, client.sessionId() ?? '', { token: reader });
    for (const body of [toolCall(1, 'kill', { id: operationId }), { jsonrpc: '2.0', id: 1, method: 'tasks/cancel', params: { taskId: operationId } }]) {
      const { status, headers } = await session.post(body).response;
      expect({ status, challenge: headers['www-authenticate'] }).toEqual({ status: 403, challenge: 'Bearer error="insufficient_scope", error_description="This takes the scope leash:kill.", scope="leash:kill"' });
    }
    expect(await isThere()).toBe(true);
    expect(await client.call('status', { id: operationId })).toMatchObject({ operationId, outcome: null });
    await client.endSession();
    await untilGone(mongo.client, operationId, goneWithinMs);
  });

  it('of the scope leash:read do not kill inside a batch, wherever in it, and nothing of the batch is done', async () => {
    const { operationId, isThere } = await start(reader);
    const session = await beginSession(server.url, { version: '2025-03-26', token: reader });
    const work = sleepFor(30_000);
    const kill = toolCall('kill', 'kill', { id: operationId });
    for (const batch of [[kill, toolCall('work', 'run', work)], [toolCall('work', 'run', work), kill], [toolCall('work', 'run', work), { jsonrpc: '2.0', id: 'cancel', method: 'tasks/cancel', params: { taskId: operationId } }]]) {
      expect((await session.post(batch).response).status).toBe(403);
    }
    expect(await session.ask('operations')).toMatchObject({ running: [{ operationId }] });
    expect(await isThere()).toBe(true);
    expect((await tagged(mongo.client)).filter((row) => String(row['command']?.comment).endsWith(work.comment))).toEqual([]);
    await killTagged(mongo.client);
  });

  it('of the scope leash:read do not kill, in 2026, and those of leash:kill do', async () => {
    const { client, operationId, isThere } = await start(reader);
    await expect(client.call('kill', { id: operationId })).rejects.toThrow(/leash:kill|403/);
    for (const [method, params] of [['tools/call', { name: 'kill', arguments: { id: operationId } }], ['tasks/cancel', { taskId: operationId }]] as const) {
      expect(await challenge(server.url, modernRequest(1, method, params, { token: reader }))).toMatchObject({ status: 403, challenge: expect.stringContaining('error="insufficient_scope"') });
    }
    expect(await isThere()).toBe(true);
    const own = await start(bob);
    expect(await own.client.call('kill', { id: own.operationId })).toMatchObject({ verdict: 'stopped' });
    expect(await own.isThere()).toBe(false);
    await killTagged(mongo.client);
  });

  it.each(connectors)("hide everybody else's operations from clients of %s, but from administrators", async (era, connect) => {
    const { operationId, isThere } = await start(alice, era);
    const other = await connect(server.url, bob);
    expect(await other.call('operations')).toMatchObject({ running: [] });
    expect(await other.call('status', { id: operationId })).toMatchObject({ error: { code: 'not_found' } });
    expect(await other.call('kill', { id: operationId })).toMatchObject({ error: { code: 'not_found' } });
    // By hand: the 2.x client has no Tasks of its own.
    expect(await ask(server.url, modernRequest(1, 'tasks/cancel', { taskId: operationId }, { token: bob }))).toMatchObject({ error: { code: -32_602 } });
    expect(await isThere()).toBe(true);
    const admin = await connect(server.url, root);
    expect(await admin.call('operations')).toMatchObject({ running: [{ operationId }] });
    expect(await admin.call('kill', { id: operationId })).toMatchObject({ verdict: 'stopped' });
    expect(await isThere()).toBe(false);
    await Promise.all([other.close(), admin.close()]);
  });

  it('make a session of 2025 one that is not there for every other token, and for none', async () => {
    const session = await beginSession(server.url, { token: alice });
    const work = sleepFor(30_000);
    session.call('work', 'run', work);
    const operationId = await seen(mongo.client, work.comment);
    for (const token of [bob, root]) {
      const stranger = joinSession(server.url, session.id, { token });
      const refused = stranger.call('look', 'status', { id: operationId });
      expect((await refused.response).status).toBe(404);
      await refused.over;
      expect(JSON.parse(refused.text())).toMatchObject({ error: { message: 'There is no such session (any more): begin again with initialize.' } });
      expect((await stranger.get().response).status).toBe(404);
      expect(await stranger.cancel('work')).toBe(404);
      expect(await stranger.end()).toBe(404);
    }
    expect(await joinSession(server.url, session.id).end()).toBe(401);
    expect(await taggedAs(mongo.client, operationId)).not.toEqual([]);
    expect(await session.ask('status', { id: operationId })).toMatchObject({ outcome: null });
    expect(await session.end()).toBe(200);
    await untilGone(mongo.client, operationId, goneWithinMs);
  });

  it('are not seen in the database, in answers, in the log, among the processes and in what is kept', async () => {
    await mongo.client.db('app').command({ profile: 2 });
    const seenTexts: string[] = [];
    for (const token of [alice, bob]) {
      const { client, operationId } = await start(token);
      const rows = await mongo.client.db('admin').aggregate([{ $currentOp: { allUsers: true, idleConnections: true, idleSessions: true, idleCursors: true } }]).toArray();
      seenTexts.push(JSON.stringify(rows), JSON.stringify([await client.call('status', { id: operationId }), await client.call('operations')]));
      await client.call('kill', { id: operationId });
      const answer = await fetch(server.url, modernRequest(1, 'tools/call', { name: 'run', arguments: { database: 'app', collection: 'one', pipeline: [] } }, { token }));
      seenTexts.push(JSON.stringify([...answer.headers]), await answer.text());
      await challenge(new URL(`${server.url.href}?access_token=${token}`), initialize(token)).then(({ challenge: header, text }) => seenTexts.push(String(header), text));
      for (const wrong of [`${token}, ${token}`, `Basic ${token}`]) seenTexts.push((await challenge(server.url, { method: 'POST', headers: { Authorization: wrong } })).text);
    }
    await mongo.client.db('app').command({ profile: 0 });
    const profiled = JSON.stringify(await mongo.client.db('app').collection('system.profile').find().toArray());
    const log = server.stderr.join('\n');
    const pid = server.process.pid ?? 0;
    const commands = [...processes().filter((row) => row.pid === pid), ...descendants(pid)].map(({ command }) => command.join(' ')).join('\n');
    const kept = readdirSync(stateFolder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile()).map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1')).join('\n');
    // Each place holds what was done, so it would hold a token too.
    expect(profiled).toMatch(/"comment":"mongo-leash\.1\./);
    expect(seenTexts.join('\n')).toMatch(/mongo-leash\.1\./);
    expect(log).toContain('a request was not authenticated');
    expect(commands).toContain('serve --http');
    expect(kept).toContain('token:alice');
    for (const [place, text] of Object.entries({ profiled, log, commands, kept, answers: seenTexts.join('\n') })) {
      for (const token of [alice, bob]) expect(text.includes(token), place).toBe(false);
      expect(text.includes(Buffer.from(alice).toString('base64').slice(0, 20)), place).toBe(false);
    }
  });
});
