import { afterAll, beforeAll, expect, it } from 'vitest';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  server = await startServer({ uri: mongo.uri, args: ['--allow-js'] });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

it('a run that is handed over is found in the database by its id, and kill proves that it stopped', async () => {
  await mongo.client.db('app').collection('four').insertMany([{}, {}]);
  const pipeline = [{ $match: { $expr: { $function: { body: 'function(){sleep(20000);return true}', args: [], lang: 'js' } } } }];
  const handle = await server.call('run', { database: 'app', collection: 'four', pipeline, waitMs: 0 });
  await eventually('the database shows it', async () => (await taggedAs(mongo.client, handle.operationId)).length > 0);
  const killed = await server.call('kill', { id: handle.operationId });
  expect(killed.verdict).toBe('stopped');
  expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);
});
