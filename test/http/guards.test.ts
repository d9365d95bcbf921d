/** The first guards, over the real program: by which name it may be called, from which page, with which method, at which path (case D25). */
import { networkInterfaces } from 'node:os';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { productTools } from '../../src/mcp/tools/all.js';
import { createCli } from '../support/cli.js';
import { type HttpTestServer, ask, connectLegacy, connectModern, modernRequest, startHttpServer } from '../support/http-server.js';
import { toolCall } from '../support/http-sessions.js';
import { eventually } from '../support/mongo.js';
import { openStream } from '../support/raw-stream.js';

const initialize = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'page', version: '1.0.0' } } });
const json = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };

async function send(url: URL, method: string, headers: Record<string, string> = {}, body?: string) {
  const stream = openStream(url, { method, headers: { ...json, ...headers }, ...(body === undefined ? {} : { body }) });
  const { status, headers: answered } = await stream.response;
  await stream.over;
  return { status, headers: answered, text: stream.text() };
}

const hasIpv6 = Object.values(networkInterfaces()).flat().some((each) => each?.address === '::1');

/** What the server says in the log of sessions and of calls of tools. */
const worked = ({ stderr }: HttpTestServer) => stderr.filter((line) => /"msg":"(session began|call)"/.test(line));

describe('a server on this machine', () => {
  let server: HttpTestServer;
  beforeAll(async () => { server = await startHttpServer({ args: ['--log-level', 'debug'] }); });
  afterAll(() => server.stop());

  const modern = (headers: Record<string, string>) => {
    const { body, headers: own } = modernRequest(1, 'tools/call', { name: 'operations', arguments: {} });
    return send(server.url, 'POST', { ...(own as Record<string, string>), ...headers }, body as string);
  };

  it.each([
    ['sent to attacker.com', { Host: 'attacker.com' }],
    ['sent to attacker.com with the port', { Host: 'attacker.com:3777' }],
    ['sent to a name that ends like ours', { Host: 'localhost.attacker.com' }],
    ['sent to an address of the network', { Host: '10.0.0.1' }],
    ['from a page of attacker.com', { Origin: 'http://attacker.com' }],
    ['from a page of attacker.com, sent to localhost', { Origin: 'https://attacker.com', Host: 'localhost' }],
    ['from a page without a name', { Origin: 'null' }],
  ])('answers a request %s with 403, before any code of a tool (D25)', async (_what, headers) => {
    const before = worked(server).length;
    const begun = await send(server.url, 'POST', headers, initialize);
    expect(begun.status).toBe(403);
    expect(begun.headers).not.toHaveProperty('mcp-session-id');
    expect(begun.headers).not.toHaveProperty('access-control-allow-origin');
    expect(JSON.parse(begun.text)).toEqual({ jsonrpc: '2.0', id: null, error: { code: -32_000, message: expect.stringMatching(/^Invalid (Host|Origin).*--allowed-(hosts|origins)\.$/) } });
    expect((await modern(headers)).status).toBe(403);
    expect((await send(server.url, 'POST', headers, JSON.stringify(toolCall(1, 'operations')))).status).toBe(403);
    // What came after them is in the log, so what they had done would be there too.
    expect((await modern({})).status).toBe(200);
    await eventually('the log has the call that was let in', () => worked(server).length > before);
    expect(worked(server)).toHaveLength(before + 1);
  });

  it.each([
    ['without Origin', () => ({})],
    ['sent to localhost and the port', () => ({ Host: `localhost:${server.url.port}` })],
    ['sent to LOCALHOST', () => ({ Host: 'LOCALHOST' })],
    ['sent to 127.0.0.1 and the port', () => ({ Host: `127.0.0.1:${server.url.port}` })],
    ['sent to [::1]', () => ({ Host: '[::1]:3777' })],
    ['from a page of this machine', () => ({ Origin: 'http://localhost:5173' })],
  ])('serves one %s (D25)', async (_what, headers) => {
    const begun = await send(server.url, 'POST', headers(), initialize);
    expect(begun.status).toBe(200);
    expect(begun.headers['mcp-session-id']).toMatch(/^[0-9a-f-]{36}$/);
    expect((await modern(headers())).status).toBe(200);
  });

  it('says whether it lives and is ready to whoever asks by any name, and nothing else', async () => {
    expect(await send(server.at('/healthz'), 'GET', { Host: '10.0.0.1:8080' })).toMatchObject({ status: 200, text: '{"alive":true}' });
    // It has no connection string.
    expect(await send(server.at('/readyz'), 'GET', { Host: '10.0.0.1:8080' })).toMatchObject({ status: 503 });
  });

  it.each(['/', '/mcp/', '/mcp2', '/sse', '/.well-known/oauth-protected-resource', '/__proto__', '/%zz', '//mcp', '/healthz/x'])('has nothing at %s', async (path) => {
    expect(await send(new URL(`${server.url.origin}${path}`), 'POST', {}, initialize)).toMatchObject({ status: 404 });
  });

  it.each(['PUT', 'PATCH', 'HEAD', 'PROPFIND'])('knows no method %s, and says which it knows', async (method) => {
    const refused = await send(server.url, method);
    expect(refused).toMatchObject({ status: 405, headers: { allow: 'GET, POST, DELETE, OPTIONS' } });
    if (method !== 'HEAD') expect(JSON.parse(refused.text)).toMatchObject({ id: null, error: { message: `${method} means nothing here.` } });
  });

  it.each([
    ['of the method TRACE', { method: 'TRACE' }],
    ['with a Host that is no name', { method: 'GET', headers: { Host: 'a b' } }],
    ['with a user in its Host', { method: 'GET', headers: { Host: 'attacker.com@localhost' } }],
  ])('takes a request %s for a fault of its sender', async (_what, { method, headers }: { method: string; headers?: Record<string, string> }) => {
    expect(await send(server.url, method, headers)).toMatchObject({ status: 400 });
    expect(server.stderr.filter((line) => line.includes('unexpected error'))).toEqual([]);
  });

  it('leaves it to the client whether the connection stays', async () => {
    expect((await send(server.url, 'POST', { Connection: 'close' }, initialize)).headers.connection).toBe('close');
    expect((await send(server.url, 'POST', { Connection: 'keep-alive' }, initialize)).headers.connection).toBe('keep-alive');
  });

  it.each([
    ['null', 'null', -32_600],
    ['[]', '[]', -32_600],
    ['42', '42', -32_600],
    ['a text', '"text"', -32_600],
    ['[null]', '[null]', -32_600],
    ['{}', '{}', -32_600],
    ['a message with params null', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}', -32_600],
    ['100,000 arrays in each other', `${'['.repeat(100_000)}${']'.repeat(100_000)}`, -32_600],
    ['JSON that breaks off', '{"jsonrpc":', -32_700],
    ['a zero byte', '\u0000', -32_700],
    ['nothing', '', -32_000],
  ])('answers a body that is %s with 400', async (_what, body, code) => {
    const answered = await send(server.url, 'POST', {}, body);
    expect(answered.status).toBe(400);
    expect(JSON.parse(answered.text)).toMatchObject({ jsonrpc: '2.0', error: { code } });
  });

  it.each(['__proto__', 'constructor', 'toString', 'hasOwnProperty'])('has neither a tool nor a method %s, in either era', async (name) => {
    const old = await connectLegacy(server.url);
    const young = await connectModern(server.url);
    await expect(old.request(name)).rejects.toMatchObject({ code: -32_601 });
    // The 2.x client refuses to send such a method.
    expect(await ask(server.url, modernRequest(1, name))).toMatchObject({ id: 1, error: { code: -32_601 } });
    for (const client of [old, young]) {
      expect(await client.call(name)).toMatchObject({ error: { code: 'bad_argument', message: `There is no tool "${name}". There are ${productTools.map((tool) => tool.name).join(', ')}.` } });
      await client.close();
    }
  });

  it('a name of a tool that is no text, however it is made, is refused as such', async () => {
    for (const name of [{ toString: 1 }, { toString: null, valueOf: null }, null, 7, ['kill']]) {
      const { body, ...init } = modernRequest(1, 'tools/call', { arguments: {} }, { name: 'kill' });
      const message = JSON.parse(body as string);
      message.params.name = name;
      expect((await ask(server.url, { ...init, body: JSON.stringify(message) })).error.code, JSON.stringify(name)).toBeLessThan(-32_000);
    }
    expect(server.stderr.filter((line) => line.includes('unexpected error'))).toEqual([]);
  });

  it('arguments with names of the prototype change nothing for others', async () => {
    const call = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"status","arguments":{"__proto__":{"isError":true},"constructor":{"prototype":{"polluted":1}}}}}';
    const client = await connectLegacy(server.url);
    await send(server.url, 'POST', { 'Mcp-Session-Id': client.sessionId() ?? '', 'MCP-Protocol-Version': '2025-11-25' }, call);
    expect(await client.call('status')).toMatchObject({ error: { code: 'bad_argument' } });
    expect(JSON.stringify(await client.request('tools/list'))).not.toContain('polluted');
    await client.close();
  });
});

