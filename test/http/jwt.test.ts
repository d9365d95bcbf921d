/** Signed tokens against a real authorization server on this machine: what is accepted, what is not, and what happens while it is away. */
import { SignJWT, base64url, exportSPKI } from 'jose';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { IssuerUnavailable, metadataUrls } from '../../src/http/issuer-keys.js';
import { type JwtSettings, createJwtVerifier } from '../../src/http/jwt.js';
import { createHandClock, createKeptLog } from '../support/hand-clock.js';
import { type SigningKey, type TestIssuer, type TokenOptions, jwksOf, newKey, sign, startIssuer } from '../support/issuer.js';

const resource = new URL('https://leash.example.com/mcp');
let key: SigningKey;
let issuer: TestIssuer;
beforeAll(async () => {
  key = await newKey('first');
  issuer = await startIssuer('', key);
});
afterAll(() => issuer.close());

const claims = (more: Record<string, unknown> = {}) => ({ iss: issuer.issuer, aud: resource.href, sub: 'alice', scope: 'leash:read', ...more });
function verifier(settings: Partial<JwtSettings> = {}) {
  const clock = createHandClock();
  const log = createKeptLog();
  return { clock, log, verify: createJwtVerifier({ issuer: issuer.issuer, jwks: issuer.jwksUrl, audience: undefined, ...settings }, () => resource, { clock, log }) };
}
const tokenOf = (options: TokenOptions & { by?: SigningKey } = {}) => sign(options.by ?? key, { ...options, claims: claims(options.claims) });

describe('a token that is accepted', () => {
  it('names its issuer and its subject as principal', async () => {
    expect(await verifier().verify(await tokenOf())).toEqual({ principal: `jwt:${issuer.issuer}#alice`, scopes: new Set(['leash:read']) });
  });

  it.each([
    ['a text in scope', { scope: 'openid leash:read leash:kill' }, ['leash:read', 'leash:kill']],
    ['a list in scp', { scope: undefined, scp: ['leash:admin', 'profile', 7] }, ['leash:admin']],
    ['a text in scp', { scope: undefined, scp: 'leash:kill other' }, ['leash:kill']],
    ['both', { scope: 'leash:read', scp: ['leash:kill'] }, ['leash:read', 'leash:kill']],
    ['nothing of ours', { scope: 'LEASH:READ leash:readx leash' }, []],
    ['nothing at all', { scope: undefined }, []],
  ])('has its scopes from %s', async (_what, given, expected) => {
    const { scopes } = await verifier().verify(await tokenOf({ claims: given }));
    expect([...scopes]).toEqual(expected);
  });

  it.each(['RS256', 'PS256', 'ES384', 'EdDSA'])('may be signed with %s', async (alg) => {
    const by = await newKey('other', alg);
    expect(await verifier({ jwks: await jwksOf(by) }).verify(await tokenOf({ by }))).toMatchObject({ principal: `jwt:${issuer.issuer}#alice` });
  });

  it.each([
    ['one of several', { aud: ['https://other.example.com/', resource.href] }, undefined],
    ['an audience that was configured', { aud: 'leash-production' }, 'leash-production'],
  ])('may be for %s', async (_what, given, audience) => {
    expect(await verifier({ audience }).verify(await tokenOf({ claims: given }))).toMatchObject({ principal: expect.any(String) });
  });

  it('may be for an address without a path, with and without the slash', async () => {
    const verify = createJwtVerifier({ issuer: issuer.issuer, jwks: issuer.jwksUrl, audience: undefined }, () => new URL('https://leash.example.com'), { clock: createHandClock(), log: createKeptLog() });
    for (const aud of ['https://leash.example.com', 'https://leash.example.com/']) expect(await verify(await tokenOf({ claims: { aud } }))).toMatchObject({ principal: expect.any(String) });
  });

  it.each(['JWT', 'at+jwt', 'application/at+jwt', undefined])('may be of type %s', async (typ) => {
    expect(await verifier().verify(await tokenOf({ header: { typ } }))).toMatchObject({ principal: expect.any(String) });
  });

  it('may have expired a moment ago by our clock', async () => {
    expect(await verifier().verify(await tokenOf({ expiresInSeconds: -2 }))).toMatchObject({ principal: expect.any(String) });
  });
});

