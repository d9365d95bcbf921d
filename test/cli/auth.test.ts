/** What each kind of user sees and kills from a terminal; what is missing is named, and no secret leaves. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Db } from 'mongodb';
import { type Agent, createAgent } from '../support/agents.js';
import { sleeping, startDetached } from '../support/checked.js';
import { type Cli, createCli } from '../support/cli.js';
import { type TestMongo, eventually, running, startMongo } from '../support/mongo.js';
import { startServer } from '../support/server.js';
import { hasTmux, openTerminal } from '../support/tmux.js';

let mongo: TestMongo;
let cli: Cli;
/** Runs as `reader`, and another as `colleague`. */
let reader: Agent;
let colleague: Agent;
let uri: Record<'reader' | 'colleague' | 'monitor' | 'sessions', string>;

beforeAll(async () => {
  mongo = await startMongo({ auth: true });
  await mongo.client.db('app').collection('things').insertMany([{ a: 1 }]);
  const admin = mongo.client.db('admin');
  await admin.command({ createRole: 'sessionKiller', privileges: [{ resource: { cluster: true }, actions: ['inprog', 'killop', 'killAnySession'] }], roles: [] });
  const roles = { reader: [{ role: 'read', db: 'app' }], colleague: [{ role: 'read', db: 'app' }], monitor: ['clusterMonitor'], sessions: ['sessionKiller'] };
  for (const [user, granted] of Object.entries(roles)) await admin.command({ createUser: user, pwd: 's3cret!pw', roles: granted });
  const as = (user: string) => mongo.uriFor(user, 's3cret!pw');
  uri = { reader: as('reader'), colleague: as('colleague'), monitor: as('monitor'), sessions: as('sessions') };
  cli = createCli();
  reader = await createAgent(uri.reader);
  colleague = await createAgent(uri.colleague);
});

afterAll(async () => {
  await reader?.close();
  await colleague?.close();
  await mongo?.stop();
  cli?.end();
});

/** A cursor of an agent that idles between two batches. */
async function idleCursor(agent: Agent) {
  const operation = await agent.start(mongo.client);
  await mongo.client.db('admin').command({ killOp: 1, op: (await running(mongo.client, operation.comment))[0]?.['opid'] });
  const id = operation.id.replaceAll(/[0-9]/g, 'z');
  const comment = operation.comment.replace(operation.id, id);
  const cursor = agent.client.db('app').collection('things').aggregate([{ $project: { i: { $range: [0, 1_000] } } }, { $unwind: '$i' }], { comment, batchSize: 2 });
  await cursor.next();
  return { id, comment, cursor };
}

describe('a user with the role read', () => {
  test('sees its own operations, not those of others, and is told which privilege is missing', async () => {
    const [own, others] = await Promise.all([reader.start(mongo.client), colleague.start(mongo.client)]);
    const { code, stderr, json } = await cli.run(['ps', '--json'], { uri: uri.reader });
    expect(code).toBe(0);
    expect(json()).toMatchObject([{ operationId: own.id, users: ['reader@admin'] }]);
    expect(stderr).toMatch(/may see only its own operations: the privilege inprog is missing/);
    // Out of sight is not gone.
    const kill = await cli.run(['kill', others.id, '--yes', '--json'], { uri: uri.reader });
    expect([kill.code, kill.json()[0].verdict]).toEqual([6, 'unknown']);
    expect(kill.json()[0].reason).toContain('inprog');
    expect(await running(mongo.client, others.comment)).toHaveLength(1);
    const killed = await cli.run(['kill', own.id, '--yes', '--json'], { uri: uri.reader });
    expect([killed.code, killed.json()[0].verdict]).toEqual([0, 'stopped']);
    expect(await own.ended).toBe(11601);
    expect((await cli.run(['kill', others.id, '--yes'], { uri: uri.colleague })).code).toBe(0);
  });

  test('kills its own idle cursor', async () => {
    const { id, comment } = await idleCursor(reader);
    const { code, json } = await cli.run(['kill', id, '--yes', '--json'], { uri: uri.reader });
    expect([code, json()]).toMatchObject([0, [{ verdict: 'stopped', kill: { sent: [{ method: 'killCursors' }] } }]]);
    expect(await running(mongo.client, comment)).toEqual([]);
  });
});

