/** JSON-RPC by hand over the stdio of the real program: request ids of one's own choice, and everything that comes back. */

import { createInterface } from 'node:readline';
import { eventually } from './mongo.js';
import type { TestServer } from './server.js';

export interface RawClient {
  /** Every message of the server, in the order in which they came, with the moment (`performance.now()`). */
  messages: { message: any; at: number }[];
  /** Lines that were no JSON: there should be none. */
  garbage: string[];
  send(message: Record<string, unknown>): void;
  request(id: string | number, method: string, params?: Record<string, unknown>): void;
  callTool(id: string | number, name: string, args: Record<string, unknown>, meta?: Record<string, unknown>): void;
  cancel(id: string | number): void;
  /** The response to that request (ids with their types), once it has come. */
  answer(id: string | number, withinMs?: number): Promise<any>;
  /** Every response to that request so far. */
  answersTo(id: string | number): any[];
}

/** Speaks to a server that was started with `raw: true`, from `initialize` on. */
export async function openRaw(server: TestServer): Promise<RawClient> {
  const client = speak(server, (params) => params);
  client.request('initialize', 'initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1.0.0' } });
  await client.answer('initialize');
  client.send({ method: 'notifications/initialized' });
  return client;
}

/** The same in 2026-07-28, which has no `initialize`: each request says for itself what its client is, with the extension for Tasks unless told otherwise. */
export async function openModernRaw(server: TestServer): Promise<RawClient> {
  const client = speak(server, modernParams);
  client.request('discover', 'server/discover');
  await client.answer('discover');
  return client;
}

/** Params of a request of 2026-07-28; a `_meta` of one's own goes before. */
export function modernParams(params: Record<string, unknown> = {}, { tasks = true }: { tasks?: boolean } = {}): Record<string, unknown> {
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'raw', version: '1.0.0' },
    'io.modelcontextprotocol/clientCapabilities': tasks ? { extensions: { 'io.modelcontextprotocol/tasks': {} } } : {},
  };
  return { ...params, _meta: { ...envelope, ...(params['_meta'] as object | undefined) } };
}

function speak(server: TestServer, paramsOf: (params: Record<string, unknown>) => Record<string, unknown>): RawClient {
  const { stdin, stdout } = server.process;
  if (stdin === null || stdout === null) throw new Error('the server has no pipes');
  const messages: RawClient['messages'] = [];
  const garbage: string[] = [];
  createInterface({ input: stdout }).on('line', (line) => {
    try {
      messages.push({ message: JSON.parse(line), at: performance.now() });
    } catch {
      garbage.push(line);
    }
  });
  const send = (message: Record<string, unknown>) => void stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const request: RawClient['request'] = (id, method, params = {}) => { send({ id, method, params: paramsOf(params) }); };
  const answersTo = (id: string | number) => messages.map(({ message }) => message).filter((message) => message.method === undefined && message.id === id);
  const answer = (id: string | number, withinMs = 10_000) => eventually(`request ${JSON.stringify(id)} is answered`, () => answersTo(id)[0], withinMs);
  return {
    messages,
    garbage,
    send,
    request,
    callTool: (id, name, args, meta) => { request(id, 'tools/call', { name, arguments: args, ...(meta === undefined ? {} : { _meta: meta }) }); },
    cancel: (id) => { send({ method: 'notifications/cancelled', params: { requestId: id, reason: 'the user stopped it' } }); },
    answer,
    answersTo,
  };
}
