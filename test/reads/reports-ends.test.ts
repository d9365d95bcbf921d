/** How a call of a read tool ends is what the database says: cancelled, killed, alone or among its like, and at the end of the process (cases D01, D02, D03, D04, D07, D09, D28, D29, D31). */
import { setTimeout as delay } from 'node:timers/promises';
import type { Document } from 'mongodb';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { reportOf } from '../support/busy-server.js';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type Checked, sleeping, startChecked } from '../support/checked.js';
import { eventually, killTagged, running, tagged, taggedAs } from '../support/mongo.js';
import { openRaw } from '../support/raw-client.js';
import { filtering, joining, slowDocuments, slowInVain, startCall } from '../support/reads.js';
import { untilGone } from '../support/runaways.js';
import type { TestServer } from '../support/server.js';

let rig: Checked;
const on = { database: 'app', collection: 'slow' };
const [sleeps] = sleeping() as [{ $match: object }];
/** JavaScript that sleeps half a minute in one document, by every tool that can hold it. */
const asleep = [...filtering, joining('slow')].map((how) => [how.tool, how] as const);

beforeAll(async () => {
  rig = await startChecked({ args: ['--allow-js'] });
  await rig.mongo.client.db('app').collection<{ _id: number }>('slow').insertMany(slowDocuments);
});
afterEach(() => killTagged(rig.mongo.client));
afterAll(async () => {
  await rig.stop();
});

/** Also of answers that hold a link beside their text. */
const callRaw = (server: TestServer, tool: string, args: Record<string, unknown>) => server.client.callTool({ name: tool, arguments: args });

/** Starts a call that nobody waits for yet, and comes back with the id of its operation. */
async function start(server: TestServer, tool: string, args: object, comment: string): Promise<{ id: string; answer: Promise<any>; requestId: string | number }> {
  const answer = server.call(tool, { ...on, ...args, comment });
  answer.catch(() => undefined);
  const requestId = server.lastRequestId();
  const id = await eventually(`the database shows the ${tool} with the comment ${comment}`, async () => {
    const rows = await tagged(rig.mongo.client);
    const row = rows.find(({ command }) => typeof command?.comment === 'string' && command.comment.endsWith(` ${comment}`));
    return row === undefined ? null : String(row['command'].comment).split('.')[3];
  });
  return { id, answer, requestId };
}

describe.each(asleep)('%s of what the driver could only drop', (tool, how) => {
  it('is gone from the database within 3 s of its cancel, by a kill that was verified, and is never answered (D01) (D02) (D07)', async () => {
    const { server, mongo } = rig;
    const started = await startCall(server, mongo.client, tool, { ...on, ...how.args(sleeps.$match) }, `asleep in ${tool}`);
    started.cancel();
    expect(await untilGone(mongo.client, started.id, 3_000)).toBeLessThan(3_000);
    await started.cancelled;
    const told = await server.call('status', { requestId: started.requestId, waitMs: 10_000 });
    expect(told).toMatchObject({ operationId: started.id, wait: 'cancelled', outcome: 'killed', by: 'us', cause: 'client_cancelled', verdict: 'stopped' });
    expect(told.kill.sent).toContainEqual(expect.objectContaining({ method: 'killOp', target: String(started.row['opid']) }));
    await server.client.ping();
    expect(started.answered()).toBe(false);
  });
});

describe('a cancelled call', () => {
  it('has no message with its id, while what comes after it is answered (D02)', async () => {
    const process = await rig.another({ raw: true, args: ['--allow-js'] });
    const raw = await openRaw(process);
    raw.callTool(2, 'find', { ...on, filter: sleeps.$match, comment: 'the second' });
    const row = await eventually('the database shows it', async () => (await tagged(rig.mongo.client)).find(({ command }) => String(command?.comment).endsWith(' the second')));
    raw.cancel(2);
    raw.request(3, 'ping');
    raw.callTool(4, 'count', { ...on, query: { _id: 1 } });
    expect((await raw.answer(3)).result).toEqual({});
    expect((await raw.answer(4)).result.structuredContent).toMatchObject({ count: 1 });
    await untilGone(rig.mongo.client, String(row['command'].comment).split('.')[3] ?? '', 2_000);
    expect(await process.close()).toEqual({ code: 0, signal: null });
    expect(raw.answersTo(2)).toEqual([]);
    expect(raw.garbage).toEqual([]);
  });
});