describe('a user who sees all and may kill nothing', () => {
  test('is refused, told the privilege, and the operation runs on: an exit code of its own', async () => {
    const operation = await reader.start(mongo.client);
    const { code, json } = await cli.run(['kill', operation.id, '--yes', '--json', '--wait', '2s'], { uri: uri.monitor });
    expect(json()).toMatchObject([{ verdict: 'refused', reason: expect.stringContaining('killop') as string }]);
    expect(code).toBe(4);
    expect((await running(mongo.client, operation.comment))[0]).not.toHaveProperty('killPending');
    const table = await cli.run(['kill', operation.id, '--yes', '--wait', '1s'], { uri: uri.monitor });
    expect(table.stdout).toMatch(/the privilege killop is missing/);
    expect((await cli.run(['kill', operation.id, '--yes'], { uri: uri.reader })).code).toBe(0);
  });

  test('is told both privileges that would kill a cursor', async () => {
    const { id, comment, cursor } = await idleCursor(reader);
    const { code, json } = await cli.run(['kill', id, '--yes', '--json', '--wait', '2s'], { uri: uri.monitor });
    expect([code, json()[0].verdict]).toEqual([4, 'refused']);
    expect(json()[0].reason).toContain('killAnyCursor (or killAnySession)');
    expect(await running(mongo.client, comment)).toHaveLength(1);
    await cursor.close();
  });
});

