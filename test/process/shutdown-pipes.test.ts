/** Clients that do not read, or stop reading in the middle: the pipes are real ones, of 64 KB, and the kills go out all the same. */
import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { untilNoneIsLeft } from '../support/busy-server.js';
import { sleeping } from '../support/checked.js';
import { type TestMongo, eventually, startMongo, tagged } from '../support/mongo.js';
import { programPath } from '../support/server.js';
import { type UnreadPipe, openUnreadPipe } from '../support/unread-pipe.js';

const pipeBytes = 65_536;
let mongo: TestMongo;
let pipe: UnreadPipe;
let child: ChildProcess;

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('few').insertMany([{}, {}, {}]);
  await mongo.client.db('app').collection('large').insertMany(Array.from({ length: 8 }, () => ({ text: 'x'.repeat(100_000) })));
});
afterAll(() => mongo.stop());
afterEach(() => {
  pipe.close();
  if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
});

let lastId = 0;
function send(message: object): void {
  child.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
}
function callTool(name: string, args: object): void {
  lastId += 1;
  send({ id: lastId, method: 'tools/call', params: { name, arguments: args } });
}

/** A server with a sleep in the database, and nobody who reads from the pipe. */
async function start(stdio: (writeEnd: number) => StdioOptions): Promise<void> {
  pipe = openUnreadPipe();
  child = spawn(process.execPath, [programPath, '--allow-js', '--max-response-bytes', '1000000'], { env: { ...process.env, MONGO_LEASH_URI: mongo.uri }, stdio: stdio(pipe.writeEnd) });
  pipe.handedOver();
  child.stdin?.on('error', () => undefined);
  send({ id: 'init', method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1.0.0' } } });
  send({ method: 'notifications/initialized' });
  callTool('run', { database: 'app', collection: 'few', pipeline: sleeping(), waitMs: 0 });
  await eventually('the database shows the sleep', async () => (await tagged(mongo.client)).length === 1);
}

/** From now on: gone within 2 s, and the process ended with code 0 within 5 s. */
async function endsProven(): Promise<void> {
  const since = performance.now();
  const exited = new Promise((resolve) => child.once('exit', (code, signal) => { resolve({ code, signal }); }));
  expect(await untilNoneIsLeft(mongo.client, since, 2_000)).toBeLessThan(2_000);
  expect(await exited).toEqual({ code: 0, signal: null });
  expect(performance.now() - since).toBeLessThan(5_000);
}

it('a client that never reads stderr does not hold up the kills of a signal, nor the calls before it', async () => {
  await start((writeEnd) => ['pipe', 'pipe', writeEnd]);
  let answers = '';
  child.stdout?.on('data', (chunk) => { answers += String(chunk); });
  // Two lines of log each: several times what the pipe holds.
  for (let i = 0; i < 1_000; i += 1) callTool('status', { id: 'x' });
  await eventually('the last call is answered', () => answers.includes(`"id":${lastId}}`) || answers.includes(`"id":${lastId},`), 20_000);
  expect(pipe.read(2 * pipeBytes).length).toBeGreaterThan(pipeBytes / 2);
  child.kill('SIGTERM');
  await endsProven();
});

it('a client that never reads stdout does not hold up the kills of a signal', async () => {
  await start((writeEnd) => ['pipe', writeEnd, 'pipe']);
  let log = '';
  child.stderr?.on('data', (chunk) => { log += String(chunk); });
  for (let i = 0; i < 3; i += 1) callTool('run', { database: 'app', collection: 'large', pipeline: [], responseBytesLimit: 1_000_000, startAnother: true });
  await eventually('all is answered, as far as the server can tell', () => log.split('"msg":"answer"').length > 4);
  child.kill('SIGTERM');
  await endsProven();
});

it('a reader that goes away in the middle of an answer ends the server, all proven', async () => {
  await start((writeEnd) => ['pipe', writeEnd, 'pipe']);
  callTool('run', { database: 'app', collection: 'large', pipeline: [], responseBytesLimit: 1_000_000 });
  let read = '';
  await eventually('part of the large answer has come', () => {
    read += pipe.read(4_096);
    return read.length > 20_000;
  });
  expect(read).not.toContain('"more":false');
  pipe.close();
  await endsProven();
});
