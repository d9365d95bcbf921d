/** Where the server listens, and several servers beside each other on one database and one state folder. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { ask, connectLegacy, connectModern, modernRequest, startHttpServer } from '../support/http-server.js';
import { beginSession, seen, sleepFor } from '../support/http-sessions.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { untilGone } from '../support/runaways.js';
import { programPath } from '../support/server.js';

const token = 'alice-0123456789abcdef';
let mongo: TestMongo;
let stateFolder: string;
beforeAll(async () => {
  mongo = await startMongo();
  stateFolder = mkdtempSync(join(tmpdir(), 'mongo-leash-shared-'));
  await mongo.client.db('app').collection('one').insertOne({});
});
afterAll(async () => {
  await mongo.stop();
  rmSync(stateFolder, { recursive: true, force: true });
});

it('two servers on one database and one state folder know each other\'s operations of a token, and kill them', async () => {
  const options = { uri: mongo.uri, stateFolder, args: ['--allow-js'], env: { MONGO_LEASH_TOKENS: `alice leash:kill ${token}` } };
  const [first, second] = await Promise.all([startHttpServer(options), startHttpServer(options)]);
  try {
    expect(first.url.port).not.toBe(second.url.port);
    expect(Number(first.url.port)).toBeGreaterThan(0);
    const here = await beginSession(first.url, { token });
    const there = await beginSession(second.url, { token });
    const work = sleepFor(60_000);
    const stream = here.call(1, 'run', work);
    const id = await seen(mongo.client, work.comment);
    expect(await there.ask('status', { id })).toMatchObject({ operationId: id, server: 'running' });
    expect((await there.ask('operations')).running).toMatchObject([{ operationId: id }]);
    expect(await there.ask('kill', { id })).toMatchObject({ verdict: 'stopped' });
    await untilGone(mongo.client, id, 2_000);
    expect((await stream.answer(1)).result.structuredContent).toMatchObject({ operationId: id, outcome: 'killed' });
    // The end of the one does not touch what the other runs, and what has ended there is known here.
    const ended = await here.ask('run', sleepFor(1));
    const left = (await there.ask('run', sleepFor(60_000, { waitMs: 0 }))).operationId as string;
    await eventually('it runs', async () => (await taggedAs(mongo.client, left)).length > 0);
    expect((await first.stop()).code).toBe(0);
    expect(await taggedAs(mongo.client, left)).toHaveLength(1);
    const known = await ask(second.url, modernRequest(1, 'tools/call', { name: 'status', arguments: { id: ended.operationId } }, { token }));
    expect(known.result.structuredContent).toMatchObject({ operationId: ended.operationId, outcome: 'succeeded' });
  } finally {
    await first.stop();
    expect((await second.stop()).code).toBe(0);
  }
});

it('clients of both eras talk to one server, on the free port that --port 0 found', async () => {
  const server = await startHttpServer({ uri: mongo.uri });
  try {
    expect(server.url.hostname).toBe('127.0.0.1');
    const [legacy, modern] = [await connectLegacy(server.url), await connectModern(server.url)];
    expect([legacy.version, modern.version]).toEqual(['2025-11-25', '2026-07-28']);
    for (const client of [legacy, modern]) expect(await client.call('run', { database: 'app', collection: 'one', pipeline: [] })).toMatchObject({ outcome: 'succeeded', returned: 1 });
    await Promise.all([legacy.close(), modern.close()]);
  } finally {
    expect((await server.stop()).code).toBe(0);
  }
});

it('a port that is in use stops the start: it is named, and the exit code is 2', async () => {
  const server = await startHttpServer({ uri: mongo.uri });
  try {
    const env = { ...process.env, MONGO_LEASH_URI: mongo.uri, MONGO_LEASH_STATE_FOLDER: stateFolder };
    const { status, stdout, stderr } = spawnSync(process.execPath, [programPath, 'serve', '--http', '--port', server.url.port], { env, encoding: 'utf8', timeout: 20_000 });
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toMatch(new RegExp(`--port ${server.url.port}: .*EADDRINUSE`));
    expect(stderr).not.toMatch(/ at .*\.js:\d+/);
    expect((await fetch(server.at('/healthz'))).status).toBe(200);
  } finally {
    expect((await server.stop()).code).toBe(0);
  }
});
