/** Waiting for a lock is not slowness, and what never ends is refused (cases D31, D30). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type Checked, startChecked } from '../support/checked.js';
import { eventually, taggedAs } from '../support/mongo.js';

let rig: Checked;
const behindDdl = runawayCase('13');
const changeStream = runawayCase('11');

beforeAll(async () => {
  rig = await startChecked({ args: ['--allow-writes', '--allow-internal', '--allow-js'] });
  await setUpRunaway(rig.mongo.client, 'app', behindDdl);
  await setUpRunaway(rig.mongo.client, 'app', changeStream);
});
afterAll(async () => {
  await rig.stop();
});

describe('an operation that waits for a lock', () => {
  it('is told as waiting for a lock, for how long, and is killed at once, while a plain read answers (D31)', async () => {
    const { server, mongo } = rig;
    const db = mongo.client.db('app');
    const session = mongo.client.startSession();
    session.startTransaction();
    await db.collection('locked').insertOne({ held: 1 }, { session });
    const drop = db.command({ drop: 'locked', comment: 'the drop' }).catch(() => undefined);
    const waiting = async (comment: object) => (await mongo.client.db('admin').aggregate([{ $currentOp: {} }, { $match: { 'command.comment': comment, waitingForLock: true } }]).toArray()).length > 0;
    await eventually('the drop waits for the transaction', () => waiting({ $eq: 'the drop' }));

    const handle = await server.call('run', { database: 'app', collection: behindDdl.op.coll, pipeline: behindDdl.op.pipeline, waitMs: 1_000 });
    expect(handle).toMatchObject({ wait: 'detached', outcome: null });
    await eventually('the merge waits for the lock', () => waiting({ $regex: handle.operationId }));
    const status = await eventually('it has waited for over a second', async () => {
      const answer = await server.call('status', { id: handle.operationId });
      return answer.evidence[0]?.secondsRunning > 1 && answer;
    });
    expect(status).toMatchObject({ server: 'waiting_for_lock', outcome: null, evidence: [{ saw: 'operation', waitingForLock: true, killPending: false }] });
    expect((await server.call('operations')).running).toContainEqual(expect.objectContaining({ operationId: handle.operationId, server: 'waiting_for_lock' }));

    const startedAt = performance.now();
    expect(await server.call('run', { database: 'app', collection: 'locked', pipeline: [{ $count: 'n' }] })).toMatchObject({ outcome: 'succeeded', documents: [{ n: 10 }] });
    expect(performance.now() - startedAt).toBeLessThan(1_000);

    const killed = await server.call('kill', { id: handle.operationId });
    expect(killed).toMatchObject({ verdict: 'stopped', outcome: 'killed', by: 'us' });
    expect(killed.kill.before[0]).toMatchObject({ waitingForLock: true });
    expect(killed.kill.elapsedMs).toBeLessThan(2_000);
    expect(killed.writes.effects).toContain('partial effects are possible');
    expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);
    await session.abortTransaction();
    await session.endSession();
    await drop;
  });
});

describe('a pipeline without an end', () => {
  it('is refused with the reason, whatever else the operator allows (D30)', async () => {
    const variants = [changeStream.op.pipeline, [{ $changeStream: { fullDocument: 'updateLookup' } }, { $match: {} }], [{ $changeStreamSplitLargeEvent: {} }]];
    for (const pipeline of variants) {
      const { isError, structuredContent: body } = await rig.server.callRaw('run', { database: 'app', collection: 'watched', pipeline });
      expect(isError).toBe(true);
      expect(body.error).toMatchObject({ code: 'refused_by_policy', databaseState: 'Nothing was sent to the database.' });
      expect(body.error.message).toContain('never ends');
      expect(body.next).toContain('no option');
    }
    const onDatabase = await rig.server.call('run', { database: 'app', pipeline: [{ $changeStream: {} }] });
    expect(onDatabase.error).toMatchObject({ code: 'refused_by_policy', path: 'pipeline[0].$changeStream' });
  });

  it('is not opened as a tailable cursor either: a capped collection is read to its end', async () => {
    const { server, mongo } = rig;
    await mongo.client.db('app').createCollection('capped', { capped: true, size: 100_000 });
    await mongo.client.db('app').collection('capped').insertMany([{}, {}, {}]);
    const answer = await server.call('run', { database: 'app', collection: 'capped', pipeline: [] });
    expect(answer).toMatchObject({ outcome: 'succeeded', returned: 3, more: false });
    expect(await taggedAs(mongo.client, answer.operationId)).toEqual([]);
    for (const argument of ['tailable', 'awaitData', 'noCursorTimeout']) {
      expect((await server.call('run', { database: 'app', collection: 'capped', pipeline: [], [argument]: true })).error).toMatchObject({ code: 'bad_argument', message: expect.stringContaining(argument) });
    }
  });
});
