/** What is on record of calls that ended, and of those that nobody can see: operations leaves nothing out (cases D03, D09). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { sleeping } from '../support/checked.js';
import { type TestMongo, eventually, startMongo, tagged } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
const folder = mkdtempSync(join(tmpdir(), 'mongo-leash-operations-'));
const servers: TestServer[] = [];

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('few').insertMany([{}, {}]);
});
afterAll(async () => {
  await Promise.all(servers.map((server) => server.close()));
  await mongo.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function serve(...args: string[]): Promise<TestServer> {
  const server = await startServer({ uri: mongo.uri, stateFolder: folder, args: ['--allow-js', ...args] });
  servers.push(server);
  return server;
}

it('a call that was answered is on record as answered, whatever came of it', async () => {
  const server = await serve();
  const on = { database: 'app', collection: 'few' };
  const calls: [string, object][] = [['find', on], ['find', { ...on, collection: 'none' }], ['find', { ...on, filter: { a: { $bad: 1 } } }], ['export', { ...on, exportTarget: [{ name: 'find', arguments: {} }] }], ['count', { ...on, query: { a: 1 } }]];
  for (const [tool, args] of calls) await server.call(tool, { ...args });
  const { ended } = await server.call('operations');
  expect(ended.map(({ outcome, wait }: { outcome: string; wait: string }) => [outcome, wait])).toEqual([['succeeded', 'answered'], ['succeeded', 'answered'], ['failed', 'answered'], ['succeeded', 'answered'], ['succeeded', 'answered']]);
  for (const { operationId } of ended) expect(await server.call('status', { id: operationId })).toMatchObject({ wait: 'answered' });
});

it('what has no known end and is not seen is listed apart, with the reason', async () => {
  const other = await serve('--max-operations', '1');
  const slow = { database: 'app', collection: 'few', filter: (sleeping()[0] as { $match: object }).$match };
  const running = other.call('find', slow).catch(() => undefined);
  await eventually('the first runs', async () => (await tagged(mongo.client)).length > 0);
  const queued = other.call('find', { ...slow, limit: 3 }).catch(() => undefined);
  const queuedRequest = other.lastRequestId();
  const { operationId } = await eventually('the second waits for its place', async () => {
    const told = await other.call('status', { requestId: queuedRequest });
    return told.server === 'not_sent' && told;
  });
  const server = await serve();
  const listed = await eventually('its record can be read here', async () => {
    const answer = await server.call('operations');
    return answer.unseen !== undefined && answer;
  });
  expect(listed.running).toHaveLength(1);
  expect(listed.unseen).toMatchObject([{ operationId, outcome: null, server: 'not_seen', reason: expect.stringMatching(/did not find it.*lives: it waits to be sent/) }]);
  expect(listed.next).toContain('1 without a known end was not seen');
  expect(await other.call('kill', { id: operationId })).toMatchObject({ verdict: 'never_sent' });
  expect(await other.call('kill', { id: listed.running[0].operationId })).toMatchObject({ verdict: 'stopped' });
  await Promise.all([running, queued]);
  expect(await eventually('nothing is left open', async () => {
    const answer = await server.call('operations');
    return answer.running.length === 0 && answer.unseen === undefined && answer;
  })).toMatchObject({ silent: [], next: 'Nothing: none was seen running.' });
});
