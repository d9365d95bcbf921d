/** `mongo-leash kill` kills what it was told to and nothing else, and its exit code says what is proven. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Agent, type AgentOperation, createAgent } from '../support/agents.js';
import { sleeping, startDetached } from '../support/checked.js';
import { type Cli, createCli } from '../support/cli.js';
import { type TestMongo, eventually, running, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let cli: Cli;
let agent: Agent;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('things').insertMany([{ a: 1 }]);
  await mongo.client.db('app').collection('many').insertMany(Array.from({ length: 3_000 }, (_, i) => ({ i })));
  cli = createCli(mongo.uri);
  agent = await createAgent(mongo.uri);
  server = await startServer({ uri: mongo.uri, args: ['--allow-js', '--allow-writes', '--sweep', 'off'], stateFolder: cli.stateFolder });
});

afterAll(async () => {
  await server?.close();
  await agent?.close();
  await mongo?.stop();
  cli?.end();
});

afterEach(async () => {
  for (const { opid } of await mongo.client.db('admin').aggregate([{ $currentOp: {} }, { $match: { 'command.pipeline.0.$match.$expr.$function': { $exists: true } } }]).toArray()) await mongo.client.db('admin').command({ killOp: 1, op: opid });
  await eventually('nothing is left under a tag', async () => (await tagged(mongo.client)).length === 0);
});

const startOn = (on: TestServer) => startDetached({ server: on, mongo }, { database: 'app', collection: 'things', pipeline: sleeping(120_000), startAnother: true });
const startOwn = () => startOn(server);
const isThere = async ({ comment }: Pick<AgentOperation, 'comment'>) => (await running(mongo.client, comment)).length > 0;

describe('kill', () => {
  test('stops an operation of a server by its id, shows the evidence, and the server knows', async () => {
    const handle = await startOwn();
    const { code, stdout } = await cli.run(['kill', handle.operationId, '--yes']);
    expect(code).toBe(0);
    expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);
    expect(stdout).toMatch(new RegExp(`^${handle.operationId}  stopped  after \\d`, 'm'));
    expect(stdout).toMatch(/killOp \d+ sent to 127\.0\.0\.1:\d+/);
    expect(stdout).toMatch(/does not show it any more/);
    const status = await server.call('status', { id: handle.operationId, waitMs: 5_000 });
    expect(status).toMatchObject({ outcome: 'killed' });
    // Its end is on record now: it is not killed a second time.
    const again = await cli.run(['kill', handle.operationId, '--yes', '--json']);
    expect(again.code).toBe(0);
    expect(again.json()[0]).toMatchObject({ target: handle.operationId, verdict: 'stopped' });
  });

  test('of two equal operations and one without a tag, only the one that is named is gone', async () => {
    const [one, two] = await Promise.all([agent.start(mongo.client), agent.start(mongo.client)]);
    const untagged = await agent.startUntagged(mongo.client, 'not an agent');
    const { code, json } = await cli.run(['kill', one.id, '--yes', '--json']);
    expect(code).toBe(0);
    expect(json()[0]).toMatchObject({ target: one.id, verdict: 'stopped', kill: { cause: 'command_line', sent: [{ method: 'killOp' }] } });
    expect(await one.ended).toBe(11601);
    expect(await isThere(two)).toBe(true);
    expect((await running(mongo.client, 'not an agent')).map(({ opid }) => opid)).toEqual([untagged.opid]);
  });

  test('a bare word that is not an operation id is an error, and nothing is killed', async () => {
    const operation = await agent.start(mongo.client, { tag: { request: 'n:7' } });
    const [row] = await running(mongo.client, operation.comment);
    for (const word of ['7', String(row?.['opid']), operation.tag.instance, operation.id.toUpperCase()]) {
      const { code, stderr } = await cli.run(['kill', word, '--yes']);
      expect(code).toBe(2);
      expect(stderr).toContain(`"${word}" is not an operation id`);
    }
    expect(await isThere(operation)).toBe(true);
  });

  test('--dry-run shows and kills nothing; without --yes a script kills nothing either', async () => {
    const operation = await agent.start(mongo.client);
    const dry = await cli.run(['kill', operation.id, '--dry-run']);
    expect(dry.code).toBe(0);
    expect(dry.stdout).toContain(operation.id);
    expect(dry.stderr).toContain('nothing was killed');
    const script = await cli.run(['kill', operation.id], { input: 'y\n' });
    expect(script.code).toBe(2);
    expect(script.stderr).toContain('--yes');
    const [row] = await running(mongo.client, operation.comment);
    expect(row).toMatchObject({ type: 'op' });
    expect(row).not.toHaveProperty('killPending', true);
    expect((await cli.run(['kill', '--dry-run', '0'.repeat(26)])).code).toBe(5);
  });

  test('without anything named nothing is killed', async () => {
    const operation = await agent.start(mongo.client);
    expect((await cli.run(['kill', '--yes'])).code).toBe(2);
    expect(await isThere(operation)).toBe(true);
  });

  test('--request means the request of one session, bare or with its type', async () => {
    const number = await agent.start(mongo.client, { tag: { request: 'n:42' } });
    const other = await agent.start(mongo.client, { tag: { request: 'n:42' } });
    const text = await agent.start(mongo.client, { tag: { request: 's:42', session: number.tag.session } });
    const exact = await cli.run(['kill', '--request', `${number.tag.session}/s:42`, '--yes', '--json']);
    expect([exact.code, exact.json().map(({ target }) => target)]).toEqual([0, [text.id]]);
    expect(await isThere(number)).toBe(true);
    const bare = await cli.run(['kill', '--request', `${number.tag.session}/42`, '--yes', '--json']);
    expect([bare.code, bare.json().map(({ target }) => target)]).toEqual([0, [number.id]]);
    expect(await isThere(other)).toBe(true);
    expect((await cli.run(['kill', '--request', '42', '--yes'])).code).toBe(2);
    expect((await cli.run(['kill', '--request', 'nobody/42', '--yes'])).code).toBe(5);
  });

  test('filters choose among tagged operations only, and all of them must fit', async () => {
    const [old, young] = [await agent.start(mongo.client, { tag: { instance: '0123456789' } }), await agent.start(mongo.client)];
    const untagged = await agent.startUntagged(mongo.client, 'a job of the night');
    expect((await cli.run(['kill', '--older-than', '1h', '--yes'])).code).toBe(5);
    const { code, json } = await cli.run(['kill', '--older-than', '1ms', '--instance', '0123456789', '--yes', '--json']);
    expect([code, json().map(({ target }) => target)]).toEqual([0, [old.id]]);
    expect(await isThere(young)).toBe(true);
    expect(await running(mongo.client, 'a job of the night')).toHaveLength(1);
    const rest = await cli.run(['kill', '--older-than', '1ms', '--yes', '--json']);
    expect([rest.code, rest.json().map(({ target }) => target)]).toEqual([0, [young.id]]);
    expect((await running(mongo.client, 'a job of the night')).map(({ opid }) => opid)).toEqual([untagged.opid]);
  });

  test('--orphans means the operations of servers of this machine that are dead, and no others', async () => {
    const alive = await startOwn();
    const elsewhere = await agent.start(mongo.client);
    const doomed = await startServer({ uri: mongo.uri, args: ['--allow-js', '--sweep', 'off'], stateFolder: cli.stateFolder });
    const left = await startOn(doomed);
    doomed.process.kill('SIGKILL');
    await doomed.exited;
    const shown = (await cli.run(['ps', '--orphans', '--json'])).json();
    expect(shown).toMatchObject([{ operationId: left.operationId, orphan: true, liveness: 'dead' }]);
    const { code, json } = await cli.run(['kill', '--orphans', '--yes', '--json']);
    expect([code, json().map(({ target, verdict }) => [target, verdict])]).toEqual([0, [[left.operationId, 'stopped']]]);
    expect(await taggedAs(mongo.client, alive.operationId)).toHaveLength(1);
    expect(await isThere(elsewhere)).toBe(true);
  });

  test('--opid kills what carries no tag, and only when it is named', async () => {
    const [one, two] = [await agent.startUntagged(mongo.client, 'one'), await agent.startUntagged(mongo.client, 'two')];
    const { code, json } = await cli.run(['kill', '--opid', `${mongo.hosts[0]}/${one.opid}`, '--yes', '--json']);
    expect([code, json()]).toMatchObject([0, [{ target: `${mongo.hosts[0]}/${one.opid}`, operationId: null, verdict: 'stopped' }]]);
    expect(await one.ended).toBe(11601);
    expect((await running(mongo.client, 'two')).map(({ opid }) => opid)).toEqual([two.opid]);
    expect((await cli.run(['kill', '--opid', `${mongo.hosts[0]}/${one.opid}`, '--yes'])).code).toBe(5);
  });

  test('--opid of a tagged operation means the whole operation', async () => {
    const operation = await agent.start(mongo.client);
    const [row] = await running(mongo.client, operation.comment);
    const { json } = await cli.run(['kill', '--opid', `${mongo.hosts[0]}/${row?.['opid']}`, '--yes', '--json']);
    expect(json()).toMatchObject([{ operationId: operation.id, verdict: 'stopped' }]);
  });

  test('threads of the server and looks of this program are refused, and no node is asked that is not in the deployment', async () => {
    const [thread] = await mongo.client.db('admin').aggregate([{ $currentOp: { allUsers: true } }, { $match: { active: true, client: { $exists: false } } }]).toArray();
    const refused = await cli.run(['kill', '--opid', `${mongo.hosts[0]}/${thread?.['opid']}`, '--yes', '--json']);
    // Such a thread may have gone on to its next operation meanwhile.
    expect([[4, 'refused'], [5, 'not_found']]).toContainEqual([refused.code, refused.json()[0].verdict]);
    const unknown = await cli.run(['kill', '--opid', 'example.invalid:27017/1', '--yes']);
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toContain('is no node of this deployment');
  });

  test('a write that is killed is gone, and how it ended is unknown: another exit code', async () => {
    const merge = [{ $match: { $expr: { $function: { body: 'function(){sleep(20);return true}', args: [], lang: 'js' } } } }, { $merge: { into: 'merged' } }];
    const operation = await agent.start(mongo.client, { pipeline: merge, collection: 'many', tag: { kind: 'w' } });
    const { code, json } = await cli.run(['kill', operation.id, '--yes', '--json']);
    expect(json()).toMatchObject([{ verdict: 'gone', writes: { effects: expect.stringContaining('partial') as string } }]);
    expect(code).toBe(6);
    expect(await operation.ended).toBe(11601);
  });

  test('what cannot be interrupted is still running when the time is over, and the mongosh lines are there', async () => {
    const nested = { $reduce: { input: { $range: [0, 7_000] }, initialValue: 0, in: { $add: ['$$value', { $reduce: { input: { $range: [0, 7_000] }, initialValue: 0, in: { $add: ['$$value', '$$this'] } } }] } } };
    const operation = await agent.start(mongo.client, { pipeline: [{ $project: { nested } }] });
    const { code, stdout } = await cli.run(['kill', operation.id, '--yes', '--wait', '200ms']);
    expect(stdout).toMatch(/still_running/);
    expect(code).toBe(3);
    expect(stdout).toMatch(/told to stop/);
    expect(stdout).toContain(`by hand, in mongosh`);
    await operation.ended;
  });

  test('an id that nothing runs under, and no record names, is not found', async () => {
    const { code, json } = await cli.run(['kill', '0'.repeat(26), '--yes', '--json']);
    expect(json()).toMatchObject([{ verdict: 'not_found' }]);
    expect(code).toBe(5);
  });
});
