/** Serves clients of 2026-07-28: each request stands alone, and a response stream that the client closes is a cancel. */

import { type Server, createMcpHandler } from '@modelcontextprotocol/server';
import type { Leash } from '../core/leash.js';
import type { Clock, Log } from '../core/ports.js';
import type { CallerOf, Era } from '../mcp/server.js';
import { exchangeOf, isAdmin } from './exchange.js';
import { createHandles } from './handles.js';
import { calls } from './messages.js';
import { withStatusOfRefusal } from './refusal.js';

export interface ModernDeps {
  createServer(callerOf: CallerOf, era: Era): Server;
  leash: Pick<Leash, 'kill'>;
  clock: Pick<Clock, 'after'>;
  /** A mark for one request: this version has no sessions, so a request id means nothing beyond its request. */
  newMark(): string;
  maxBodyBytes: number;
  keepAliveMs: number;
  /** When a client is told to ask for a task again, in milliseconds. */
  pollIntervalMs: number;
  log: Log;
  redact(text: string): string;
}

export interface Modern {
  handle(request: Request, body: unknown): Promise<Response>;
  close(): Promise<void>;
}

/** Whose operations are those of callers whom nothing tells apart. */
const anonymous = 'http:anonymous';
/** A client that has not asked in the time of so many polls does not know the task. */
const pollsWaitedFor = 3;

export function createModern(deps: ModernDeps): Modern {
  const { leash, clock, log, redact } = deps;
  const handles = createHandles({ clock, graceMs: pollsWaitedFor * deps.pollIntervalMs, log, redact });
  const callersOf = new WeakMap<Request, ReturnType<CallerOf>>();

  /** The same for every question about one request. */
  function callerFor(request: Request | undefined): ReturnType<CallerOf> {
    const known = request === undefined ? undefined : callersOf.get(request);
    if (known !== undefined) return known;
    const exchange = exchangeOf(request);
    const { identity } = exchange;
    const caller = { principal: identity?.principal ?? anonymous, admin: isAdmin({ identity }), session: deps.newMark() };
    const made: ReturnType<CallerOf> = {
      ...caller,
      causeOfClose: 'stream_closed',
      handedOver: (operationId, isTask) => {
        const kill = () => leash.kill({ operationId }, { ...caller, requestId: '', signal: new AbortController().signal }, 0, 'stream_closed');
        handles.follow({ operationId, isTask, exchange, kill });
      },
    };
    if (request !== undefined) callersOf.set(request, made);
    return made;
  }

  const callerOf: CallerOf = (context) => callerFor(context.http?.req);
  const onerror = (error: Error) => { log.debug({ error: redact(error.message) }, 'request of 2026-07-28'); };
  const options = { legacy: 'reject', onerror, maxRequestBodySize: deps.maxBodyBytes, keepAliveMs: deps.keepAliveMs } as const;
  const factory = () => deps.createServer(callerOf, 'modern');
  const plain = createMcpHandler(factory, { ...options, responseMode: 'auto' });
  // A call may take long: its stream is open, and alive, from the beginning.
  const streaming = createMcpHandler(factory, { ...options, responseMode: 'sse' });

  return {
    handle: async (request, body) => {
      handles.heard(body);
      if (!calls(body, 'tools/call')) return await plain.fetch(request, { parsedBody: body });
      return await withStatusOfRefusal(await streaming.fetch(request, { parsedBody: body }));
    },
    async close() {
      await Promise.all([plain.close(), streaming.close()]);
    },
  };
}