describe('kill', () => {
  it('of a call that has ended, of none, and the same twice says so, and never that it killed (D03)', async () => {
    const { server } = rig;
    const { operationId } = await server.call('count', on);
    expect(await server.call('kill', { id: operationId })).toMatchObject({ verdict: 'ended_first', outcome: 'succeeded' });
    expect(await server.call('kill', { id: 'a'.repeat(26) })).toMatchObject({ verdict: 'not_found' });
    const { id, answer } = await start(server, 'distinct', { field: 'k', query: sleeps.$match }, 'killed twice');
    const first = await server.call('kill', { id });
    const second = await server.call('kill', { id });
    expect(first).toMatchObject({ verdict: 'stopped', outcome: 'killed' });
    expect(first.kill.after.at(-1)).toMatchObject({ saw: expect.stringMatching(/nothing|reply/) });
    expect(second.kill.sent).toEqual(first.kill.sent);
    expect(second).toMatchObject({ verdict: 'stopped' });
    expect(await answer).toMatchObject({ operationId: id, outcome: 'killed', cause: 'kill_tool', error: { code: 'killed' } });
  });

  it('stops one of three that are alike, and no other (D04)', async () => {
    const { server, mongo } = rig;
    const first = await start(server, 'find', { filter: sleeps.$match }, 'of three');
    const second = await start(server, 'find', { filter: sleeps.$match }, 'of them');
    const stranger = mongo.client.db('app').collection('slow').find(sleeps.$match, { limit: 11, comment: 'a stranger' }).toArray().catch((error: unknown) => error);
    const opidOf = async (comment: string) => (await eventually(`${comment} runs`, async () => (await running(mongo.client, comment))[0]))['opid'] as unknown;
    const before = [(await taggedAs(mongo.client, second.id))[0]?.['opid'], await opidOf('a stranger')];
    expect(await server.call('kill', { id: first.id })).toMatchObject({ verdict: 'stopped' });
    expect(await first.answer).toMatchObject({ operationId: first.id, outcome: 'killed' });
    expect(await taggedAs(mongo.client, first.id)).toEqual([]);
    await delay(3_000);
    expect([(await taggedAs(mongo.client, second.id))[0]?.['opid'], await opidOf('a stranger')]).toEqual(before);
    expect(await server.call('kill', { id: second.id })).toMatchObject({ verdict: 'stopped' });
    await mongo.client.db('admin').command({ killOp: 1, op: before[1] });
    await stranger;
  });
});

describe('a call that repeats one that runs', () => {
  it('is a second operation, and told the id of the first (D29)', async () => {
    const { server } = rig;
    const first = await start(server, 'count', { query: sleeps.$match, maxTimeMS: 60_000 }, 'twice');
    const second = await start(server, 'count', { query: sleeps.$match, maxTimeMS: 60_000 }, 'again');
    expect(second.id).not.toBe(first.id);
    expect(await server.call('kill', { id: second.id })).toMatchObject({ verdict: 'stopped' });
    expect((await second.answer).notes).toEqual([expect.stringContaining(first.id)]);
    expect(await server.call('status', { requestId: first.requestId })).toMatchObject({ operationId: first.id, server: 'running', wait: 'waiting' });
  });
});

