/** The commands on a replica set of three: every member is asked, and one that does not answer is said not to. */

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Document, MongoClient } from 'mongodb';
import { type Agent, createAgent } from '../support/agents.js';
import { type Cli, createCli } from '../support/cli.js';
import { type TestMongo, eventually, running, startMongo } from '../support/mongo.js';

let mongo: TestMongo;
let cli: Cli;
let members: Map<string, MongoClient>;

const memberOf = (host: string) => members.get(host) ?? mongo.client;
const hello = async (host: string) => await memberOf(host).db('admin').command({ hello: 1 });
const primary = async () => await eventually('there is a primary', async () => {
  for (const host of mongo.hosts) if ((await hello(host).catch(() => null))?.['isWritablePrimary'] === true) return host;
  return null;
}, 40_000);
const directAgent = (host: string) => createAgent(`mongodb://${host}/?directConnection=true&readPreference=secondaryPreferred`);

/** What the members that answer say of themselves, once it is so. */
async function untilHealthy(): Promise<void> {
  await eventually('every member is primary or secondary', async () => {
    const all = await Promise.all(mongo.hosts.map((host) => hello(host).catch(() => null)));
    return all.every((each) => each?.['isWritablePrimary'] === true || each?.['secondary'] === true) && all.some((each) => each?.['isWritablePrimary'] === true);
  }, 60_000);
}

async function reconfigure(change: (config: Document) => void): Promise<void> {
  const on = memberOf(await primary()).db('admin');
  const { config } = await on.command({ replSetGetConfig: 1 });
  change(config);
  config.version += 1;
  await on.command({ replSetReconfig: config });
}

beforeAll(async () => {
  mongo = await startMongo({ members: 3 });
  members = new Map(await Promise.all(mongo.hosts.map(async (host) => [host, await mongo.direct(host)] as const)));
  await mongo.client.db('app').collection('things').insertOne({ a: 1 }, { writeConcern: { w: 3 } });
  cli = createCli(mongo.uri);
});

afterAll(async () => {
  for (const host of mongo?.hosts ?? []) mongo.thaw(host);
  await mongo?.stop();
  cli?.end();
});

