/** `mongo-leash top --json` streams what runs to a script. */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sleeping, startDetached } from '../support/checked.js';
import { type Cli, createCli } from '../support/cli.js';
import { type TestMongo, eventually, startMongo } from '../support/mongo.js';
import { type TestServer, programPath, startServer } from '../support/server.js';

let mongo: TestMongo;
let cli: Cli;
let server: TestServer;

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('things').insertOne({});
  cli = createCli(mongo.uri);
  server = await startServer({ uri: mongo.uri, args: ['--allow-js'], stateFolder: cli.stateFolder });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
  cli.end();
});

test('each operation is one object a line, each second, until a signal ends it with 0', async () => {
  const { operationId } = await startDetached({ server, mongo }, { database: 'app', collection: 'things', pipeline: sleeping() });
  const child = spawn(process.execPath, [programPath, 'top', '--json'], { env: cli.env(), stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve) => { child.on('close', resolve); });
  const seen: any[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => seen.push(JSON.parse(line)));
  await eventually('it was seen at two moments', () => new Set(seen.map(({ seenAt }) => seenAt as string)).size >= 2);
  for (const row of seen) expect(row).toMatchObject({ operationId, state: 'running', namespace: 'app.things' });
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
});

test('it ends when nobody reads any more', async () => {
  await startDetached({ server, mongo }, { database: 'app', collection: 'things', pipeline: sleeping(), startAnother: true });
  const child = spawn(process.execPath, [programPath, 'top', '--json'], { env: cli.env(), stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve) => { child.on('close', resolve); });
  await new Promise((resolve) => { child.stdout.once('data', resolve); });
  child.stdout.destroy();
  expect(await ended).toBe(0);
});