describe('while a slow find runs', () => {
  it('every other tool answers within a second (D28)', async () => {
    const { server } = rig;
    const { id, answer } = await start(server, 'find', { filter: slowInVain }, 'in the way');
    const timed = async (what: string, ask: () => Promise<any>) => {
      const startedAt = performance.now();
      const result = await ask();
      return { what, result, ms: performance.now() - startedAt };
    };
    const few = { _id: { $lt: 3 } };
    const calls: [string, Record<string, unknown>][] = [
      ['find', { ...on, filter: few }], ['count', { ...on, query: few }], ['distinct', { ...on, field: 'k', query: few }], ['aggregate', { ...on, pipeline: [{ $match: few }] }],
      ['aggregate-db', { database: 'app', pipeline: [{ $documents: [{}] }] }], ['explain', { ...on, method: [{ name: 'find', arguments: {} }] }], ['export', { ...on, exportTarget: [{ name: 'find', arguments: { filter: few } }] }],
      ['list-databases', {}], ['list-collections', { database: 'app' }], ['collection-schema', on], ['collection-indexes', on], ['collection-storage-size', on], ['db-stats', { database: 'app' }], ['mongodb-logs', {}], ['list-connections', {}],
    ];
    const answers = [await timed('ping', () => server.client.ping()), await timed('tools/list', () => server.client.listTools()), await timed('status', () => server.call('status', { id }))];
    for (const [tool, args] of calls) answers.push(await timed(tool, () => callRaw(server, tool, args)));
    for (const { what, result, ms } of answers) {
      expect(result.isError, `${what}: ${JSON.stringify(result)}`).not.toBe(true);
      expect(ms, what).toBeLessThan(1_000);
    }
    expect(answers[2]?.result).toMatchObject({ server: 'running', outcome: null });
    const killed = await timed('kill', () => server.call('kill', { id }));
    expect(killed).toMatchObject({ result: { verdict: 'stopped' } });
    expect(killed.ms).toBeLessThan(1_000);
    expect(await answer).toMatchObject({ outcome: 'killed' });
  });
});

describe('the end of the client', () => {
  it('kills the calls of every tool that wait, proves it, and ends the process with 0 within 5 s (D09)', async () => {
    const server = await rig.another({ args: ['--allow-js'] });
    const started = [];
    for (const [tool, how] of asleep) started.push(await start(server, tool, how.args(sleeps.$match), `left in ${tool}`));
    const endedAt = performance.now();
    expect(await server.close()).toEqual({ code: 0, signal: null });
    expect(performance.now() - endedAt).toBeLessThan(5_000);
    expect(await tagged(rig.mongo.client)).toEqual([]);
    const report = reportOf(server);
    expect(report['allProven']).toBe(true);
    expect(report['operations'].map(({ operationId }: { operationId: string }) => operationId).sort()).toEqual(started.map(({ id }) => id).sort());
  });
});

describe('behind a drop that waits for a transaction', () => {
  it('every read tool answers but the one that locks the database, which says what it waits for and is killed at once (D31)', async () => {
    const { server, mongo } = rig;
    const db = mongo.client.db('locking');
    await setUpRunaway(mongo.client, 'locking', runawayCase('13'));
    const session = mongo.client.startSession();
    session.startTransaction();
    await db.collection<Document>('locked').insertOne({ held: 1 }, { session });
    const drop = db.command({ drop: 'locked', comment: 'the drop' }).catch(() => undefined);
    await eventually('the drop waits for the transaction', async () => (await running(mongo.client, 'the drop')).some((row) => row['waitingForLock'] === true));
    const locked = { database: 'locking', collection: 'locked' };
    const calls: [string, Record<string, unknown>][] = [
      ['find', locked], ['aggregate', { ...locked, pipeline: [] }], ['count', locked], ['distinct', { ...locked, field: '_id' }], ['explain', { ...locked, method: [{ name: 'find', arguments: {} }], verbosity: 'executionStats' }], ['export', { ...locked, exportTarget: [{ name: 'find', arguments: {} }] }],
      ['collection-schema', locked], ['collection-indexes', locked], ['collection-storage-size', locked], ['list-collections', { database: 'locking' }], ['list-databases', {}],
    ];
    for (const [tool, args] of calls) {
      const startedAt = performance.now();
      const answer = await callRaw(server, tool, args);
      expect(answer.isError, tool).not.toBe(true);
      expect(performance.now() - startedAt, tool).toBeLessThan(1_000);
    }
    const waiting = server.call('db-stats', { database: 'locking' });
    const requestId = server.lastRequestId();
    const status = await eventually('it waits for the lock', async () => {
      const told = await server.call('status', { requestId }).catch(() => null);
      return told?.server === 'waiting_for_lock' && told;
    });
    const startedAt = performance.now();
    expect(await server.call('kill', { id: status.operationId })).toMatchObject({ verdict: 'stopped', outcome: 'killed' });
    expect(performance.now() - startedAt).toBeLessThan(2_000);
    expect(await waiting).toMatchObject({ operationId: status.operationId, outcome: 'killed' });
    await session.abortTransaction();
    await session.endSession();
    await drop;
  });
});
