/** Serves clients up to 2025-11-25: sessions, which outlive their connections for a while, and end with what they started. */

import { randomUUID } from 'node:crypto';
import { type Server, WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/server';
import type { Leash } from '../core/leash.js';
import type { Clock, Log } from '../core/ports.js';
import { hasScope } from '../domain/scope.js';
import type { CallerOf, Era } from '../mcp/server.js';
import type { EventLog, SessionEvents } from './events.js';
import { type Exchange, exchangeOf } from './exchange.js';
import { begins, cancelledIds, requestIds } from './messages.js';
import { type OpenCalls, createOpenCalls } from './open-calls.js';
import { rejection } from './rejection.js';

export interface SessionsDeps {
  createServer(callerOf: CallerOf, era: Era): Server;
  leash: Pick<Leash, 'endSession' | 'isBusy'>;
  events: EventLog;
  clock: Clock;
  log: Log;
  /** The session's mark in tags, and what tells sessions without authentication apart. */
  newId(length: number): string;
  /** Times in milliseconds. */
  limits: { maxSessions: number; graceMs: number; idleMs: number; keepAliveMs: number; maxBodyBytes: number };
}

export interface Sessions {
  handle(request: Request, body: unknown): Promise<Response>;
  count(): number;
  close(): Promise<void>;
}

interface Session {
  id: string;
  mark: string;
  principal: string;
  transport: WebStandardStreamableHTTPServerTransport;
  calls: OpenCalls;
  events: SessionEvents;
  /** Requests and streams of it that are open now. */
  open: number;
  /** When a stream of it was cut, with nothing heard since; by the monotonic clock. */
  cutAt: number | null;
  activeAt: number;
}

const markLength = 6;
const principalLength = 16;
/** What a client whose stream was cut waits before it comes back, in milliseconds. */
const retryMs = 1_000;

export function createSessions(deps: SessionsDeps): Sessions {
  const { leash, events, clock, log, newId, limits } = deps;
  const sessions = new Map<string, Session>();
  const reapEveryMs = Math.max(50, Math.min(limits.graceMs, limits.idleMs, 20_000) / 4);
  let cancelReaper = clock.after(reapEveryMs, reap, { background: true });

  /** A client that vanished is waited for; one that is only quiet is left alone while something of its runs. */
  function reap(): void {
    for (const session of sessions.values()) {
      if (session.open > 0) continue;
      if (session.cutAt !== null && clock.now() - session.cutAt >= limits.graceMs) void end(session, 'its client went away and did not come back');
      // Its time begins anew when what it runs has ended: the end can be asked for.
      else if (leash.isBusy(session.mark)) session.activeAt = clock.now();
      else if (clock.now() - session.activeAt >= limits.idleMs) void end(session, 'it was idle');
    }
    cancelReaper = clock.after(reapEveryMs, reap, { background: true });
  }

  async function end(session: Session, reason: string): Promise<void> {
    if (!sessions.delete(session.id)) return;
    log.info({ session: session.mark, reason }, 'session ended');
    leash.endSession(session.mark);
    await session.transport.close();
    session.events.clear();
  }

  async function begin(request: Request, body: unknown, exchange: Exchange): Promise<Response> {
    if (sessions.size >= limits.maxSessions) return rejection(503, `There are ${sessions.size} sessions, as many as this server takes. Try again later.`, { 'Retry-After': '10' });
    const calls = createOpenCalls();
    const kept = events.forSession((message) => calls.sent(message));
    const mark = newId(markLength);
    const { identity } = exchange;
    const caller = { principal: identity?.principal ?? `http:session:${newId(principalLength)}`, session: mark, causeOfClose: 'session_ended' as const };
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      eventStore: kept,
      retryInterval: retryMs,
      keepAliveMs: limits.keepAliveMs,
      maxRequestBodySize: limits.maxBodyBytes,
      onsessioninitialized: (id) => {
        const session: Session = { id, mark, principal: caller.principal, transport, calls, events: kept, open: 0, cutAt: null, activeAt: clock.now() };
        sessions.set(id, session);
        follow(session, exchange);
        log.info({ session: mark, authenticated: identity !== null }, 'session began');
      },
      onsessionclosed: (id) => {
        const session = sessions.get(id);
        if (session !== undefined) return end(session, 'its client ended it');
      },
    });
    // What a token may do now counts, not what it might when the session began.
    const server = deps.createServer((context) => ({ ...caller, admin: isAdmin(exchangeOf(context.http?.req)) }), 'legacy');
    await server.connect(transport);
    const response = await transport.handleRequest(request, { parsedBody: body });
    if (transport.sessionId === undefined) await transport.close();
    return response;
  }

  function follow(session: Session, { over }: Exchange): void {
    session.open += 1;
    session.cutAt = null;
    void over.then((how) => {
      session.open -= 1;
      session.activeAt = clock.now();
      // An answer that left says nothing of a client that another stream was cut of: only what it sends does.
      if (how === 'cut' || session.cutAt !== null) session.cutAt = clock.now();
    });
  }

  function find(request: Request, { identity }: Exchange): Session | Response {
    const id = request.headers.get('mcp-session-id');
    if (id === null) return rejection(400, 'The header Mcp-Session-Id is missing: begin with initialize.');
    const session = sessions.get(id);
    // Another principal's session is not there, in the same way as one that has ended.
    if (session === undefined || (identity !== null && identity.principal !== session.principal)) return rejection(404, 'There is no such session (any more): begin again with initialize.');
    return session;
  }

  return {
    async handle(request, body) {
      const exchange = exchangeOf(request);
      if (request.headers.get('mcp-session-id') === null && begins(body)) return await begin(request, body, exchange);
      const session = find(request, exchange);
      if (session instanceof Response) return session;
      follow(session, exchange);
      const lost = request.method === 'GET' ? request.headers.get('last-event-id') : null;
      if (lost !== null && (await session.events.getStreamIdForEventId(lost)) === undefined) return nothingToResume();
      const forget = session.calls.began(requestIds(body));
      const response = await session.transport.handleRequest(request, body === undefined ? undefined : { parsedBody: body });
      if (!response.ok) forget();
      const cancelled = cancelledIds(body);
      if (cancelled.length > 0) void endStreams(session, cancelled);
      return response;
    },
    count: () => sessions.size,
    async close() {
      cancelReaper();
      await Promise.all([...sessions.values()].map((session) => end(session, 'the server ends')));
    },
  };
}

/** A client takes this status for an answer (Streamable HTTP: no stream is offered here), and any other for a reason to try again. */
function nothingToResume(): Response {
  return rejection(405, 'There is nothing to resume: all of this stream was cancelled, or it is not kept any more.', { Allow: 'POST, DELETE' });
}

/** Once the SDK has taken the cancel, which it does within this turn of the event loop. */
async function endStreams({ calls, transport }: Session, ids: ReturnType<typeof cancelledIds>): Promise<void> {
  await new Promise((resolve) => { setImmediate(resolve); });
  for (const id of ids) await calls.cancelled(id, transport);
}

function isAdmin({ identity }: Exchange): boolean {
  return identity !== null && hasScope(identity.scopes, 'leash:admin');
}
