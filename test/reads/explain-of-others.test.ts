/** An explain that nobody tagged is known for what it is: it reads, also where what it explains would write. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Engine, startEngine } from '../support/engine.js';
import { type TestMongo, eventually, startMongo } from '../support/mongo.js';
import { slowDocuments, slowExpression, slowInVain } from '../support/reads.js';

let mongo: TestMongo;
let engine: Engine;

beforeAll(async () => {
  mongo = await startMongo();
  engine = await startEngine(mongo.uri);
  await engine.deployment.ready();
  await mongo.client.db('app').collection<{ _id: number }>('slow').insertMany(slowDocuments);
});
afterAll(async () => {
  await engine.close();
  await mongo.stop();
});

it.each([
  ['find', { find: 'slow', filter: slowInVain }],
  ['an aggregation', { aggregate: 'slow', pipeline: [{ $match: slowExpression }, { $group: { _id: '$k' } }], cursor: {} }],
  ['an aggregation that writes', { aggregate: 'slow', pipeline: [{ $match: slowExpression }, { $group: { _id: '$k' } }, { $out: 'copy' }], cursor: {} }],
  ['an update', { update: 'slow', updates: [{ q: slowInVain, u: { $set: { x: 1 } }, multi: true }] }],
])('an explain of %s is surveyed as a read', async (what, command) => {
  const comment = `stranger ${what}`;
  const explain = mongo.client.db('app').command({ explain: command, verbosity: 'executionStats', comment }).catch((error: unknown) => error);
  const row = await eventually('a survey shows it', async () => {
    const survey = await engine.deployment.survey(mongo.hosts[0] ?? '');
    return survey.ok && survey.rows.find((each) => each.comment === comment);
  });
  expect(row).toMatchObject({ reads: true, internal: false });
  await mongo.client.db('admin').command({ killOp: 1, op: row.sighting.opid });
  await explain;
  expect(await mongo.client.db('app').collection('slow').countDocuments({ x: 1 })).toBe(0);
  expect(await mongo.client.db('app').listCollections({ name: 'copy' }).toArray()).toEqual([]);
});
