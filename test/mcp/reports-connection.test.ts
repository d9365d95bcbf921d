/** Connections that do not come about say why, in bounded time, and a query is sent once (cases D08, D12). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Checked, sleeping, startChecked, startDetached } from '../support/checked.js';
import { taggedAs } from '../support/mongo.js';
import { type RenamingTunnel, startRenamingTunnel } from '../support/renaming-tunnel.js';
import type { TestServer } from '../support/server.js';
import { type TcpProxy, closeInsteadOfReply, startProxy } from '../support/tcp-proxy.js';

let rig: Checked;
let tunnel: RenamingTunnel;
let proxy: TcpProxy;

beforeAll(async () => {
  rig = await startChecked({ args: ['--allow-js'] });
  tunnel = await startRenamingTunnel(rig.mongo.hosts[0] ?? '');
  proxy = await startProxy(rig.mongo.hosts[0] ?? '');
  const db = rig.mongo.client.db('app');
  await db.collection('one').insertOne({});
  await db.collection<{ _id: number; pad: string }>('megabytes').insertMany(Array.from({ length: 20 }, (_, _id) => ({ _id, pad: 'x'.repeat(1_000_000) })));
});
afterAll(async () => {
  await rig.stop();
  await tunnel.close();
  await proxy.close();
});

describe('a replica set behind a tunnel, whose member names do not resolve here,', () => {
  it('is said to be so within 10 s, with the name and what to do, whether its set is named or not (D12)', async () => {
    const servers = await Promise.all(['', '?replicaSet=testset'].map((options) => rig.another({ uri: `mongodb://${tunnel.host}/${options}` })));
    const timed = async (server: TestServer, tool: string, args: object) => {
      const startedAt = performance.now();
      const answer = await server.callRaw(tool, { ...args });
      return { tool, answer, ms: performance.now() - startedAt };
    };
    const calls: [string, object][] = [['run', { database: 'app', collection: 'one', pipeline: [] }], ['operations', {}], ['status', { id: '0'.repeat(26) }], ['kill', { id: '0'.repeat(26) }]];
    const asked = await Promise.all(servers.flatMap((server) => calls.map(([tool, args]) => timed(server, tool, args))));
    for (const { tool, answer, ms } of asked) {
      expect(ms).toBeLessThan(10_000);
      expect(answer.isError).toBe(true);
      expect(answer.structuredContent.error).toMatchObject({ code: 'unreachable', message: expect.stringContaining(tunnel.memberName) });
      expect(answer.structuredContent.next).toContain('directConnection=true');
      if (tool === 'kill') expect(answer.structuredContent.verdict).toBe('unknown');
    }
  });

  it('is used through its one node with directConnection=true: run, status, kill and operations (D12)', async () => {
    const { mongo } = rig;
    const server = await rig.another({ uri: `mongodb://${tunnel.host}/?directConnection=true`, args: ['--allow-js'] });
    expect(await server.call('run', { database: 'app', collection: 'one', pipeline: [{ $count: 'n' }] })).toMatchObject({ outcome: 'succeeded', documents: [{ n: 1 }], node: tunnel.host });
    const handle = await startDetached({ server, mongo }, { database: 'app', collection: 'one', pipeline: sleeping() });
    expect(await server.call('status', { id: handle.operationId })).toMatchObject({ server: 'running', node: tunnel.host });
    expect(await server.call('operations')).toMatchObject({ looked: [tunnel.host], silent: [], running: [{ operationId: handle.operationId }] });
    const killed = await server.call('kill', { id: handle.operationId });
    expect(killed).toMatchObject({ verdict: 'stopped', outcome: 'killed', node: tunnel.host });
    expect(killed.kill.sent).toEqual([expect.objectContaining({ node: tunnel.host })]);
    expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);
  });
});

describe('a result document over 16 MB', () => {
  let server: TestServer;
  let sends = 0;
  beforeAll(async () => {
    // Every aggregate on the collection that crosses the wire: the BSON of {aggregate: "megabytes"}.
    proxy.onClientBytes((_wire, text) => { sends += text.split('aggregate\0\u000a\0\0\0megabytes\0').length - 1; });
    server = await rig.another({ uri: proxy.uri });
  });

  it.each([
    ['$group', [{ $group: { _id: null, all: { $push: '$pad' } } }]],
    ['$facet', [{ $facet: { all: [{ $project: { pad: 1 } }] } }]],
  ])('by %s is sent once, named for what it is, and the next query works (D08)', async (_form, pipeline) => {
    sends = 0;
    const { isError, structuredContent: body } = await server.callRaw('run', { database: 'app', collection: 'megabytes', pipeline });
    expect(isError).toBe(true);
    expect(body).toMatchObject({ outcome: 'failed', server: 'ended', error: { code: 'operation_failed', serverCode: 10_334 } });
    expect(body.next).toMatch(/16 MB.*project fewer fields.*\$unwind/);
    expect(sends).toBe(1);
    expect(await server.call('run', { database: 'app', collection: 'megabytes', pipeline: [{ $count: 'n' }] })).toMatchObject({ documents: [{ n: 20 }] });
    expect(sends).toBe(2);
  });

  it('for which the server closes the connection, as some do, is sent once, and suspected by name (D08)', async () => {
    sends = 0;
    const close = closeInsteadOfReply(proxy, '$push');
    const { structuredContent: body } = await server.callRaw('run', { database: 'app', collection: 'megabytes', pipeline: [{ $group: { _id: null, all: { $push: '$pad' } } }], waitMs: 5_000 });
    expect(close.isDone()).toBe(true);
    expect(JSON.stringify(body)).toMatch(/16 MB.*project fewer fields.*\$unwind/);
    expect(body.outcome).not.toBe('succeeded');
    expect(await server.call('run', { database: 'app', collection: 'megabytes', pipeline: [{ $count: 'n' }] })).toMatchObject({ documents: [{ n: 20 }] });
    expect(sends).toBe(2);
  });
});