describe('on a replica set', () => {
  test('a read on a secondary is found there and killed there', async () => {
    const first = await primary();
    const secondary = mongo.hosts.find((host) => host !== first) ?? '';
    const agent: Agent = await directAgent(secondary);
    const operation = await agent.start(memberOf(secondary));
    const shown = await cli.run(['ps', '--json']);
    expect(shown.json()).toMatchObject([{ operationId: operation.id, node: secondary }]);
    const { code, json } = await cli.run(['kill', operation.id, '--yes', '--json']);
    expect([code, json()]).toMatchObject([0, [{ verdict: 'stopped', kill: { sent: [{ node: secondary }] } }]]);
    expect(await operation.ended).toBe(11601);
    await agent.close();
  });

  test('replication is not to be killed, whatever is said', async () => {
    const on = await primary();
    const fetchers = async () => await memberOf(on).db('admin').aggregate([{ $currentOp: { allUsers: true, idleCursors: true } }, { $match: { ns: 'local.oplog.rs', 'cursor.cursorId': { $exists: true } } }]).toArray();
    // A secondary that has just found its source anew has no cursor for a moment.
    const before = (await eventually('both secondaries read the log', async () => {
      const found = await fetchers();
      return found.length === 2 ? found : null;
    }, 30_000)).map(({ cursor }) => String(cursor.cursorId)).sort();
    // Each getMore has an opid of its own, which lives for some seconds: one of several tries meets it.
    const refused = await eventually('the fetcher is met', async () => {
      const opid = (await fetchers()).find((row) => row['opid'] !== undefined)?.['opid'] as number | undefined;
      const result = await cli.run(['kill', '--opid', `${on}/${opid}`, '--yes', '--json']);
      return result.code === 5 ? null : result;
    }, 30_000);
    expect([refused.code, refused.json()[0]]).toMatchObject([4, { verdict: 'refused', reason: expect.stringContaining('replication') as string, kill: null }]);
    expect((await fetchers()).map(({ cursor }) => String(cursor.cursorId)).sort()).toEqual(before);
    const dry = await cli.run(['ps', '--all', '--json']);
    expect(dry.json().filter(({ namespace }) => namespace === 'local.oplog.rs').every(({ internal }) => internal)).toBe(true);
  });

  test('doctor checks each member, with a kill on each', async () => {
    const { code, json } = await cli.run(['doctor', '--json']);
    expect(code).toBe(0);
    expect(json().map(({ node }) => node).sort()).toEqual([...mongo.hosts].sort());
    expect(json().map(({ role }) => role).sort()).toEqual(['primary', 'secondary', 'secondary']);
    for (const each of json()) {
      expect(each).toMatchObject({ kill: { verdict: 'stopped' }, control: { ownWay: true } });
      expect(Math.abs(each.clockDifferenceMs)).toBeLessThan(1_000);
    }
    expect((await cli.run(['ps', '--json'])).json()).toEqual([]);
  });

  test('a read that a stepdown leaves on the old primary is found and killed there', async () => {
    const old = await primary();
    const agent = await directAgent(old);
    const operation = await agent.start(memberOf(old));
    await memberOf(old).db('admin').command({ replSetStepDown: 20, force: true });
    await eventually('another member is primary', async () => (await primary()) !== old, 40_000);
    expect(await running(memberOf(old), operation.comment)).toHaveLength(1);
    const { code, json } = await cli.run(['kill', operation.id, '--yes', '--json']);
    expect([code, json()]).toMatchObject([0, [{ verdict: 'stopped', kill: { sent: [{ node: old }] } }]]);
    expect(await operation.ended).toBe(11601);
    await agent.close();
  });

  test('a frozen member holds nothing up: the others are shown, and of it is said that nothing is known', async () => {
    const on = await primary();
    const frozen = mongo.hosts.find((host) => host !== on) ?? '';
    const agent = await directAgent(on);
    const operation = await agent.start(memberOf(on));
    mongo.freeze(frozen);
    try {
      const shown = await cli.run(['ps', '--json']);
      expect(shown.json()).toMatchObject([{ operationId: operation.id, node: on }]);
      expect(shown.stderr).toContain(`${frozen} did not answer`);
      expect(shown.code).toBe(6);
      expect(shown.tookMs).toBeLessThan(15_000);
      // What was named is proven to be stopped, whatever the frozen one does.
      const { code, json } = await cli.run(['kill', operation.id, '--yes', '--json']);
      expect([code, json()[0].verdict]).toEqual([0, 'stopped']);
      const checked = await cli.run(['doctor', '--json']);
      expect(checked.code).toBe(6);
      expect(checked.json().find(({ node }) => node === frozen)).toMatchObject({ answered: false });
      expect(checked.json().filter(({ answered }) => answered)).toHaveLength(2);
    } finally {
      mongo.thaw(frozen);
    }
    await agent.close();
    await untilHealthy();
  });

  test('a member that is down is said to be, and holds nothing up', async () => {
    const on = await primary();
    const down = mongo.hosts.find((host) => host !== on) ?? '';
    process.kill(mongo.pid(down), 'SIGKILL');
    try {
      await eventually('it is down', async () => (await hello(down).catch(() => null)) === null);
      const shown = await cli.run(['ps']);
      expect(shown.code).toBe(6);
      expect(shown.stderr).toMatch(new RegExp(`${down} did not answer \\(.*\\): what runs there is unknown`));
      expect(shown.tookMs).toBeLessThan(10_000);
    } finally {
      await mongo.restart(down);
    }
    await untilHealthy();
  });

  test('a frozen primary does not keep the others from being shown', async () => {
    const frozen = await primary();
    const other = mongo.hosts.find((host) => host !== frozen) ?? '';
    const agent = await directAgent(other);
    const operation = await agent.start(memberOf(other));
    mongo.freeze(frozen);
    try {
      const shown = await cli.run(['ps', '--json']);
      expect(shown.json()).toMatchObject([{ operationId: operation.id, node: other }]);
      expect(shown.stderr).toContain(`${frozen} did not answer`);
      expect(shown.code).toBe(6);
      expect(shown.tookMs).toBeLessThan(20_000);
      const gone = await cli.run(['kill', '0'.repeat(26), '--yes', '--json']);
      expect([gone.code, gone.json()[0].verdict]).toEqual([6, 'unknown']);
    } finally {
      mongo.thaw(frozen);
    }
    expect((await cli.run(['kill', operation.id, '--yes'], { uri: `mongodb://${other}/?directConnection=true` })).code).toBe(0);
    await agent.close();
    await untilHealthy();
  });

  test('a hidden member is found in the configuration, and with directConnection one member alone is meant', async () => {
    const on = await primary();
    const hidden = mongo.hosts.find((host) => host !== on) ?? '';
    await reconfigure((config) => {
      for (const member of config['members']) if (member.host === hidden) Object.assign(member, { hidden: true, priority: 0 });
    });
    const agent = await directAgent(hidden);
    const operation = await agent.start(memberOf(hidden));
    expect((await hello(on))['hosts']).not.toContain(hidden);
    expect((await cli.run(['ps', '--json'])).json()).toMatchObject([{ operationId: operation.id, node: hidden }]);
    const alone = await cli.run(['ps', '--json'], { uri: `mongodb://${on}/?directConnection=true` });
    expect([alone.code, alone.json()]).toEqual([0, []]);
    const table = await cli.run(['doctor']);
    expect(table.stdout).toContain(`Hidden members, found in the configuration of the replica set: ${hidden}`);
    expect(table.stdout).toContain('hidden secondary of testset');
    expect((await cli.run(['kill', operation.id, '--yes'])).code).toBe(0);
    expect(await operation.ended).toBe(11601);
    await agent.close();
  });

  test('members whose names cannot be resolved from here are named within ten seconds, with the way out', async () => {
    // The set goes on with names that it can resolve itself; the program is started so that it cannot.
    await reconfigure((config) => {
      for (const member of config['members']) member.host = member.host.replace('127.0.0.1', 'localhost');
    });
    const unresolvable = `import dns from 'node:dns';
      const lookup = dns.lookup;
      dns.lookup = (host, ...rest) => host === 'localhost' ? rest.at(-1)(Object.assign(new Error('getaddrinfo ENOTFOUND localhost'), { code: 'ENOTFOUND' })) : lookup(host, ...rest);`;
    const node = ['--import', `data:text/javascript,${encodeURIComponent(unresolvable)}`];
    const on = await primary();
    const { code, stderr, tookMs } = await cli.run(['ps'], { node });
    expect(code).toBe(7);
    expect(stderr).toMatch(/localhost:\d+.*directConnection=true/s);
    expect(tookMs).toBeLessThan(12_000);
    expect((await cli.run(['ps'], { node, uri: `mongodb://${on}/?directConnection=true` })).code).toBe(0);
  });
});