describe('a token that is refused', () => {
  const refusals: [string, () => Promise<string>, RegExp][] = [
    ['is expired', () => tokenOf({ expiresInSeconds: -30 }), /expired/],
    ['never expires', () => tokenOf({ expiresInSeconds: null }), /claim exp is missing/],
    ['is not good yet', () => tokenOf({ claims: { nbf: Math.floor(Date.now() / 1_000) + 60 } }), /claim nbf/],
    ['is for someone else', () => tokenOf({ claims: { aud: 'https://other.example.com/mcp' } }), /claim aud is not/],
    ['is for the whole host', () => tokenOf({ claims: { aud: 'https://leash.example.com' } }), /claim aud is not/],
    ['is for nobody', () => tokenOf({ claims: { aud: undefined } }), /claim aud is missing/],
    ['is of another issuer', () => tokenOf({ claims: { iss: `${issuer.issuer}/` } }), /issued by someone else/],
    ['names no issuer', () => tokenOf({ claims: { iss: undefined } }), /issued by someone else/],
    ['names no subject', () => tokenOf({ claims: { sub: undefined } }), /claim sub is missing/],
    ['names an empty subject', () => tokenOf({ claims: { sub: '' } }), /no subject/],
    ['is signed with an unknown key of the same name', async () => tokenOf({ by: await newKey('first') }), /signature/],
    ['names a key that is not there', async () => tokenOf({ by: await newKey('never-published') }), /signature/],
    ['was signed for another use', () => tokenOf({ header: { typ: 'logout+jwt' } }), /no access token/],
    ['is not signed', async () => `${base64url.encode(JSON.stringify({ alg: 'none' }))}.${base64url.encode(JSON.stringify({ ...claims(), exp: 4e9 }))}.`, /signature/],
    ['is signed with the public key as a shared secret', async () => {
      const secret = new TextEncoder().encode(await exportSPKI(key.publicKey));
      return await new SignJWT({ ...claims(), exp: 4e9 }).setProtectedHeader({ alg: 'HS256', kid: key.kid }).sign(secret);
    }, /signature/],
    ['brings its own key', async () => {
      const own = await newKey('own');
      const [jwk] = (await jwksOf(own)).keys;
      return await tokenOf({ by: own, header: { jwk } });
    }, /signature/],
    ['was changed', async () => {
      const [head = '', , signature = ''] = (await tokenOf()).split('.');
      return [head, base64url.encode(JSON.stringify({ ...claims({ scope: 'leash:admin' }), exp: 4e9 })), signature].join('.');
    }, /signature/],
    ['is not JSON', async () => 'aaaa.bbbb.cccc', /signature/],
  ];
  it.each(refusals)('%s', async (_what, make, why) => {
    const error = await verifier().verify(await make()).then(() => { throw new Error('it was accepted'); }, (reason: unknown) => reason);
    expect(error).toMatchObject({ code: 'invalid_token', message: expect.stringMatching(why) });
  });

  it('of another issuer, or with an algorithm of its own choice, makes nobody ask for keys', async () => {
    const away = await startIssuer('', key);
    const { verify } = verifier({ issuer: away.issuer, jwks: away.jwksUrl });
    await expect(verify(await tokenOf())).rejects.toMatchObject({ code: 'invalid_token' });
    await expect(verify(await new SignJWT({ ...claims({ iss: away.issuer }), exp: 4e9 }).setProtectedHeader({ alg: 'HS256' }).sign(new Uint8Array(32)))).rejects.toMatchObject({ code: 'invalid_token' });
    expect(away.asked).toEqual([]);
    await away.close();
  });
});

