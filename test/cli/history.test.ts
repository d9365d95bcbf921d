/** `mongo-leash history` shows how operations ended, from the records of this machine, also when their server is gone. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sleeping, startDetached } from '../support/checked.js';
import { type Cli, createCli } from '../support/cli.js';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { startServer } from '../support/server.js';

let mongo: TestMongo;
let cli: Cli;
let killed: any;
let counted: any;

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('things').insertMany([{ a: 1 }]);
  cli = createCli(mongo.uri);
  const server = await startServer({ uri: mongo.uri, args: ['--allow-js', '--sweep', 'off'], stateFolder: cli.stateFolder });
  const things = { database: 'app', collection: 'things' };
  counted = await server.call('run', { ...things, pipeline: [{ $count: 'n' }] });
  await server.call('run', { ...things, pipeline: [{ $project: { a: { $divide: ['$a', 0] } } }] });
  await server.call('run', { ...things, pipeline: [...['i', 'j', 'k'].flatMap((name) => [{ $project: { [name]: { $range: [0, 1_000] } } }, { $unwind: `$${name}` }]), { $count: 'n' }], maxTimeMS: 50 });
  killed = await startDetached({ server, mongo }, { ...things, pipeline: sleeping() });
  expect((await cli.run(['kill', killed.operationId, '--yes'])).code).toBe(0);
  await server.call('status', { id: killed.operationId, waitMs: 5_000 });
  await server.close();
});

afterAll(async () => {
  await mongo?.stop();
  cli?.end();
});

describe('history', () => {
  test('shows what ended, the latest first, with how, for whom and why, without asking a database', async () => {
    const { code, json } = await cli.run(['history', '--json'], { uri: '' });
    expect(code).toBe(0);
    expect(json().map(({ outcome }) => outcome)).toEqual(['killed', 'timed_out', 'failed', 'succeeded']);
    expect(json()[3]).toMatchObject({ operationId: counted.operationId, principal: expect.stringMatching(/.+@.+/) as string, collection: 'things', node: mongo.hosts[0] });
    const table = await cli.run(['history']);
    expect(table.stdout.split('\n')[0]).toMatch(/^ENDED +OPERATION +OUTCOME +TOOK +PRINCIPAL +CAUSE +BY +KILL +NODE +NAMESPACE +REASON$/);
    expect(table.stdout).toMatch(new RegExp(`${killed.operationId} +killed`));
    expect(table.stdout).toMatch(/failed .*divide by zero/);
  });

  test('keeps the report of a kill: what was sent and what was seen', async () => {
    const { code, json } = await cli.run(['history', '--outcome', 'killed', '--json']);
    expect(code).toBe(0);
    expect(json()).toHaveLength(1);
    expect(json()[0]).toMatchObject({ operationId: killed.operationId, outcome: 'killed', cause: 'command_line', kill: { verdict: 'stopped', sent: [{ method: 'killOp', node: mongo.hosts[0] }] } });
  });

  test('--since leaves out what is older', async () => {
    expect((await cli.run(['history', '--since', '1h', '--json'])).json()).toHaveLength(4);
    const none = await cli.run(['history', '--since', '1ms']);
    expect([none.code, none.stdout]).toEqual([0, '']);
    expect(none.stderr).toContain('nothing that ended is on record');
  });

  test('a folder that cannot be used is an error that names it, and a kill goes on without it', async () => {
    const broken = { MONGO_LEASH_STATE_FOLDER: '/dev/null/state' };
    const { code, stderr } = await cli.run(['history'], { env: broken });
    expect(code).toBe(1);
    expect(stderr).toContain('/dev/null/state');
    const kill = await cli.run(['kill', '0'.repeat(26), '--yes', '--json'], { env: broken });
    expect([kill.code, kill.json()[0].verdict]).toEqual([5, 'not_found']);
  });
});
