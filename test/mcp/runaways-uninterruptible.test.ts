import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Document } from 'mongodb';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type TestMongo, startMongo, taggedAs } from '../support/mongo.js';
import { runArguments, startDetached, untilGone } from '../support/runaways.js';
import { type TestServer, startServer } from '../support/server.js';

const database = 'runaway_14';
const runaway = runawayCase('14');
let mongo: TestMongo;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  await setUpRunaway(mongo.client, database, runaway);
  server = await startServer({ uri: mongo.uri });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

/** The case takes over a minute, in which nothing reaches it; a sixth of it shows the same course. */
function shortened(): Record<string, unknown> {
  const request = structuredClone(runArguments(runaway, database)) as { pipeline: Document[] };
  request.pipeline[0]!['$project'].x.$reduce.input.$range[1] = 150;
  return request;
}

describe('a nested $reduce in one document, which the server cannot interrupt', () => {
  it('is never called stopped while it lives: first kill pending and still running, in the end what its reply says', async () => {
    const { id, row } = await startDetached(server, mongo.client, shortened());
    const askedAt = performance.now();
    const gone = untilGone(mongo.client, id, 90_000);

    const first = await server.call('kill', { id, waitMs: 1_000 });
    expect(performance.now() - askedAt).toBeLessThan(5_000);
    expect(await taggedAs(mongo.client, id)).toMatchObject([{ opid: row['opid'], killPending: true }]);
    expect(first).toMatchObject({ verdict: 'still_running', server: 'kill_pending', outcome: null });
    expect(first.evidence.at(-1)).toMatchObject({ saw: 'operation', opid: String(row['opid']), killPending: true });
    expect(first.next).toContain('It still runs although a kill was sent');
    expect(first.next).toContain(id);
    expect(first.mongosh.find).toContain(id);

    // A second kill is answered at once as well, and sends nothing to what is dying already.
    const again = await server.call('kill', { id, waitMs: 0 });
    expect(again).toMatchObject({ verdict: 'still_running', server: 'kill_pending', outcome: null });
    expect(again.kill.sent).toEqual(first.kill.sent);
    expect(again.kill.sent).toHaveLength(1);
    expect(await server.call('status', { id })).toMatchObject({ server: 'kill_pending', outcome: null, verdict: 'pending' });
    expect((await server.call('operations')).running).toMatchObject([{ operationId: id, server: 'kill_pending' }]);
    // Other work is not held up by it.
    expect((await server.call('run', { database, collection: 'one', pipeline: [] })).documents).toEqual([{ _id: 0 }]);
    expect(await taggedAs(mongo.client, id)).toHaveLength(1);

    const told = await server.call('status', { id, waitMs: 90_000 });
    expect(await taggedAs(mongo.client, id)).toEqual([]);
    expect(told.server).toBe('ended');
    // The server looks for the kill only when the expression is done; with the one document complete by then, it may as well succeed.
    const reply = told.evidence.find(({ saw }: { saw: string }) => saw === 'reply').detail;
    if (reply === 'success') expect(told).toMatchObject({ verdict: 'ended_first', outcome: 'succeeded', documents: [{ _id: 0, x: 150 * 1_000 * 1_000 }] });
    else expect(told).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us', error: { serverCode: 11601 } });
    expect(told.kill.sent).toEqual(first.kill.sent);
    const late = await server.call('kill', { id });
    expect(late.verdict).toBe(told.verdict);
    expect(late.next).not.toContain('there was nothing to kill');
    console.log(`kill to gone: one-document $reduce, shortened: ${await gone} ms`);
  }, 120_000);
});
