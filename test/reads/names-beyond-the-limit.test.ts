/** Many collections: more names than this server keeps are said to be more, and no idle cursor is left, which no look could find by its tag. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { startServer } from '../support/server.js';

/** More than a batch of documents holds. */
const collections = 1_010;
let mongo: TestMongo;

const idleCursors = () => mongo.client.db('admin').aggregate([{ $currentOp: { allUsers: true, idleCursors: true } }, { $match: { type: 'idleCursor', ns: { $regex: '^many\\.' } } }]).toArray();

beforeAll(async () => {
  mongo = await startMongo();
  await Promise.all(Array.from({ length: collections }, (_, i) => mongo.client.db('many').createCollection(`collection-${i}`)));
}, 120_000);
afterAll(() => mongo.stop());

it('their number is not told where it is not known, and the listing has ended', async () => {
  const server = await startServer({ uri: mongo.uri, args: ['--result-bytes', '10000'] });
  const answer = await server.call('list-collections', { database: 'many' });
  expect(answer).toMatchObject({ more: true, notes: [expect.stringContaining('--result-bytes')] });
  expect(answer).not.toHaveProperty('totalCount');
  expect(answer.collections.length).toBeLessThan(collections);
  expect(await server.call('status', { id: answer.operationId })).toMatchObject({ outcome: 'succeeded', server: 'ended' });
  expect(await server.close()).toEqual({ code: 0, signal: null });
});

it('a listing is cancelled or has ended, and leaves no cursor behind', async () => {
  const server = await startServer({ uri: mongo.uri });
  await server.call('list-databases');
  for (let afterMs = 0; afterMs < 60; afterMs += 3) {
    const abort = new AbortController();
    const call = server.call('list-collections', { database: 'many' }, abort.signal).catch(() => undefined);
    const requestId = server.lastRequestId();
    await delay(afterMs);
    abort.abort();
    await call;
    const { outcome, error } = await server.call('status', { requestId, waitMs: 5_000 });
    expect(outcome ?? error.code, `cancelled after ${afterMs} ms`).toMatch(/^(succeeded|killed|never_sent|not_found)$/);
    expect(await idleCursors()).toEqual([]);
  }
  expect(await server.close()).toEqual({ code: 0, signal: null });
});
