import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { collectionNames, runArguments } from '../support/runaways.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  server = await startServer({ uri: mongo.uri });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

describe.each([
  { name: '11', what: 'a change stream, which has no end,', stage: '$changeStream', path: 'pipeline[0].$changeStream' },
  { name: '06', what: 'a $function, without --allow-js,', stage: '$function', path: 'pipeline[0].$project.x.$function' },
  { name: '16', what: 'an $out, without --allow-writes,', stage: '$out', path: 'pipeline[3].$out' },
  { name: '17', what: 'a $merge, without --allow-writes,', stage: '$merge', path: 'pipeline[3].$merge' },
])('$what', ({ name, stage, path }) => {
  it('is refused by name before anything is sent', async () => {
    const runaway = runawayCase(name);
    const database = `refused_${name}`;
    await setUpRunaway(mongo.client, database, runaway);
    const db = mongo.client.db(database);
    const before = await collectionNames(mongo.client, database);
    await db.command({ profile: 2 });
    const result = await server.callRaw('run', runArguments(runaway, database));
    await db.command({ profile: 0 });

    expect(result.isError).toBe(true);
    expect(result.structuredContent).toMatchObject({ error: { code: 'refused_by_policy', databaseState: 'Nothing was sent to the database.' } });
    expect(result.structuredContent.error.path ?? result.structuredContent.error.message).toContain(path);
    expect(result.structuredContent.error.message).toContain(stage);
    // The profiler has recorded every command on this database since, our own switch of it apart.
    const recorded = await db.collection('system.profile').find({ 'command.profile': { $exists: false } }).toArray();
    expect(recorded.map(({ command }) => command)).toEqual([]);
    expect((await collectionNames(mongo.client, database)).filter((each) => each !== 'system.profile')).toEqual(before);
  });
});