describe('separate control credentials', () => {
  test('a reader with an administrator beside it sees and kills what another user runs', async () => {
    const operation = await colleague.start(mongo.client);
    const { id, comment } = await idleCursor(colleague);
    const env = { MONGO_LEASH_CONTROL_URI: uri.sessions };
    const shown = await cli.run(['ps', '--json'], { uri: uri.reader, env });
    expect(shown.json().map(({ operationId }) => operationId).sort()).toEqual([operation.id, id].sort());
    expect(shown.stderr).toBe('');
    const { code, json } = await cli.run(['kill', operation.id, id, '--yes', '--json'], { uri: uri.reader, env });
    expect([code, json()]).toMatchObject([0, [{ verdict: 'stopped' }, { verdict: 'stopped', kill: { sent: [{ method: 'killSessions' }] } }]]);
    expect(await operation.ended).toBe(11601);
    expect(await running(mongo.client, comment)).toEqual([]);
  });

  test('that are refused are an error that names them', async () => {
    const env = { MONGO_LEASH_CONTROL_URI: mongo.uriFor('monitor', 'wr0ng!pw') };
    for (const { code, stderr } of await Promise.all([cli.run(['ps'], { uri: uri.reader, env }), cli.run(['doctor'], { uri: uri.reader, env })])) {
      expect(code).toBe(7);
      expect(stderr).toMatch(/control credentials .*refused/);
      expect(stderr).not.toContain('wr0ng');
    }
  });

  test('serve a server too: its reader runs, and others are looked at with them', async () => {
    const server = await startServer({ uri: uri.reader, args: ['--sweep', 'off', '--allow-js'], env: { MONGO_LEASH_CONTROL_URI: uri.sessions } });
    const handle = await startDetached({ server, mongo }, { database: 'app', collection: 'things', pipeline: sleeping() });
    expect(await server.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped' });
    // Its looks came from the other user.
    const looks = await mongo.client.db('admin').aggregate([{ $currentOp: { allUsers: true, idleConnections: true } }, { $match: { appName: /^mongo-leash-control/ } }, { $unwind: '$effectiveUsers' }, { $group: { _id: '$effectiveUsers.user' } }]).toArray();
    expect(looks.map(({ _id }) => _id as string).sort()).toEqual(['reader', 'sessions']);
    await server.close();
  });
});

/** Runs lines that are meant for mongosh: each is one call on a database. */
async function runInMongosh(lines: readonly string[]): Promise<void> {
  const db = { getSiblingDB: (name: string) => on(mongo.client.db(name)) };
  const on = (database: Db) => ({
    createRole: ({ role, ...rest }: { role: string }) => database.command({ createRole: role, ...rest }),
    grantRolesToUser: (user: string, roles: unknown[]) => database.command({ grantRolesToUser: user, roles }),
  });
  // eslint-disable-next-line @typescript-eslint/no-implied-eval -- as mongosh would run what was printed
  for (const line of lines) await (new Function('db', `return ${line}`) as (db: unknown) => Promise<unknown>)(db);
}

describe('doctor', () => {
  test('tells a reader what is missing; the lines that it prints give just that', async () => {
    await mongo.client.db('admin').command({ createUser: `o'brien`, pwd: 's3cret!pw', roles: [{ role: 'read', db: 'app' }] });
    const brien = mongo.uriFor(`o'brien`, 's3cret!pw');
    const before = await cli.run(['doctor', '--json'], { uri: brien });
    expect(before.code).toBe(4);
    expect(before.json()).toMatchObject([
      {
        node: mongo.hosts[0],
        answered: true,
        version: expect.stringMatching(/^\d+\.\d+\.\d+$/) as string,
        role: 'primary',
        user: `o'brien@admin`,
        sees: { own: true, all: false },
        kills: { own: true, others: false, cursors: false, sessions: false },
        missing: ['inprog', 'killop', 'killAnyCursor', 'killAnySession', 'replSetGetConfig'],
        dataUserCanWrite: false,
        control: { ownWay: true },
        kill: { verdict: 'stopped' },
      },
    ]);
    const table = await cli.run(['doctor'], { uri: brien });
    expect(table.code).toBe(4);
    expect(table.stdout).toMatch(/hidden members is unknown: the privilege replSetGetConfig is missing/);
    await runInMongosh(table.stdout.split('\n').filter((line) => line.startsWith('  db.')));
    const after = await cli.run(['doctor'], { uri: brien });
    expect(after.stdout).toContain('Nothing is missing.');
    expect(after.code).toBe(0);
    const operation = await colleague.start(mongo.client);
    const cursor = await idleCursor(colleague);
    expect((await cli.run(['kill', operation.id, cursor.id, '--yes'], { uri: brien })).code).toBe(0);
    // It leaves nothing behind.
    expect(await running(mongo.client, operation.comment)).toEqual([]);
  });

  test('tells which privileges a monitoring user lacks, and that root may write', async () => {
    const monitor = await cli.run(['doctor', '--json'], { uri: uri.monitor });
    expect(monitor.code).toBe(4);
    expect(monitor.json()).toMatchObject([{ sees: { own: true, all: true }, missing: ['killop', 'killAnyCursor', 'killAnySession'], connections: { current: expect.any(Number) as number } }]);
    const root = await cli.run(['doctor'], { uri: mongo.uri });
    expect(root.code).toBe(0);
    expect(root.stdout).toMatch(/data user root@admin can write/);
  });

  test('counts the privileges of separate control credentials', async () => {
    const { json, code } = await cli.run(['doctor', '--json'], { uri: uri.reader, env: { MONGO_LEASH_CONTROL_URI: uri.sessions } });
    expect(code).toBe(4);
    expect(json()).toMatchObject([{ user: 'reader@admin', controlUser: 'sessions@admin', sees: { all: true }, kills: { others: true, sessions: true }, missing: ['killAnyCursor', 'replSetGetConfig'], dataUserCanWrite: false }]);
  });
});

describe('credentials', () => {
  test('that are wrong are told apart from a database that is not there, and never shown', async () => {
    const wrong = await cli.run(['ps'], { uri: mongo.uriFor('reader', 'wr0ng!pw') });
    expect(wrong.code).toBe(7);
    expect(wrong.stderr).toMatch(/refused the credentials/);
    const special = await cli.run(['ps', '--uri', 'mongodb://reader:p@ssw0rd@127.0.0.1:1/']);
    expect(special.code).toBe(2);
    expect(special.stderr).toMatch(/percent-encoded/);
    const option = await cli.run(['ps'], { uri: `${mongo.uriFor('reader', 'wr0ng!pw')}&noSuchOption=1` });
    expect(option.code).toBe(2);
    expect(option.stderr).toMatch(/nosuchoption/i);
    for (const { stdout, stderr } of [wrong, special, option]) expect(stdout + stderr).not.toMatch(/wr0ng|ssw0rd/);
  });

  test.skipIf(!hasTmux)('a password that is left out is asked for at a terminal without showing it', async () => {
    const operation = await reader.start(mongo.client);
    const terminal = openTerminal(['ps'], { env: cli.env(uri.reader.replace(':s3cret!pw@', '@')) });
    try {
      await eventually('the password is asked for', () => terminal.screen().some((line) => line.startsWith('Password of reader:')));
      terminal.press('s3cret!pw', 'Enter');
      await eventually('ps has ended', () => terminal.screen().includes('ended with 0'));
      expect(terminal.screen().join('\n')).toContain(operation.id);
      expect(terminal.screen().join('\n')).not.toContain('s3cret!pw');
      expect(terminal.settings()).toMatch(/ echo /);
    } finally {
      terminal.end();
    }
    const script = await cli.run(['ps'], { uri: uri.reader.replace(':s3cret!pw@', '@'), input: 's3cret!pw\n' });
    expect(script.code).toBe(2);
    expect(script.stderr).toMatch(/no terminal to ask/);
    await cli.run(['kill', operation.id, '--yes'], { uri: uri.reader });
  });
});
