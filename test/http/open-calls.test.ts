/** The transport of the SDK after cancels: it waits for the answer to every request, and a cancelled one gets none. */
import { Server, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import { beforeEach, describe, expect, it } from 'vitest';
import { createEventLog } from '../../src/http/events.js';
import { cancelledIds, requestIds } from '../../src/http/messages.js';
import { type OpenCalls, createOpenCalls } from '../../src/http/open-calls.js';

let calls: OpenCalls;
let transport: WebStandardStreamableHTTPServerTransport;
/** Lets the call with this text answer. */
let answers: Map<string, () => void>;
let sessionId: string;

const version = '2025-11-25';
const send = async (body: unknown, accept = 'application/json, text/event-stream') => {
  const headers = { 'Content-Type': 'application/json', Accept: accept, 'MCP-Protocol-Version': version, ...(sessionId === '' ? {} : { 'Mcp-Session-Id': sessionId }) };
  const forget = calls.began(requestIds(body));
  const response = await transport.handleRequest(new Request('http://127.0.0.1/mcp', { method: 'POST', headers, body: JSON.stringify(body) }), { parsedBody: body });
  if (!response.ok) forget();
  for (const id of cancelledIds(body)) await calls.cancelled(id, transport);
  return response;
};
const call = (id: string | number) => ({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: String(id), arguments: {} } });
const cancel = (requestId: string | number) => send({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
/** What the transport holds of requests and of streams. */
const held = () => {
  const maps = transport as unknown as Record<'_requestToStreamMapping' | '_requestResponseMap' | '_streamMapping', Map<unknown, unknown>>;
  return [maps._requestToStreamMapping.size, maps._requestResponseMap.size, maps._streamMapping.size];
};
const nothing = [0, 0, 0];

beforeEach(async () => {
  calls = createOpenCalls();
  answers = new Map();
  sessionId = '';
  transport = new WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: () => 'session', eventStore: createEventLog().forSession((message) => calls.sent(message)) });
  const server = new Server({ name: 'test', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/call', ({ params }, context) => new Promise((resolve) => {
    answers.set(params.name, () => { resolve({ content: [] }); });
    context.mcpReq.signal.addEventListener('abort', () => { resolve({ content: [] }); });
  }));
  await server.connect(transport);
  const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize', params: { protocolVersion: version, capabilities: {}, clientInfo: { name: 'test', version: '1.0.0' } } };
  await (await send(initialize)).text();
  sessionId = 'session';
  expect(held()).toEqual(nothing);
});

/** Ids of the answers in a stream, once it has ended. */
const answered = async (response: Response) => (await response.text()).split('\n').filter((line) => line.startsWith('data: {')).map((line) => (JSON.parse(line.slice(6)) as { id: unknown }).id);

describe('after the cancel of', () => {
  it('a call, its stream has ended and nothing is held', async () => {
    const response = await send(call(1));
    expect(held()).toEqual([1, 0, 1]);
    await cancel(1);
    expect(await answered(response)).toEqual([]);
    expect(held()).toEqual(nothing);
  });

  it('a thousand calls, nothing is held', async () => {
    for (let id = 1; id <= 1_000; id += 1) {
      const response = await send(call(id));
      await cancel(id);
      await response.text();
    }
    expect(held()).toEqual(nothing);
  });

  it('a call whose stream its client has closed, nothing is held', async () => {
    const response = await send(call(1));
    await response.body?.cancel();
    expect(held()).toEqual([1, 0, 0]);
    await cancel(1);
    expect(held()).toEqual(nothing);
  });

  it('one call of a batch, the stream waits for the other and ends with it', async () => {
    const response = await send([call('a'), call('b')]);
    await cancel('a');
    expect(held()).toEqual([2, 0, 1]);
    answers.get('b')?.();
    expect(await answered(response)).toEqual(['b']);
    await new Promise((resolve) => { setImmediate(resolve); });
    expect(held()).toEqual(nothing);
  });

  it('the last open call of a batch, the stream has ended with the answers of the others', async () => {
    const response = await send([call('a'), call('b'), call('c')]);
    answers.get('b')?.();
    await cancel('a');
    await cancel('c');
    expect(await answered(response)).toEqual(['b']);
    expect(held()).toEqual(nothing);
  });

  it('a call that was answered, or never made, other calls are as they were', async () => {
    const first = await send(call(1));
    const second = await send(call(2));
    answers.get('1')?.();
    expect(await answered(first)).toEqual([1]);
    for (const id of [1, 3, '2']) await cancel(id);
    expect(held()).toEqual([1, 0, 1]);
    answers.get('2')?.();
    expect(await answered(second)).toEqual([2]);
    expect(held()).toEqual(nothing);
  });
});

it('a POST that is refused is no call, and changes nothing of an open one with the same id', async () => {
  const response = await send(call('open'));
  expect((await send(call('open'), 'application/json')).status).toBe(406);
  await cancel('open');
  expect(await answered(response)).toEqual([]);
  expect(held()).toEqual(nothing);
});
