/** HTTPS, over the real program: with the certificate trusted everything works, without TLS nothing does, and a wrong pair does not start. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport, discoverOAuthProtectedResourceMetadata, extractWWWAuthenticateParams } from '@modelcontextprotocol/client';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createCertificate } from '../support/certificate.js';
import { createCli } from '../support/cli.js';
import { type HttpTestServer, startHttpServer } from '../support/http-server.js';
import { newKey, startIssuer } from '../support/issuer.js';
import { eventually } from '../support/mongo.js';

const pair = createCertificate();
const other = createCertificate();
const folder = mkdtempSync(join(tmpdir(), 'mongo-leash-tls-'));
const file = (name: string, text: string) => {
  const path = join(folder, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
};
const certFile = file('cert.pem', pair.cert);
const keyFile = file('key.pem', pair.key);
afterAll(() => { rmSync(folder, { recursive: true }); });

const token = 'tok-0123456789abcdef';
const info = { name: 'test', version: '1.0.0' };
const init = { requestInit: { headers: { Authorization: `Bearer ${token}` } } };

/** What a client does whose user has named the authority (NODE_EXTRA_CA_CERTS). */
const fetchTrusting = (ca: string) => (input: string | URL, { method, headers, body, signal }: RequestInit = {}) => new Promise<Response>((resolve, reject) => {
  const options = { method: method ?? 'GET', ca, agent: false as const, headers: Object.fromEntries(new Headers(headers)), ...(signal ? { signal } : {}) };
  const outgoing = request(input, options, (incoming) => {
    resolve(new Response(incoming.statusCode === 204 ? null : (Readable.toWeb(incoming) as ReadableStream), { status: incoming.statusCode ?? 0, headers: incoming.headers as Record<string, string> }));
  });
  outgoing.on('error', reject).end(body);
});

describe('a server with a certificate', () => {
  let server: HttpTestServer;
  beforeAll(async () => { server = await startHttpServer({ args: ['--tls-cert', certFile, '--tls-key', keyFile, '--receive-ms', '1000'], env: { MONGO_LEASH_TOKENS: `alice leash:kill ${token}` } }); });
  afterAll(() => server.stop());

  it('serves clients of both eras that trust it, by its name and its address', async () => {
    for (const host of ['localhost', '127.0.0.1']) {
      const url = new URL(`https://${host}:${server.url.port}/mcp`);
      const options = { ...init, fetch: fetchTrusting(pair.cert) };
      const old = new LegacyClient(info);
      await old.connect(new LegacyTransport(url, options));
      const young = new ModernClient(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
      await young.connect(new ModernTransport(url, options));
      for (const client of [old, young]) {
        expect((await client.callTool({ name: 'status', arguments: { id: '0000000000' } })).structuredContent).toHaveProperty('error');
        await client.close();
      }
    }
  });

  it('says https in its address', () => {
    expect(server.url.protocol).toBe('https:');
  });

  it('is not trusted by others', async () => {
    await expect(fetchTrusting(other.cert)(server.url)).rejects.toThrow(/self.signed|unable to verify/);
  });

  it('answers nothing to plain HTTP, and goes on', async () => {
    await expect(fetch(`http://127.0.0.1:${server.url.port}/healthz`)).rejects.toThrow('fetch failed');
    expect((await fetchTrusting(pair.cert)(server.at('/healthz'))).status).toBe(200);
    expect(server.stderr.filter((line) => /"level":[56]0/.test(line))).toEqual([]);
  });

  it('does not wait for ever for a handshake', async () => {
    const startedAt = performance.now();
    const socket = connect(Number(server.url.port), '127.0.0.1');
    let isClosed = false;
    socket.on('error', () => undefined).on('close', () => { isClosed = true; }).resume();
    await eventually('the server closes the connection', () => isClosed);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });

  it('leads from a 401 to its metadata by https', async () => {
    const issuer = await startIssuer('', await newKey('first'));
    const guarded = await startHttpServer({ args: ['--tls-cert', certFile, '--tls-key', keyFile, '--jwt-issuer', issuer.issuer] });
    const fetchFn = fetchTrusting(pair.cert);
    const refused = await fetchFn(guarded.url, { method: 'POST', body: '{}' });
    expect(refused.status).toBe(401);
    const { resourceMetadataUrl } = extractWWWAuthenticateParams(refused);
    expect(resourceMetadataUrl?.href).toBe(guarded.at('/.well-known/oauth-protected-resource/mcp').href);
    expect(await discoverOAuthProtectedResourceMetadata(guarded.url, { resourceMetadataUrl }, fetchFn)).toMatchObject({ resource: guarded.url.href, authorization_servers: [issuer.issuer] });
    await guarded.stop();
    await issuer.close();
  });
});

describe('a server does not start', () => {
  const cli = createCli();
  afterAll(() => { cli.end(); });
  const start = (...args: string[]) => cli.run(['serve', '--http', '--port', '0', ...args]);

  it.each([
    ['with the key of another certificate', ['--tls-cert', certFile, '--tls-key', file('other.pem', other.key)], /--tls-cert and --tls-key cannot be used together/],
    ['with the files taken for each other', ['--tls-cert', keyFile, '--tls-key', certFile], /--tls-cert and --tls-key cannot be used together/],
    ['without the key', ['--tls-cert', certFile], /--tls-cert is given without --tls-key/],
    ['with a file that is not there', ['--tls-cert', join(folder, 'missing.pem'), '--tls-key', keyFile], /--tls-cert: .*missing\.pem cannot be read \(ENOENT\)/],
  ])('%s', async (_what, args, says) => {
    const { code, stdout, stderr } = await start(...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(says);
    expect(stderr).not.toContain('PRIVATE KEY');
  });
});
