/** `mongo-leash ps` shows what runs, as the database has it, and takes nothing for absent that it could not see. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Agent, type AgentOperation, createAgent } from '../support/agents.js';
import { sleeping, startDetached } from '../support/checked.js';
import { type Cli, createCli } from '../support/cli.js';
import { type TestMongo, startMongo, taggedAs } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let cli: Cli;
let agent: Agent;
let server: TestServer;
let handle: any;
let elsewhere: AgentOperation;

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('things').insertMany([{ a: 1 }]);
  cli = createCli(mongo.uri);
  agent = await createAgent(mongo.uri);
  server = await startServer({ uri: mongo.uri, args: ['--allow-js', '--sweep', 'off'], stateFolder: cli.stateFolder });
  handle = await startDetached({ server, mongo }, { database: 'app', collection: 'things', pipeline: sleeping(120_000), comment: 'monthly report' });
  elsewhere = await agent.start(mongo.client, { pipeline: sleeping(120_000), tag: { request: 's:abc', own: 'evil \u001b[2J\u009b31m\u202e name' }, options: { maxTimeMS: 90_000 } });
});

afterAll(async () => {
  await server?.close();
  await agent?.close();
  await mongo?.stop();
  cli?.end();
});

describe('ps', () => {
  test('shows each tagged operation with who runs it, where, for how long and in what state', async () => {
    const result = await cli.run(['ps', '--json']);
    expect(result.code).toBe(0);
    const rows = result.json();
    expect(rows.map(({ operationId }) => operationId).sort()).toEqual([handle.operationId, elsewhere.id].sort());
    const [own] = rows.filter(({ operationId }) => operationId === handle.operationId);
    const [row] = await taggedAs(mongo.client, handle.operationId);
    expect(own).toMatchObject({
      node: mongo.hosts[0],
      opid: row?.['opid'],
      client: row?.['client'],
      namespace: 'app.things',
      state: 'running',
      requestId: `n:${server.lastRequestId()}`,
      comment: 'monthly report',
      writes: false,
      liveness: 'alive',
      orphan: false,
    });
    // This machine has the record of its own server's operation: the principal in full, and the deadline.
    expect(own.principal).toMatch(/^.+@.+$/);
    expect(own.seconds).toBeGreaterThan(0);
    expect(own.timeLeftMs).toBeGreaterThan(100_000);
    const [other] = rows.filter(({ operationId }) => operationId === elsewhere.id);
    expect(other).toMatchObject({ principal: `#${elsewhere.tag.principal}`, instance: elsewhere.tag.instance, session: elsewhere.tag.session, requestId: 's:abc', liveness: 'unknown', orphan: false });
    expect(other.timeLeftMs).toBeGreaterThan(30_000);
    expect(other.timeLeftMs).toBeLessThan(90_000);
  });

  test('is a table where --json is not asked for, without colours where no terminal is', async () => {
    const { stdout, code } = await cli.run(['ps']);
    expect(code).toBe(0);
    const [head = '', ...lines] = stdout.trimEnd().split('\n');
    expect(head).toMatch(/^OPERATION +SECONDS +LEFT +STATE +NAMESPACE +PLAN +NODE +OPID +SESSION\/REQUEST +PRINCIPAL +INSTANCE +CLIENT +COMMENT$/);
    expect(lines).toHaveLength(2);
    expect(lines.find((line) => line.startsWith(handle.operationId))).toContain('monthly report');
    // Columns stand under each other.
    expect(lines.map((line) => line.indexOf('app.things'))).toEqual([head.indexOf('NAMESPACE'), head.indexOf('NAMESPACE')]);
    expect(stdout).not.toContain('\u001b');
  });

  test('a comment with control characters cannot rewrite a terminal, in the table and in JSON', async () => {
    const [table, json] = await Promise.all([cli.run(['ps']), cli.run(['ps', '--json'])]);
    for (const { stdout } of [table, json]) expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
    expect(table.stdout).toContain('evil');
  });

  test('the filters all must fit: age, namespace, client, instance', async () => {
    const ids = async (...args: string[]) => (await cli.run(['ps', '--json', ...args])).json().map(({ operationId }) => operationId).sort();
    const both = [handle.operationId, elsewhere.id].sort();
    const cases: [string[], string[]][] = [
      [['--instance', elsewhere.tag.instance], [elsewhere.id]],
      [['--client', 'an agent else'], [elsewhere.id]],
      [['--ns', 'app'], both],
      [['--ns', 'app.things', '--older-than', '1ms'], both],
      [['--ns', 'ap'], []],
      [['--older-than', '1h'], []],
      [['--orphans'], []],
      [['--ns', 'app', '--instance', 'none'], []],
    ];
    expect(await Promise.all(cases.map(([args]) => ids(...args)))).toEqual(cases.map(([, expected]) => expected));
  });

  test('--all shows what carries no tag as well, with its comment, and says which is internal', async () => {
    const untagged = await agent.startUntagged(mongo.client, 'a job of the night', { pipeline: sleeping(120_000) });
    const rows = (await cli.run(['ps', '--all', '--json'])).json();
    expect(rows.find(({ opid }) => opid === untagged.opid)).toMatchObject({ operationId: null, comment: 'a job of the night', appName: 'an agent elsewhere', writes: false, internal: false, liveness: null });
    expect(rows.filter(({ operationId }) => operationId !== null)).toHaveLength(2);
    expect(rows.some(({ internal }) => internal)).toBe(true);
    await mongo.client.db('admin').command({ killOp: 1, op: untagged.opid });
    expect(await untagged.ended).toBe(11601);
  });

  test('an idle cursor is shown with its age and without an opid', async () => {
    const cursor = agent.client.db('app').collection('things').aggregate([{ $project: { i: { $range: [0, 1_000] } } }, { $unwind: '$i' }], { comment: elsewhere.comment.replace(elsewhere.id, elsewhere.id.replaceAll(/[0-9]/g, 'a')), batchSize: 2 });
    await cursor.next();
    const rows = (await cli.run(['ps', '--json'])).json();
    expect(rows.find(({ state }) => state === 'idle_cursor')).toMatchObject({ opid: null, cursorId: String(cursor.id), namespace: 'app.things', seconds: expect.any(Number) as number });
    await cursor.close();
  });

  test('a database that is not there is an error with an exit code of its own, within ten seconds', async () => {
    const { code, stderr, stdout, tookMs } = await cli.run(['ps'], { uri: 'mongodb://127.0.0.1:1/' });
    expect({ code, stdout }).toEqual({ code: 7, stdout: '' });
    expect(stderr).toMatch(/could not be reached: .*127\.0\.0\.1:1/);
    expect(tookMs).toBeLessThan(12_000);
  });
});
