/** The page for a DBA is true: its mongosh lines find and kill, and its commands are ones that the program takes. */

import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Agent, createAgent } from '../support/agents.js';
import { type Cli, createCli } from '../support/cli.js';
import { inMongosh } from '../support/fake-mongosh.js';
import { type TestMongo, eventually, running, startMongo } from '../support/mongo.js';

const page = readFileSync(new URL('../../docs/an-agents-query-is-killing-my-database.md', import.meta.url), 'utf8');
const blocks = (language: string) => [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'gm'))].map(([, text = '']) => text.trim());

let mongo: TestMongo;
let agent: Agent;
let cli: Cli;

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('things').insertMany([{ a: 1 }]);
  agent = await createAgent(mongo.uri);
  cli = createCli();
});

afterAll(async () => {
  await agent?.close();
  await mongo?.stop();
  cli?.end();
});

describe('the page for a DBA', () => {
  test('has three mongosh lines: find all, kill one, kill those of one server process', async () => {
    const [find = '', killOne = '', killInstance = '', ...more] = blocks('js');
    expect(more).toEqual([]);
    const [one, two, three] = [await agent.start(mongo.client), await agent.start(mongo.client), await agent.start(mongo.client)];
    await agent.startUntagged(mongo.client, 'not an agent');
    const found = await inMongosh(mongo.client, find);
    expect(found.map((row) => row['command'].comment).sort()).toEqual([one, two, three].map(({ comment }) => comment).sort());
    await inMongosh(mongo.client, killOne.replaceAll('OPERATION_ID', one.id));
    expect(await one.ended).toBe(11601);
    await inMongosh(mongo.client, killInstance.replaceAll('INSTANCE', two.tag.instance));
    expect(await two.ended).toBe(11601);
    expect(await running(mongo.client, three.comment)).toHaveLength(1);
    expect(await running(mongo.client, 'not an agent')).toHaveLength(1);
    // An idle cursor falls to the same line.
    const cursor = agent.client.db('app').collection('things').aggregate([{ $project: { i: { $range: [0, 1_000] } } }, { $unwind: '$i' }], { comment: one.comment, batchSize: 2 });
    await cursor.next();
    await inMongosh(mongo.client, killOne.replaceAll('OPERATION_ID', one.id));
    await eventually('the cursor is gone', async () => (await running(mongo.client, one.comment)).length === 0);
    for (const { opid } of [...(await running(mongo.client, three.comment)), ...(await running(mongo.client, 'not an agent'))]) await mongo.client.db('admin').command({ killOp: 1, op: opid });
  });

  test('names only commands and options that there are', async () => {
    const lines = [...blocks('sh').flatMap((block) => block.split('\n')), ...[...page.matchAll(/`(mongo-leash [^`]+)`/g)].map(([, text = '']) => text)].filter((line) => line.startsWith('mongo-leash '));
    expect(lines.length).toBeGreaterThan(8);
    const helps = new Map<string, string>();
    for (const line of lines) {
      const [, command = '', ...words] = line.split(' ');
      if (!helps.has(command)) helps.set(command, (await cli.run([command, '--help'])).stdout);
      const help = helps.get(command) ?? '';
      expect(help, line).toContain(`Usage: mongo-leash ${command}`);
      for (const word of words.filter((each) => each.startsWith('--'))) expect(help, line).toContain(word);
    }
  });
});
