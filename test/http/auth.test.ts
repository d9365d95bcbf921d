/** Who asks: the header Authorization as clients and mistakes write it, the answers that are refusals, and the metadata that a client starts from. */
import { discoverOAuthProtectedResourceMetadata, extractWWWAuthenticateParams } from '@modelcontextprotocol/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Authenticator, type AuthenticatorOptions, createAuthenticator } from '../../src/http/auth.js';
import { parseTokens } from '../../src/http/tokens.js';
import { createHandClock, createKeptLog } from '../support/hand-clock.js';
import { type SigningKey, type TestIssuer, newKey, sign, startIssuer } from '../support/issuer.js';

const token = 'tok-0123456789abcdef';
const endpoint = 'https://leash.example.com/mcp';
const tokens = parseTokens([{ from: 'test', text: `alice leash:read,leash:kill ${token}` }]);
let key: SigningKey;
let issuer: TestIssuer;
beforeAll(async () => {
  key = await newKey('first');
  issuer = await startIssuer('', key);
});
afterAll(() => issuer.close());

function create(options: Partial<AuthenticatorOptions> = {}) {
  const log = createKeptLog();
  return { log, auth: createAuthenticator({ tokens, jwt: undefined, resource: () => new URL(endpoint), clock: createHandClock(), log, ...options }) };
}
const withJwt = (options: Partial<AuthenticatorOptions> = {}) => create({ jwt: { issuer: issuer.issuer, jwks: issuer.jwksUrl, audience: undefined }, ...options });
const post = (authorization?: string, url = endpoint) => new Request(url, { method: 'POST', headers: authorization === undefined ? {} : { authorization } });
const signed = (claims: Record<string, unknown> = {}) => sign(key, { claims: { iss: issuer.issuer, aud: endpoint, sub: 'bob', scope: 'leash:read', ...claims } });

async function refusalOf(auth: Authenticator, request: Request): Promise<Response> {
  const answer = await auth.authenticate(request);
  if (!(answer instanceof Response)) throw new Error('it was not refused');
  return answer;
}

describe('without any authentication', () => {
  const { auth } = create({ tokens: [] });
  it.each([undefined, `Bearer ${token}`, 'nonsense'])('nobody is anybody, whatever they say (%s)', async (authorization) => {
    expect(auth.required).toBe(false);
    expect(await auth.authenticate(post(authorization))).toBeNull();
  });
});

describe('a known bearer is identified', () => {
  it.each([`Bearer ${token}`, `bearer ${token}`, `BEARER   ${token}`])('by %s', async (authorization) => {
    const { auth } = create();
    expect(auth.required).toBe(true);
    expect(await auth.authenticate(post(authorization))).toEqual({ principal: 'token:alice', scopes: new Set(['leash:read', 'leash:kill']) });
  });

  it('by a signed token, beside static ones', async () => {
    const { auth } = withJwt();
    expect(await auth.authenticate(post(`Bearer ${await signed()}`))).toEqual({ principal: `jwt:${issuer.issuer}#bob`, scopes: new Set(['leash:read']) });
    expect(await auth.authenticate(post(`Bearer ${token}`))).toMatchObject({ principal: 'token:alice' });
  });

  it('a subject that calls itself like a static token is not that token', async () => {
    const { auth } = withJwt();
    expect(await auth.authenticate(post(`Bearer ${await signed({ sub: 'token:alice' })}`))).toMatchObject({ principal: `jwt:${issuer.issuer}#token:alice` });
  });
});

describe('a request is answered with 401', () => {
  it.each([
    ['without the header', undefined],
    ['with an empty header', ''],
    ['with another scheme', `Basic ${btoa(`alice:${token}`)}`],
    ['with the token alone', token],
    ['with no token', 'Bearer '],
    ['with two tokens', `Bearer ${token}, Bearer ${token}`],
    ['with a comma behind the token', `Bearer ${token},`],
    ['with words behind the token', `Bearer ${token} please`],
    ['with an unknown token', `Bearer ${token}x`],
    ['with what looks like a signed token, and no issuer is configured', 'Bearer aaaa.bbbb.cccc'],
  ])('%s', async (_what, authorization) => {
    const { auth, log } = create();
    const response = await refusalOf(auth, post(authorization));
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer error="invalid_token", error_description="[^"]+", scope="leash:read leash:kill"$/);
    const body = await response.text();
    expect(JSON.parse(body)).toMatchObject({ error: 'invalid_token' });
    expect(body + JSON.stringify([...response.headers]) + JSON.stringify(log.lines)).not.toContain(token);
  });

  it('that tells a client where to find the authorization server, when there is one', async () => {
    const response = await refusalOf(withJwt().auth, post());
    expect(extractWWWAuthenticateParams(response)).toMatchObject({ resourceMetadataUrl: new URL('https://leash.example.com/.well-known/oauth-protected-resource/mcp'), scope: 'leash:read leash:kill', error: 'invalid_token' });
  });

  it('for a signed token that is not good, with the reason', async () => {
    const response = await refusalOf(withJwt().auth, post(`Bearer ${await signed({ aud: 'https://other.example.com' })}`));
    expect(response.status).toBe(401);
    expect(response.headers.get('www-authenticate')).toContain('Its claim aud is not what this server asks for');
  });
});

