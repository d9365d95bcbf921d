/** Sessions of 2025-era clients by hand, so that each stream, id and header is a test's own choice; and work to cancel. */

import type { MongoClient } from 'mongodb';
import { sleeping } from './checked.js';
import { eventually, tagged } from './mongo.js';
import { type RawStream, openStream } from './raw-stream.js';

export interface RawSession {
  id: string;
  /** Sends messages, or one. */
  post(body: unknown): RawStream;
  /** The stream that the server may speak on by itself, or the rest of one that was lost. */
  get(lastEventId?: string): RawStream;
  /** Sends a call of a tool with this request id. */
  call(id: string | number, tool: string, args?: Record<string, unknown>): RawStream;
  /** Calls a tool with an id of its own, and returns the structured answer. */
  ask(tool: string, args?: Record<string, unknown>): Promise<any>;
  /** Any request; the whole JSON-RPC answer. */
  request(method: string, params?: Record<string, unknown>): Promise<any>;
  /** Sends notifications/cancelled, and returns the status of the POST. */
  cancel(requestId: string | number): Promise<number>;
  /** DELETE; returns its status. */
  end(): Promise<number>;
}

export interface SessionOptions {
  version?: '2025-03-26' | '2025-06-18' | '2025-11-25';
  token?: string;
}

/** A message that calls a tool. */
export function toolCall(id: string | number, name: string, args: Record<string, unknown> = {}): object {
  return { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: args } };
}

const headersOf = (token: string | undefined) => ({ 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }) });

/** Initializes a session. */
export async function beginSession(url: URL, { version = '2025-11-25', token }: SessionOptions = {}): Promise<RawSession> {
  const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'raw', version: '1.0.0' } };
  const first = openStream(url, { method: 'POST', headers: headersOf(token), body: JSON.stringify({ jsonrpc: '2.0', id: 'initialize', method: 'initialize', params }) });
  const { status, headers } = await first.response;
  const sessionId = headers['mcp-session-id'];
  if (status !== 200 || typeof sessionId !== 'string') throw new Error(`no session: ${status} ${first.text()}`);
  await first.answer('initialize');
  const session = joinSession(url, sessionId, { version, ...(token === undefined ? {} : { token }) });
  await session.post({ jsonrpc: '2.0', method: 'notifications/initialized' }).response;
  return session;
}

/** Speaks in a session that has begun: whoever has its id may try. */
export function joinSession(url: URL, id: string, { version = '2025-11-25', token }: SessionOptions = {}): RawSession {
  const headers = { ...headersOf(token), 'Mcp-Session-Id': id, 'MCP-Protocol-Version': version };
  let count = 0;
  const nextId = () => `own-${(count += 1)}`;
  const post = (body: unknown) => openStream(url, { method: 'POST', headers, body: JSON.stringify(body) });
  const request = async (method: string, params: Record<string, unknown> = {}) => {
    const own = nextId();
    return await post({ jsonrpc: '2.0', id: own, method, params }).answer(own);
  };
  return {
    id,
    post,
    request,
    get: (lastEventId) => openStream(url, { headers: { ...headers, Accept: 'text/event-stream', ...(lastEventId === undefined ? {} : { 'Last-Event-ID': lastEventId }) } }),
    call: (requestId, tool, args) => post(toolCall(requestId, tool, args)),
    ask: async (tool, args) => (await request('tools/call', { name: tool, arguments: args ?? {} })).result.structuredContent,
    cancel: async (requestId) => (await post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } }).response).status,
    end: async () => (await openStream(url, { method: 'DELETE', headers }).response).status,
  };
}

let works = 0;

/** A comment that no other operation has. */
export function freshComment(): string {
  return `work-${(works += 1)}`;
}

/** Arguments of `run` for a sleep in the database: `app.one` has one document. */
export function sleepFor(ms: number, args: Record<string, unknown> = {}): Record<string, unknown> & { comment: string } {
  return { database: 'app', collection: 'one', pipeline: sleeping(ms), waitMs: 60_000, startAnother: true, comment: freshComment(), ...args };
}

/** The id of the operation with this comment, as soon as the database shows it. */
export async function seen(witness: MongoClient, comment: string): Promise<string> {
  return await eventually(`the database shows ${comment}`, async () => (await idsOf(witness, comment))[0]);
}

/** Ids of what runs with this comment now. */
export async function idsOf(witness: MongoClient, comment: string): Promise<string[]> {
  const tags = (await tagged(witness)).map((row) => String(row['command']?.comment ?? row['cursor']?.originatingCommand?.comment));
  return tags.filter((tag) => tag.endsWith(` ${comment}`)).map((tag) => tag.split('.')[3] ?? '');
}
