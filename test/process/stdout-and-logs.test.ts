/** Who may write where: stdout carries JSON-RPC and nothing else, stderr one line of JSON for each event, with the ids to follow an operation by. */
import type { Document } from 'mongodb';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stderrLines } from '../support/busy-server.js';
import { sleeping } from '../support/checked.js';
import { type TestMongo, eventually, startMongo, tagged } from '../support/mongo.js';
import { type RawClient, openRaw } from '../support/raw-client.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;
let raw: RawClient;
/** Operation ids by the name of the request. */
const ids: Record<string, string> = {};

const few = { database: 'app', collection: 'few' };
const bodyOf = (response: Document) => response['result'].structuredContent as Document;

/** A whole cycle: every tool, every kind of error, a cancel, a kill, and the end. */
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('few').insertMany([{}, {}]);
  server = await startServer({ uri: mongo.uri, args: ['--allow-js', '--log-level', 'trace'], raw: true });
  raw = await openRaw(server);
  raw.request('list', 'tools/list');
  raw.callTool('good', 'run', { ...few, pipeline: [{ $count: 'n' }] });
  ids['good'] = bodyOf(await raw.answer('good'))['operationId'];
  raw.callTool('refused', 'run', { ...few, pipeline: [{ $out: 'x' }] });
  raw.callTool('bad argument', 'run', { ...few });
  raw.callTool('server error', 'run', { ...few, pipeline: [{ $project: { x: { $divide: [1, 0] } } }] });
  raw.callTool('no tool', 'no-such-tool', {});
  raw.request('no method', 'no/such/method');
  server.process.stdin?.write('this is no JSON\n{"jsonrpc":"2.0"}\n[]\n');
  for (const id of ['refused', 'bad argument', 'server error', 'no tool', 'no method']) await raw.answer(id);

  raw.callTool('cancelled', 'run', { ...few, pipeline: sleeping(), waitMs: 60_000 }, { progressToken: 'p' });
  await eventually('progress comes', () => raw.messages.some(({ message }) => message.method === 'notifications/progress'));
  raw.cancel('cancelled');
  raw.callTool('after', 'status', { requestId: 'cancelled', waitMs: 5_000 });
  ids['cancelled'] = bodyOf(await raw.answer('after'))['operationId'];

  raw.callTool('handed over', 'run', { ...few, pipeline: sleeping(), waitMs: 0 });
  ids['handed over'] = bodyOf(await raw.answer('handed over'))['operationId'];
  await eventually('the database shows it', async () => (await tagged(mongo.client)).length === 1);
  raw.callTool('kill', 'kill', { id: ids['handed over'] });
  raw.callTool('operations', 'operations', {});
  raw.callTool('result', 'result', { id: ids['good'] });
  for (const id of ['kill', 'operations', 'result']) await raw.answer(id);
  await server.close();
});
afterAll(() => mongo.stop());

it('every line of stdout is a JSON-RPC message of the version 2.0: a response with a result or an error, or a notification', () => {
  expect(raw.garbage).toEqual([]);
  expect(raw.messages.length).toBeGreaterThanOrEqual(14);
  for (const { message } of raw.messages) {
    expect(message).toMatchObject({ jsonrpc: '2.0' });
    if (message.method === undefined) expect(['result', 'error'].filter((key) => key in message)).toHaveLength(1);
    else expect(message).not.toHaveProperty('id');
  }
});

it('every request has one response, and the cancelled one has none', () => {
  for (const id of ['list', 'good', 'refused', 'bad argument', 'server error', 'no tool', 'no method', 'after', 'handed over', 'kill', 'operations', 'result']) {
    expect(raw.answersTo(id), id).toHaveLength(1);
  }
  expect(raw.answersTo('cancelled')).toEqual([]);
});

it('every line of stderr is a JSON object: log lines with a level, a time and a message, and the report at the end', () => {
  const lines = stderrLines(server);
  expect(lines.at(-1)).toHaveProperty('shutdown');
  for (const line of lines.slice(0, -1)) expect(line).toMatchObject({ level: expect.any(Number), time: expect.any(Number), msg: expect.any(String), pid: server.process.pid });
});

const linesOf = (fields: Document) => stderrLines(server).filter((line) => Object.entries(fields).every(([key, value]) => line[key] === value));

it('a call is logged at entry and at exit with its request id, and the operation that it led to with both ids', () => {
  const lines = linesOf({ requestId: 'good' });
  expect(lines.map(({ msg }) => msg as string)).toEqual(['call', 'operation accepted', 'operation sent', 'operation ended', 'answer']);
  for (const line of lines.slice(1)) expect(line).toMatchObject({ operationId: ids['good'] });
  expect(lines.at(-1)).toMatchObject({ outcome: 'succeeded', isError: false, elapsedMs: expect.any(Number) });
});

it('a cancel is logged with both ids, its cause, and what became of it', () => {
  const lines = linesOf({ requestId: 'cancelled' });
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'kill requested', operationId: ids['cancelled'], cause: 'client_cancelled' }));
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'operation ended', operationId: ids['cancelled'], outcome: 'killed', by: 'us' }));
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'kill ended', operationId: ids['cancelled'], verdict: 'stopped' }));
  expect(lines).toContainEqual(expect.objectContaining({ msg: 'answer', cancelled: true }));
});

it('a kill by its tool is logged with the ids of the operation and of the call that asked for it', () => {
  expect(linesOf({ operationId: ids['handed over'], msg: 'kill requested' })).toEqual([expect.objectContaining({ requestId: 'handed over', cause: 'kill_tool' })]);
  expect(linesOf({ requestId: 'kill', msg: 'answer' })).toEqual([expect.objectContaining({ operationId: ids['handed over'], verdict: 'stopped' })]);
});

it('a call that is refused is logged at entry and at exit too', () => {
  for (const requestId of ['refused', 'bad argument', 'server error']) {
    expect(linesOf({ requestId, msg: 'call' }), requestId).toHaveLength(1);
    expect(linesOf({ requestId, msg: 'answer' }), requestId).toEqual([expect.objectContaining({ isError: true })]);
  }
});
