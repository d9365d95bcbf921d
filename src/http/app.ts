/** The way of an HTTP request: who may ask, how much, and which protocol version answers. */

import { isLegacyRequest } from '@modelcontextprotocol/server';
import type { Log } from '../core/ports.js';
import { type Scope, hasScope } from '../domain/scope.js';
import type { Tool } from '../mcp/tool.js';
import type { Authenticator, Identity } from './auth.js';
import { type Exchange, exchangeOf } from './exchange.js';
import type { Downloads } from './downloads.js';
import type { Health } from './health.js';
import { requestIds, scopeNeeded, stops } from './messages.js';
import type { Modern } from './modern.js';
import { type AllowedNames, checkHostAndOrigin } from './origin.js';
import type { RateLimit } from './rate-limit.js';
import { rejection } from './rejection.js';
import type { Sessions } from './sessions.js';

export interface AppDeps {
  allowed: AllowedNames;
  authenticator: Authenticator;
  rateLimit: RateLimit;
  health: Health;
  sessions: Sessions;
  modern: Modern;
  downloads: Downloads;
  tools: readonly Tool[];
  log: Log;
}

export interface App {
  /** Answers a request that has come through `openExchange`. */
  handle(request: Request): Promise<Response>;
  /** From now on: no new work. */
  refuseWork(): void;
}

export const mcpPath = '/mcp';
/** JSON-RPC's code for a text that is no JSON. */
const parseErrorCode = -32_700;
/** What anyone may do who reaches a server without authentication. */
const scopesOfAnyone: ReadonlySet<Scope> = new Set(['leash:kill']);
const maxBatch = 100;
const methods = ['GET', 'POST', 'DELETE'];

export function createApp(deps: AppDeps): App {
  const { allowed, authenticator, rateLimit, health, sessions, modern, downloads, log } = deps;
  const tools = new Map(deps.tools.map((tool) => [tool.name, tool]));
  let refusing = false;

  async function handle(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    // Asked by what keeps the process running, by address and without a token; they say nothing of the data.
    if (pathname === '/healthz') return health.process();
    if (pathname === '/readyz') return refusing ? rejection(503, 'The server is shutting down.') : await health.database();
    const strange = checkHostAndOrigin(request, allowed);
    if (strange !== undefined) return strange;
    return withCors(request, await respond(request, pathname));
  }

  async function respond(request: Request, pathname: string): Promise<Response> {
    const metadata = authenticator.metadata(request);
    if (metadata !== undefined) return metadata;
    const exported = downloads.match(pathname);
    if (pathname !== mcpPath && exported === null) return rejection(404, `There is nothing at ${pathname}: MCP is at ${mcpPath}.`);
    if (request.method === 'OPTIONS') return preflight();
    // Which methods a file has, its downloads say.
    if (exported === null && !methods.includes(request.method)) return rejection(405, `${request.method} means nothing here.`, { Allow: [...methods, 'OPTIONS'].join(', ') });
    const exchange = exchangeOf(request);
    const identity = await authenticator.authenticate(request);
    // Whoever tries tokens is counted by where it comes from.
    if (identity instanceof Response) return (await rateLimit.count(exchange.remoteAddress)) ?? identity;
    exchange.identity = identity;
    if (exported !== null) return (await refuse(undefined, identity, exchange, request)) ?? (await downloads.handle(request, exported, identity));
    const text = await request.clone().text();
    let body: unknown;
    try {
      body = text === '' ? undefined : JSON.parse(text);
    } catch {
      return Response.json({ jsonrpc: '2.0', error: { code: parseErrorCode, message: 'Parse error: the body is not JSON.' }, id: null }, { status: 400 });
    }
    return (await refuse(body, identity, exchange, request)) ?? (await serve(request, body));
  }

  async function refuse(body: unknown, identity: Identity | null, { remoteAddress }: Exchange, request: Request): Promise<Response | undefined> {
    const stopping = stops(body) || request.method === 'DELETE';
    const limited = await rateLimit.count(identity?.principal ?? remoteAddress, stopping, Math.max(1, requestIds(body).length));
    if (limited !== undefined) return limited;
    if (Array.isArray(body) && body.length > maxBatch) return rejection(400, `A batch holds at most ${maxBatch} messages.`);
    if (refusing && !stopping) return rejection(503, 'The server is shutting down.', { 'Retry-After': '5' });
    const needed = scopeNeeded(body, tools);
    if (hasScope(identity?.scopes ?? scopesOfAnyone, needed)) return undefined;
    log.warn({ principal: identity?.principal, needed, remoteAddress }, 'scope missing');
    return authenticator.refuse(needed);
  }

  async function serve(request: Request, body: unknown): Promise<Response> {
    return (await isLegacyRequest(request, body)) ? await sessions.handle(request, body) : await modern.handle(request, body);
  }

  return {
    handle,
    refuseWork() {
      refusing = true;
    },
  };
}

/** For web pages from an allowed origin; all others have been refused. */
function withCors(request: Request, response: Response): Response {
  const origin = request.headers.get('origin');
  if (origin === null || response.headers.has('access-control-allow-origin')) return response;
  const headers = new Headers(response.headers);
  headers.set('Access-Control-Allow-Origin', origin);
  headers.set('Access-Control-Expose-Headers', 'Mcp-Session-Id, WWW-Authenticate, Retry-After');
  headers.append('Vary', 'Origin');
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

function preflight(): Response {
  return new Response(null, {
    status: 204,
    headers: {
      'Access-Control-Allow-Methods': methods.join(', '),
      'Access-Control-Allow-Headers': 'Authorization, Content-Type, Accept, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name, Last-Event-ID',
      'Access-Control-Max-Age': '600',
    },
  });
}
