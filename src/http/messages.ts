/** Reads what an HTTP body holds, as far as it is needed before it is served. */

import type { RequestId } from '@modelcontextprotocol/server';
import type { Tool } from '../mcp/tool.js';
import type { Scope } from '../domain/scope.js';

interface Message {
  method?: unknown;
  id?: unknown;
  params?: { name?: unknown; requestId?: unknown };
}

function messagesOf(body: unknown): Message[] {
  const all: unknown[] = Array.isArray(body) ? body : [body];
  return all.filter((message): message is Message => typeof message === 'object' && message !== null);
}

function isRequestId(id: unknown): id is RequestId {
  return typeof id === 'string' || typeof id === 'number';
}

/** Ids of the requests in it. */
export function requestIds(body: unknown): RequestId[] {
  return messagesOf(body).filter(({ method }) => method !== undefined).map(({ id }) => id).filter(isRequestId);
}

/** Ids of the requests that it cancels. */
export function cancelledIds(body: unknown): RequestId[] {
  return messagesOf(body).filter(({ method }) => method === 'notifications/cancelled').map(({ params }) => params?.requestId).filter(isRequestId);
}

export function begins(body: unknown): boolean {
  return messagesOf(body).some(({ method }) => method === 'initialize');
}

export function calls(body: unknown, method: string): boolean {
  return messagesOf(body).some((message) => message.method === method);
}

/** The widest scope that any message of it needs. */
export function scopeNeeded(body: unknown, tools: ReadonlyMap<string, Tool>): Scope {
  let needed: Scope = 'leash:read';
  for (const { method, params } of messagesOf(body)) {
    const scope: Scope = method === 'tasks/cancel' ? 'leash:kill' : method === 'tools/call' ? scopeOf(tools, params?.name) : 'leash:read';
    if (scope === 'leash:admin' || needed === 'leash:read') needed = scope;
  }
  return needed;
}

/** A name that is no text names no tool; turning it into one could fail. */
function scopeOf(tools: ReadonlyMap<string, Tool>, name: unknown): Scope {
  return (typeof name === 'string' ? tools.get(name)?.scope : undefined) ?? 'leash:read';
}

/** Whether it stops something, and does nothing else: that is never refused for the sake of a rate. */
export function stops(body: unknown): boolean {
  const messages = messagesOf(body);
  return messages.length > 0 && messages.every(({ method, params }) => method === 'notifications/cancelled' || method === 'tasks/cancel' || (method === 'tools/call' && params?.name === 'kill'));
}
