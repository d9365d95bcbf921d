/** What is decided from a body before it is served: the scope that it takes, and whether it stops something. */
import { describe, expect, it } from 'vitest';
import type { Scope } from '../../src/domain/scope.js';
import { type AppDeps, createApp } from '../../src/http/app.js';
import { createAuthenticator } from '../../src/http/auth.js';
import { openExchange } from '../../src/http/exchange.js';
import { scopeNeeded, stops } from '../../src/http/messages.js';
import { createRateLimit } from '../../src/http/rate-limit.js';
import { parseTokens } from '../../src/http/tokens.js';
import type { Tool } from '../../src/mcp/tool.js';
import { createHandClock, createKeptLog } from '../support/hand-clock.js';

const tool = (name: string, scope: Scope) => ({ name, scope }) as Tool;
const offered = [tool('run', 'leash:read'), tool('kill', 'leash:kill'), tool('drop_everything', 'leash:admin')];
const tools = new Map(offered.map((each) => [each.name, each]));
const call = (name: unknown) => ({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } });
const ping = { jsonrpc: '2.0', id: 2, method: 'ping' };
const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } };
const cancelTask = { jsonrpc: '2.0', id: 3, method: 'tasks/cancel', params: { taskId: 'x' } };
/** Text from it is an error. */
const untextual = { toString: 1 };

describe('the scope that a body takes', () => {
  it.each([
    ['nothing', undefined, 'leash:read'],
    ['no message', [null, 42, 'kill', []], 'leash:read'],
    ['a ping', ping, 'leash:read'],
    ['a notification that cancels', cancelled, 'leash:read'],
    ['a tool that reads', call('run'), 'leash:read'],
    ['kill', call('kill'), 'leash:kill'],
    ['tasks/cancel', cancelTask, 'leash:kill'],
    ['a tool for administrators', call('drop_everything'), 'leash:admin'],
    ['a tool that is not there', call('nothing'), 'leash:read'],
    ['a tool named like a part of every object', call('constructor'), 'leash:read'],
    ['a name that is no text', call(['kill']), 'leash:read'],
    ['a name that cannot be made a text', call(untextual), 'leash:read'],
    ['params that are null', { ...call('kill'), params: null }, 'leash:read'],
  ] as const)('%s: %s', (_what, body, scope) => {
    expect(scopeNeeded(body, tools)).toBe(scope);
  });

  it.each([
    ['kill first', [call('kill'), ping, call('run')], 'leash:kill'],
    ['kill last', [ping, call('run'), call('kill')], 'leash:kill'],
    ['an administrator first', [call('drop_everything'), call('kill'), ping], 'leash:admin'],
    ['an administrator last', [ping, cancelTask, call('drop_everything')], 'leash:admin'],
  ] as const)('of a batch is its widest: %s', (_what, body, scope) => {
    expect(scopeNeeded(body, tools)).toBe(scope);
  });
});

describe('a body stops something', () => {
  it.each([['a notification that cancels', cancelled], ['tasks/cancel', cancelTask], ['kill', call('kill')], ['a batch of these', [cancelled, cancelTask, call('kill')]]])('%s', (_what, body) => {
    expect(stops(body)).toBe(true);
  });

  it.each([['nothing', undefined], ['an empty batch', []], ['a tool that reads', call('run')], ['a name that cannot be made a text', call(untextual)], ['one that stops, and work beside it', [cancelled, call('run')]], ['work, and one that stops', [ping, call('kill')]]])('not %s', (_what, body) => {
    expect(stops(body)).toBe(false);
  });
});

describe('a tool for administrators', () => {
  const tokens = parseTokens([{ from: 'test', text: 'killer leash:kill tok-killer-0123456789\nroot leash:admin tok-root-0123456789ab' }]);

  async function ask(body: unknown, known: typeof tokens, token?: string): Promise<{ status: number; challenge: string | null; served: number }> {
    let served = 0;
    const serve = { handle: () => Promise.resolve(new Response(null, { status: 200 + (served += 1) })), count: () => 0, close: () => Promise.resolve() };
    const log = createKeptLog();
    const authenticator = createAuthenticator({ tokens: known, jwt: undefined, resource: () => new URL('http://localhost/mcp'), clock: createHandClock(), log });
    const app = createApp({ allowed: { hosts: ['localhost'], origins: [] }, authenticator, rateLimit: createRateLimit(100), health: {} as AppDeps['health'], sessions: serve, modern: serve, downloads: { ...serve, match: () => null, addressOf: () => '' }, tools: offered, log });
    const request = new Request('http://localhost/mcp', { method: 'POST', headers: { host: 'localhost', 'content-type': 'application/json', ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) }, body: JSON.stringify(body) });
    openExchange(request, { identity: null, remoteAddress: '127.0.0.1', over: Promise.resolve('sent'), chunksWritten: () => 0, looksFirst: false });
    const response = await app.handle(request);
    return { status: response.status, challenge: response.headers.get('www-authenticate'), served };
  }

  it.each([['alone', call('drop_everything')], ['in a batch', [ping, call('drop_everything')]]])('is for nobody on a server without authentication, %s', async (_what, body) => {
    expect(await ask(body, [])).toEqual({ status: 403, challenge: expect.stringMatching(/^Bearer error="insufficient_scope", .*scope="leash:admin"$/), served: 0 });
    expect(await ask([ping, call('kill')], [])).toMatchObject({ served: 1 });
  });

  it('is for the scope leash:admin alone', async () => {
    expect(await ask(call('drop_everything'), tokens, 'tok-killer-0123456789')).toMatchObject({ status: 403, served: 0 });
    expect(await ask(call('drop_everything'), tokens, 'tok-root-0123456789ab')).toMatchObject({ served: 1 });
  });
});