describe('the keys', () => {
  it('are asked for once, whoever asks at once', async () => {
    const own = await startIssuer('', key);
    const { verify } = verifier({ issuer: own.issuer, jwks: undefined });
    const token = await tokenOf({ claims: { iss: own.issuer } });
    await Promise.all(Array.from({ length: 20 }, () => verify(token)));
    expect(own.asked).toEqual(['/.well-known/oauth-authorization-server', '/keys']);
    await own.close();
  });

  it('are asked for again when a token names one that was published since, and an unknown one does not ask each time', async () => {
    const own = await startIssuer('', key);
    const rotated = await newKey('second');
    const { verify } = verifier({ issuer: own.issuer, jwks: own.jwksUrl });
    const iss = own.issuer;
    const now = Date.now();
    await verify(await tokenOf({ claims: { iss } }));
    await own.publish(rotated);
    const unknown = await tokenOf({ by: await newKey('third'), claims: { iss } });
    for (let i = 0; i < 5; i++) await expect(verify(unknown)).rejects.toMatchObject({ code: 'invalid_token' });
    expect(own.asked).toHaveLength(1);
    // jose reads the wall clock for the time that must pass between two questions.
    vi.spyOn(Date, 'now').mockReturnValue(now + 31_000);
    try {
      expect(await verify(await tokenOf({ by: rotated, claims: { iss } }))).toMatchObject({ principal: expect.any(String) });
      await expect(verify(await tokenOf({ claims: { iss } }))).rejects.toMatchObject({ code: 'invalid_token' });
    } finally {
      vi.restoreAllMocks();
    }
    expect(own.asked).toHaveLength(2);
    await own.close();
  });

  it('of a symmetric kind are of no use, even when the issuer publishes them', async () => {
    const k = base64url.encode(new Uint8Array(32).fill(7));
    const { verify } = verifier({ jwks: { keys: [{ kty: 'oct', k, kid: 'shared', alg: 'HS256' }] } });
    const token = await new SignJWT({ ...claims(), exp: 4e9 }).setProtectedHeader({ alg: 'HS256', kid: 'shared' }).sign(base64url.decode(k));
    await expect(verify(token)).rejects.toMatchObject({ code: 'invalid_token' });
  });
});

describe('an issuer that does not answer', () => {
  it('leaves its tokens undecided, is told to the log once, is not asked again at once, and is used when it is back', async () => {
    const own = await startIssuer('', key);
    const { verify, clock, log } = verifier({ issuer: own.issuer, jwks: undefined });
    const token = await tokenOf({ claims: { iss: own.issuer } });
    own.status = 500;
    for (let i = 0; i < 3; i++) await expect(verify(token)).rejects.toBeInstanceOf(IssuerUnavailable);
    const askedFirst = own.asked.length;
    expect(askedFirst).toBe(2);
    clock.pass(5_001);
    await expect(verify(token)).rejects.toBeInstanceOf(IssuerUnavailable);
    expect(own.asked.length).toBe(2 * askedFirst);
    own.status = 200;
    clock.pass(5_001);
    expect(await verify(token)).toMatchObject({ principal: `jwt:${own.issuer}#alice` });
    expect(log.lines.map(({ level, message }) => [level, message.split(':')[0]])).toEqual([
      ['warn', 'the keys of the authorization server cannot be had'],
      ['info', 'the authorization server answers again'],
    ]);
    expect(JSON.stringify(log.lines)).not.toContain(token);
    await own.close();
  });

  it('whose port is closed is the same, with the reason in the log', async () => {
    const gone = await startIssuer('', key);
    await gone.close();
    const { verify, log } = verifier({ issuer: gone.issuer, jwks: gone.jwksUrl });
    await expect(verify(await tokenOf({ claims: { iss: gone.issuer } }))).rejects.toBeInstanceOf(IssuerUnavailable);
    expect(log.lines).toMatchObject([{ level: 'warn', fields: { error: expect.stringContaining('ECONNREFUSED') } }]);
  });

  it('does not take the keys away that are known', async () => {
    const own = await startIssuer('', key);
    const { verify } = verifier({ issuer: own.issuer, jwks: own.jwksUrl });
    const token = await tokenOf({ claims: { iss: own.issuer } });
    await verify(token);
    await own.close();
    expect(await verify(token)).toMatchObject({ principal: `jwt:${own.issuer}#alice` });
  });

  it.each(['no JSON', { keys: 'none' }, { something: 'else' }])('or answers with %j instead of keys', async (document) => {
    const own = await startIssuer('', key);
    own.answers.set('/keys', document);
    const { verify } = verifier({ issuer: own.issuer, jwks: own.jwksUrl });
    await expect(verify(await tokenOf({ claims: { iss: own.issuer } }))).rejects.toBeInstanceOf(IssuerUnavailable);
    await own.close();
  });
});

