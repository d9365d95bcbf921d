/** The printed mongosh lines find and kill an operation with nothing of ours: no program, no client, no record. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Checked, sleeping, startChecked, startDetached } from '../support/checked.js';
import { inMongosh } from '../support/fake-mongosh.js';
import { eventually, running, tagged, taggedAs } from '../support/mongo.js';

let rig: Checked;
const run = { database: 'app', collection: 'one', pipeline: sleeping() };

beforeAll(async () => {
  rig = await startChecked({ args: ['--allow-js'] });
  await rig.mongo.client.db('app').collection<{ _id: number }>('one').insertOne({ _id: 0 });
  await rig.mongo.client.db('app').collection<{ _id: number }>('a.b').insertMany(Array.from({ length: 10 }, (_, _id) => ({ _id })));
});
afterAll(async () => {
  await rig.stop();
});

describe('the mongosh lines of a handle', () => {
  it('find the operation and nothing else, and kill it', async () => {
    const { server, mongo } = rig;
    const handle = await startDetached(rig, run);
    const other = await startDetached(rig, { ...run, startAnother: true });
    const found = await inMongosh(mongo.client, handle.mongosh.find);
    expect(found.map((row) => Number(row['opid']))).toEqual((await taggedAs(mongo.client, handle.operationId)).map((row) => row['opid']));
    expect(found).toHaveLength(1);
    await inMongosh(mongo.client, handle.mongosh.kill);
    await eventually('the database shows it no more', async () => (await taggedAs(mongo.client, handle.operationId)).length === 0, 2_000);
    expect(await taggedAs(mongo.client, other.operationId)).toHaveLength(1);
    expect(await inMongosh(mongo.client, handle.mongosh.find)).toEqual([]);
    // Our own answer tells the truth about who did it.
    expect(await server.call('status', { id: handle.operationId, waitMs: 5_000 })).toMatchObject({ outcome: 'killed', by: 'others' });
    await inMongosh(mongo.client, other.mongosh.kill);
    await eventually('nothing runs', async () => (await tagged(mongo.client)).length === 0, 2_000);
  });

  it('find and close an idle cursor with the tag, in a collection with a dot in its name', async () => {
    const { mongo } = rig;
    const handle = await startDetached(rig, run);
    const [row] = await taggedAs(mongo.client, handle.operationId);
    const tag = row?.['command'].comment as string;
    // The cursor of an operation between two batches, held by the witness.
    const cursor = mongo.client.db('app').collection('a.b').aggregate([], { batchSize: 2, comment: tag });
    await cursor.next();
    await eventually('the cursor is idle', async () => (await running(mongo.client, tag)).some((each) => each['type'] === 'idleCursor'));
    expect(await inMongosh(mongo.client, handle.mongosh.find)).toHaveLength(2);
    await inMongosh(mongo.client, handle.mongosh.kill);
    await eventually('the database shows neither', async () => (await running(mongo.client, tag)).length === 0, 2_000);
    await expect(cursor.toArray()).rejects.toMatchObject({ code: 43 });
  });

  it('stand in status too while it runs, and in no answer about what has ended', async () => {
    const { server } = rig;
    const handle = await startDetached(rig, run);
    expect((await server.call('status', { id: handle.operationId })).mongosh).toEqual(handle.mongosh);
    const killed = await server.call('kill', { id: handle.operationId });
    expect(killed).toMatchObject({ verdict: 'stopped' });
    expect(killed.mongosh).toBeUndefined();
    expect((await server.call('status', { id: handle.operationId })).mongosh).toBeUndefined();
  });
});

describe('the mongosh lines of a verdict that is not proven', () => {
  it('find and kill the operation that a frozen server kept', async () => {
    const { mongo } = rig;
    const [host = ''] = mongo.hosts;
    // It is ended by force before the database wakes up, so that the lines are what kills.
    const server = await rig.another({ args: ['--allow-js'] });
    const handle = await startDetached({ server, mongo }, run);
    mongo.freeze(host);
    const unproven = await server.call('kill', { id: handle.operationId, waitMs: 500 }).finally(() => {
      server.process.kill('SIGKILL');
    });
    await server.exited;
    mongo.thaw(host);
    expect(unproven).toMatchObject({ verdict: 'unknown', outcome: null });
    expect(unproven.mongosh).toEqual(handle.mongosh);
    expect(await inMongosh(mongo.client, unproven.mongosh.find)).toHaveLength(1);
    await inMongosh(mongo.client, unproven.mongosh.kill);
    await eventually('the database shows it no more', async () => (await taggedAs(mongo.client, handle.operationId)).length === 0, 2_000);
  });
});
