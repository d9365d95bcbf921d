/** What stops the start of the HTTP server, what it is warned of, and under which names it may be called. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ConfigError, loadConfig } from '../../src/config/load.js';
import type { Config } from '../../src/config/options.js';
import { checkExposure, isLoopback } from '../../src/http/exposure.js';
import { createCertificate } from '../support/certificate.js';
import { jwksOf, newKey } from '../support/issuer.js';

const tokens = 'alice leash:read tok-0123456789abcdef';
let folder: string;
const file = (name: string, text: string, mode = 0o600) => {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
};
beforeAll(() => { folder = mkdtempSync(join(tmpdir(), 'mongo-leash-exposure-')); });
afterAll(() => { rmSync(folder, { recursive: true, force: true }); });

const check = (given: Partial<Config> = {}) => checkExposure({ ...loadConfig({ http: true }, {}).config, ...given });

describe('an address', () => {
  it.each(['127.0.0.1', '127.255.0.9', '::1', '0:0:0:0:0:0:0:1', 'localhost', 'LocalHost', '::ffff:127.0.0.1'])('%s is this machine only', (host) => {
    expect(isLoopback(host)).toBe(true);
    expect(check({ host }).warnings).toEqual([]);
  });

  it.each(['0.0.0.0', '::', '10.0.0.1', '128.0.0.1', '192.168.1.2', 'fe80::1', '::ffff:10.0.0.1', 'leash.example.com', 'localhost.example.com', 'ip6-localhost', '127.0.0.1.example.com', '127.1'])('%s is the network: no start without authentication', (host) => {
    expect(isLoopback(host)).toBe(false);
    expect(() => check({ host })).toThrow(ConfigError);
    expect(() => check({ host })).toThrow(/--host .*(MONGO_LEASH_TOKENS|--tokens-file|--jwt-issuer).*--unauthenticated-access-from-the-network/);
    expect(check({ host, unauthenticatedAccessFromTheNetwork: true }).warnings).toEqual([expect.stringMatching(/without authentication: whoever reaches it reads the database/)]);
  });

  it('that others know by a public URL is the network too', () => {
    expect(() => check({ publicUrl: 'https://leash.example.com/mcp' })).toThrow(/--public-url https:\/\/leash\.example\.com\/mcp.*--unauthenticated-access/);
    expect(check({ publicUrl: 'https://leash.example.com/mcp', tokens }).warnings).toEqual([]);
    expect(check({ publicUrl: 'http://[::1]:3777/mcp' }).warnings).toEqual([]);
  });

  it.each([
    ['static tokens', { tokens }],
    ['an issuer', { jwtIssuer: 'https://auth.example.com', publicUrl: 'http://leash.example.com/mcp' }],
  ] as [string, Partial<Config>][])('of the network starts with %s, and plain HTTP is warned of', (_what, given) => {
    expect(check({ host: '0.0.0.0', ...given }).warnings).toEqual([expect.stringMatching(/plain HTTP.*--tls-cert.*--public-url https/)]);
  });

  it('of the network with TLS, here or in front, is not warned of', () => {
    const { cert, key } = createCertificate();
    expect(check({ host: '0.0.0.0', tokens, tlsCert: file('cert.pem', cert), tlsKey: file('key.pem', key) }).warnings).toEqual([]);
    expect(check({ host: '0.0.0.0', tokens, publicUrl: 'https://leash.example.com/mcp' }).warnings).toEqual([]);
  });
});

describe('tokens', () => {
  it('come from the variable and the file together', () => {
    const tokensFile = file('tokens', '# bots\nbob leash:admin tok-fedcba9876543210\n');
    expect(check({ tokens: `${tokens}; carol leash:read tok-aaaaaaaaaaaaaaaa`, tokensFile }).tokens.map(({ name }) => name)).toEqual(['alice', 'carol', 'bob']);
  });

  it.each<[string, Partial<Config>]>([
    ['MONGO_LEASH_TOKENS', { tokens: 'alice leash:everything tok-0123456789abcdef' }],
    ['MONGO_LEASH_TOKENS holds no token', { tokens: ' ; # none' }],
    ['--tokens-file: /no/such/file cannot be read (ENOENT)', { tokensFile: '/no/such/file' }],
    [`--tokens-file: ${tmpdir()} cannot be read (EISDIR)`, { tokensFile: tmpdir() }],
  ])('stop the start with %s', (message, given) => {
    expect(() => check(given)).toThrow(ConfigError);
    expect(() => check(given)).toThrow(message);
    expect(() => check(given)).not.toThrow('tok-0123');
  });

  it.runIf(process.platform !== 'win32')('in a file that every user can read are warned of', () => {
    expect(check({ tokensFile: file('open', tokens, 0o644) }).warnings).toEqual([expect.stringMatching(/--tokens-file can be read by every user/)]);
    expect(check({ tokensFile: file('closed', tokens, 0o640) }).warnings).toEqual([]);
  });
});

describe('signed tokens', () => {
  it('are checked against a URL, a file, or what the issuer says', async () => {
    const jwks = await jwksOf(await newKey('first'));
    const jwtIssuer = 'https://auth.example.com';
    expect(check({ jwtIssuer }).jwt).toEqual({ issuer: jwtIssuer, jwks: undefined, audience: undefined });
    expect(check({ jwtIssuer, jwtJwks: 'https://auth.example.com/keys', jwtAudience: 'leash' }).jwt).toEqual({ issuer: jwtIssuer, jwks: new URL('https://auth.example.com/keys'), audience: 'leash' });
    expect(check({ jwtIssuer, jwtJwks: file('jwks.json', JSON.stringify(jwks)) }).jwt?.jwks).toEqual(jwks);
  });

  it.each<[string, Partial<Config>]>([
    ['--jwt-jwks says how tokens are checked, and --jwt-issuer', { jwtJwks: 'https://auth.example.com/keys' }],
    ['--jwt-audience says how tokens are checked, and --jwt-issuer', { jwtAudience: 'leash' }],
    ['--jwt-jwks: /no/such/file cannot be read (ENOENT)', { jwtIssuer: 'https://auth.example.com', jwtJwks: '/no/such/file' }],
    ['--jwt-issuer with --host 0.0.0.0 needs --public-url', { jwtIssuer: 'https://auth.example.com', host: '0.0.0.0' }],
  ])('stop the start with %s', (message, given) => {
    expect(() => check(given)).toThrow(ConfigError);
    expect(() => check(given)).toThrow(message);
  });

  it.each(['no JSON', '{}', '[]', 'null', '{"keys": {}}'])('stop the start with a file of keys that holds %s', (text) => {
    expect(() => check({ jwtIssuer: 'https://auth.example.com', jwtJwks: file('bad.json', text) })).toThrow(/^--jwt-jwks: the file is no JSON Web Key Set/);
  });
});

describe('TLS', () => {
  it('takes a certificate and its key', () => {
    const { cert, key } = createCertificate();
    expect(check({ tlsCert: file('cert.pem', cert), tlsKey: file('key.pem', key) }).tls).toEqual({ cert, key });
    expect(check().tls).toBeUndefined();
  });

  it('refuses one without the other, what cannot be read, and two that do not belong together', () => {
    const [one, two] = [createCertificate(), createCertificate()];
    const tlsCert = file('cert.pem', one.cert);
    expect(() => check({ tlsCert })).toThrow('--tls-cert is given without --tls-key.');
    expect(() => check({ tlsKey: tlsCert })).toThrow('--tls-key is given without --tls-cert.');
    expect(() => check({ tlsCert, tlsKey: '/no/such/file' })).toThrow('--tls-key: /no/such/file cannot be read (ENOENT).');
    expect(() => check({ tlsCert, tlsKey: file('other.pem', two.key) })).toThrow(/^--tls-cert and --tls-key cannot be used together: .*mismatch/);
    expect(() => check({ tlsCert: file('no.pem', 'hello'), tlsKey: file('key.pem', one.key) })).toThrow(/^--tls-cert and --tls-key cannot be used together/);
  });
});

describe('the address of the endpoint', () => {
  it.each<[Partial<Config>, string]>([
    [{}, 'http://127.0.0.1:4000/mcp'],
    [{ host: '::1' }, 'http://[::1]:4000/mcp'],
    [{ host: '0.0.0.0', tokens }, 'http://localhost:4000/mcp'],
    [{ publicUrl: 'https://leash.example.com/db/mcp', tokens }, 'https://leash.example.com/db/mcp'],
  ])('with %j is %s', (given, url) => {
    expect(check(given).resource(4_000).href).toBe(url);
  });
});

describe('the names that a request may carry', () => {
  const own = ['localhost', '127.0.0.1', '[::1]'];
  it.each<[Partial<Config>, string[], string[]]>([
    [{}, [], []],
    [{ host: '10.1.2.3', tokens }, ['10.1.2.3'], ['10.1.2.3']],
    [{ host: 'FE80:0:0::1', tokens }, ['[fe80::1]'], ['[fe80::1]']],
    [{ host: '::', tokens }, [], []],
    [{ host: '0:0::0', tokens }, [], []],
    [{ publicUrl: 'https://Leash.Example.com:8443/mcp', tokens }, ['leash.example.com'], ['leash.example.com']],
    [{ allowedHosts: ['DB.internal', '::2'], allowedOrigins: ['app.example.com'] }, ['db.internal', '[::2]'], ['app.example.com']],
  ])('with %j are this machine and %j, and pages of it and of %j', (given, hosts, origins) => {
    const { allowed } = check(given);
    expect(new Set(allowed.hosts)).toEqual(new Set([...own, ...hosts]));
    expect(new Set(allowed.origins)).toEqual(new Set([...own, ...origins]));
  });
});