describe("the issuer's metadata", () => {
  it.each([
    ['https://auth.example.com', ['https://auth.example.com/.well-known/oauth-authorization-server', 'https://auth.example.com/.well-known/openid-configuration']],
    ['https://auth.example.com/', ['https://auth.example.com/.well-known/oauth-authorization-server', 'https://auth.example.com/.well-known/openid-configuration']],
    ['https://auth.example.com/a/b', ['https://auth.example.com/.well-known/oauth-authorization-server/a/b', 'https://auth.example.com/.well-known/openid-configuration/a/b', 'https://auth.example.com/a/b/.well-known/openid-configuration']],
  ])('of %s are looked for in their places', (given, expected) => {
    expect(metadataUrls(given)).toEqual(expected);
  });

  it.each(['/.well-known/oauth-authorization-server/tenant', '/.well-known/openid-configuration/tenant', '/tenant/.well-known/openid-configuration'])('are found at %s', async (place) => {
    const own = await startIssuer('/tenant', key);
    own.answers.delete('/.well-known/oauth-authorization-server/tenant');
    own.answers.set(place, { issuer: own.issuer, jwks_uri: own.jwksUrl.href });
    const { verify } = verifier({ issuer: own.issuer, jwks: undefined });
    expect(await verify(await tokenOf({ claims: { iss: own.issuer } }))).toMatchObject({ principal: `jwt:${own.issuer}#alice` });
    await own.close();
  });

  it.each([
    ['of another issuer', (own: TestIssuer) => ({ issuer: `${own.issuer}/`, jwks_uri: own.jwksUrl.href }), /its issuer is/],
    ['without keys', (own: TestIssuer) => ({ issuer: own.issuer }), /no metadata with issuer and jwks_uri/],
    ['with keys in a file', (own: TestIssuer) => ({ issuer: own.issuer, jwks_uri: 'file:///etc/passwd' }), /no metadata with issuer and jwks_uri/],
    ['that are no JSON', () => 'hello', /no metadata with issuer and jwks_uri/],
  ])('%s are not used, and the log says why', async (_what, document, why) => {
    const own = await startIssuer('', key);
    own.answers.set('/.well-known/oauth-authorization-server', document(own));
    const { verify, log } = verifier({ issuer: own.issuer, jwks: undefined });
    await expect(verify(await tokenOf({ claims: { iss: own.issuer } }))).rejects.toBeInstanceOf(IssuerUnavailable);
    expect(log.lines).toMatchObject([{ level: 'warn', fields: { error: expect.stringMatching(why) } }]);
    expect(own.asked).not.toContain('/keys');
    await own.close();
  });

  it.each(['http://auth.example.com/keys', 'https://auth.example.com/keys'])('of a secure issuer may name %s only if it is secure too', async (jwksUri) => {
    const asked: string[] = [];
    vi.stubGlobal('fetch', async (url: string) => {
      asked.push(url);
      return Response.json({ issuer: 'https://auth.example.com', jwks_uri: jwksUri, keys: [] });
    });
    try {
      await expect(verifier({ issuer: 'https://auth.example.com', jwks: undefined }).verify(await tokenOf({ claims: { iss: 'https://auth.example.com' } }))).rejects.toThrow();
      expect(asked.includes(jwksUri)).toBe(jwksUri.startsWith('https:'));
    } finally {
      vi.unstubAllGlobals();
    }
  });

  it('are not looked for where a redirect leads', async () => {
    const own = await startIssuer('', key);
    const away = await startIssuer('', key);
    own.redirectTo = away.jwksUrl.href;
    for (const jwks of [own.jwksUrl, undefined]) {
      await expect(verifier({ issuer: own.issuer, jwks }).verify(await tokenOf({ claims: { iss: own.issuer } }))).rejects.toBeInstanceOf(IssuerUnavailable);
    }
    expect(away.asked).toEqual([]);
    await Promise.all([own.close(), away.close()]);
  });
});