describe('a server with names of its own', () => {
  it.skipIf(!hasIpv6).each([{ address: '::1' }, { address: '0:0:0:0:0:0:0:1' }])('on the IPv6 address $address is called by it, with the port, in both eras', async ({ address }) => {
    const server = await startHttpServer({ args: ['--host', address] });
    const url = new URL(`http://[::1]:${server.url.port}/mcp`);
    const old = await connectLegacy(url);
    const young = await connectModern(url);
    expect(old.version).toBe('2025-11-25');
    expect(young.version).toBe('2026-07-28');
    await Promise.all([old.close(), young.close()]);
    expect(await send(url, 'POST', { Host: '[::2]' }, initialize)).toMatchObject({ status: 403 });
    await server.stop();
  });

  it('takes --allowed-hosts and --allowed-origins, and tells the pages from them what browsers ask', async () => {
    const server = await startHttpServer({ args: ['--allowed-hosts', 'Leash.example.com,other.example.com', '--allowed-origins', 'app.example.com'] });
    const origin = 'https://app.example.com:8443';
    for (const host of ['leash.example.com', `leash.example.com:${server.url.port}`, 'other.example.com']) expect(await send(server.url, 'POST', { Host: host }, initialize)).toMatchObject({ status: 200 });
    expect(await send(server.url, 'POST', { Host: 'app.example.com' }, initialize)).toMatchObject({ status: 403 });
    expect(await send(server.url, 'POST', { Origin: 'https://leash.example.com' }, initialize)).toMatchObject({ status: 403 });

    const preflight = await send(server.url, 'OPTIONS', { Origin: origin, 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization,content-type,mcp-session-id' });
    expect(preflight).toMatchObject({ status: 204, text: '', headers: { 'access-control-allow-origin': origin, 'access-control-allow-methods': 'GET, POST, DELETE', vary: 'Origin' } });
    expect(preflight.headers['access-control-allow-headers']?.toLowerCase().split(', ')).toEqual(expect.arrayContaining(['authorization', 'content-type', 'mcp-session-id', 'mcp-protocol-version', 'mcp-method', 'mcp-name', 'last-event-id']));
    expect(preflight.headers).not.toHaveProperty('access-control-allow-credentials');
    const begun = await send(server.url, 'POST', { Origin: origin }, initialize);
    expect(begun).toMatchObject({ status: 200, headers: { 'access-control-allow-origin': origin } });
    expect(begun.headers['access-control-expose-headers']).toContain('Mcp-Session-Id');

    const stranger = await send(server.url, 'OPTIONS', { Origin: 'https://attacker.com', 'Access-Control-Request-Method': 'POST' });
    expect(stranger.status).toBe(403);
    expect(Object.keys(stranger.headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    await server.stop();
  });
});

describe('a server that others reach', () => {
  it('does not start without authentication, and names the options (D25)', async () => {
    const cli = createCli();
    for (const host of ['0.0.0.0', '::']) {
      const { code, stdout, stderr } = await cli.run(['serve', '--http', '--port', '0', '--host', host]);
      expect(code).toBe(2);
      expect(stdout).toBe('');
      expect(stderr).toMatch(new RegExp(`^mongo-leash: --host ${host.replaceAll('.', '\\.')} is reached by other machines, .* --unauthenticated-access-from-the-network\\.\n$`));
      for (const option of ['MONGO_LEASH_TOKENS', '--tokens-file', '--jwt-issuer']) expect(stderr).toContain(option);
    }
    cli.end();
  });

  it('starts when it is told so in so many words, warns of it, and still checks Host and Origin', async () => {
    const server = await startHttpServer({ args: ['--host', '0.0.0.0', '--unauthenticated-access-from-the-network'] });
    const url = new URL(`http://127.0.0.1:${server.url.port}/mcp`);
    expect(server.stderr.some((line) => JSON.parse(line).level === 40 && line.includes('without authentication: whoever reaches it reads the database'))).toBe(true);
    expect(await send(url, 'POST', {}, initialize)).toMatchObject({ status: 200 });
    expect(await send(url, 'POST', { Host: 'attacker.com' }, initialize)).toMatchObject({ status: 403 });
    expect(await send(url, 'POST', { Origin: 'http://attacker.com' }, initialize)).toMatchObject({ status: 403 });
    await server.stop();
  });

  it('starts with a token', async () => {
    const server = await startHttpServer({ args: ['--host', '0.0.0.0'], env: { MONGO_LEASH_TOKENS: 'alice leash:read tok-0123456789abcdef' } });
    expect(await send(new URL(`http://127.0.0.1:${server.url.port}/mcp`), 'POST', {}, initialize)).toMatchObject({ status: 401 });
    await server.stop();
  });
});