it('a token in the address is answered with 400, also when the header holds a good one', async () => {
  const { auth, log } = create();
  const response = await refusalOf(auth, post(`Bearer ${token}`, `${endpoint}?access_token=${token}`));
  expect(response.status).toBe(400);
  const body = await response.text();
  expect(JSON.parse(body)).toMatchObject({ error: 'invalid_request', error_description: expect.stringContaining('Authorization') });
  expect(body + JSON.stringify(log.lines)).not.toContain(token);
});

it('a signed token whose issuer does not answer is answered with 503, and static tokens go on', async () => {
  const gone = await startIssuer('', key);
  await gone.close();
  const { auth } = create({ jwt: { issuer: gone.issuer, jwks: gone.jwksUrl, audience: undefined } });
  const response = await refusalOf(auth, post(`Bearer ${await signed({ iss: gone.issuer })}`));
  expect(response.status).toBe(503);
  expect(response.headers.get('retry-after')).toBe('5');
  expect(response.headers.get('www-authenticate')).toBeNull();
  expect(await response.json()).toMatchObject({ error: 'temporarily_unavailable' });
  expect(await auth.authenticate(post(`Bearer ${token}`))).toMatchObject({ principal: 'token:alice' });
});

describe('a known bearer who lacks a scope is answered with 403', () => {
  it('that names it', async () => {
    const response = create().auth.refuse('leash:kill');
    expect(response.status).toBe(403);
    expect(response.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", error_description="This takes the scope leash:kill.", scope="leash:kill"');
    expect(await response.json()).toEqual({ error: 'insufficient_scope', error_description: 'This takes the scope leash:kill.' });
  });

  it('and, with an authorization server, where to ask for it', () => {
    expect(extractWWWAuthenticateParams(withJwt().auth.refuse('leash:admin'))).toMatchObject({ resourceMetadataUrl: new URL('https://leash.example.com/.well-known/oauth-protected-resource/mcp'), scope: 'leash:admin', error: 'insufficient_scope' });
  });
});

describe('the protected-resource metadata', () => {
  const get = (auth: Authenticator, path: string, method = 'GET') => auth.metadata(new Request(new URL(path, endpoint), { method }));

  it.each(['/.well-known/oauth-protected-resource', '/.well-known/oauth-protected-resource/mcp', '/.well-known/oauth-protected-resource/mcp/'])('stand at %s', async (path) => {
    const response = get(withJwt().auth, path);
    expect(response?.status).toBe(200);
    expect(response?.headers.get('access-control-allow-origin')).toBe('*');
    expect(await response?.json()).toEqual({ resource: endpoint, authorization_servers: [issuer.issuer], scopes_supported: ['leash:read', 'leash:kill', 'leash:admin'], resource_name: 'mongo-leash' });
  });

  it('are what a client finds that follows the 401', async () => {
    const { auth } = withJwt();
    const fetchFn = async (input: string | URL | Request, init?: RequestInit) => auth.metadata(new Request(input, init)) ?? new Response(null, { status: 404 });
    const { resourceMetadataUrl } = extractWWWAuthenticateParams(await refusalOf(auth, post()));
    for (const from of [{ resourceMetadataUrl }, {}]) {
      expect(await discoverOAuthProtectedResourceMetadata(new URL(endpoint), from, fetchFn)).toMatchObject({ resource: endpoint, authorization_servers: [issuer.issuer] });
    }
  });

  it('stand at the path of the public address too', async () => {
    const { auth } = withJwt({ resource: () => new URL('https://example.com/databases/leash') });
    expect(await get(auth, '/.well-known/oauth-protected-resource/databases/leash')?.json()).toMatchObject({ resource: 'https://example.com/databases/leash' });
    expect((await refusalOf(auth, post())).headers.get('www-authenticate')).toContain('resource_metadata="https://example.com/.well-known/oauth-protected-resource/databases/leash"');
  });

  it('answer a preflight and refuse other methods', () => {
    const { auth } = withJwt();
    expect(get(auth, '/.well-known/oauth-protected-resource', 'OPTIONS')?.status).toBe(204);
    expect(get(auth, '/.well-known/oauth-protected-resource', 'POST')?.status).toBe(405);
  });

  it.each(['/mcp', '/.well-known/oauth-authorization-server', '/.well-known/oauth-protected-resource/other', '/.well-known/oauth-protected-resourcemcp'])('do not stand at %s', (path) => {
    expect(get(withJwt().auth, path)).toBeUndefined();
  });

  it('do not stand anywhere without an authorization server', () => {
    expect(get(create().auth, '/.well-known/oauth-protected-resource')).toBeUndefined();
  });
});
