/** What a client may take of the server, over the real program: so much in a body, so long for a request, so many requests in a minute; and what stops an operation always passes. */
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpTestServer, ask, connectModern, modernRequest, startHttpServer } from '../support/http-server.js';
import { beginSession, joinSession, toolCall } from '../support/http-sessions.js';
import { eventually } from '../support/mongo.js';

const maxBodyBytes = 20_000;
let server: HttpTestServer;
beforeAll(async () => { server = await startHttpServer({ args: ['--max-body-bytes', String(maxBodyBytes), '--receive-ms', '1500'] }); });
afterAll(() => server.stop());

const works = async (url = server.url, token?: string) => (await ask(url, modernRequest('next', 'server/discover', {}, { token }))).id === 'next';

describe('a body over the limit', () => {
  const sizes = [['by one byte', maxBodyBytes + 1], ['by far', 20_000_000]] as const;

  it.each(sizes)('%s, whose length is told, is answered with 413, and the next request is served', async (_what, size) => {
    const response = await fetch(server.url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: Buffer.alloc(size, ' ') });
    expect(response.status).toBe(413);
    expect(await response.json()).toEqual({ jsonrpc: '2.0', id: null, error: { code: -32_000, message: 'The body of a request may have 20000 bytes at most.' } });
    expect(await works()).toBe(true);
  });

  it.each(sizes)('%s, in chunks, is the same', async (_what, size) => {
    const body = new Blob([Buffer.alloc(size, ' ')]).stream();
    const response = await fetch(server.url, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body, duplex: 'half' });
    expect(response.status).toBe(413);
    expect(await response.json()).toMatchObject({ error: { code: -32_000 } });
    expect(await works()).toBe(true);
  });

  it.each([['is never sent', 0], ['comes in part', 5_000]])('that is told and %s does not keep the connection', async (_what, size) => {
    const { text, tookMs } = await raw(`POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000\r\n\r\n${' '.repeat(size)}`);
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    expect(tookMs).toBeLessThan(5_000);
  });

  it('that goes on for ever does not either', async () => {
    const { text, tookMs } = await raw('POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n', { every: `1000\r\n${' '.repeat(4_096)}\r\n` });
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    expect(tookMs).toBeLessThan(6_000);
  });

  it('by nothing is served, on the same connection as the next', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const { body, headers } = modernRequest(1, 'server/discover');
    const post = () => new Promise<{ status: number | undefined; port: number | undefined }>((resolve, reject) => {
      const outgoing = request(server.url, { agent, method: 'POST', headers: headers as Record<string, string> }, (incoming) => {
        const port = incoming.socket.localPort;
        incoming.resume().on('end', () => { resolve({ status: incoming.statusCode, port }); });
      });
      outgoing.on('error', reject).end((body as string).padEnd(maxBodyBytes));
    });
    const first = await post();
    expect(first.status).toBe(200);
    expect(await post()).toEqual(first);
    agent.destroy();
  });
});

describe('a client that takes its time', () => {
  const head = 'POST /mcp HTTP/1.1\r\nHost: localhost\r\n';
  // They wait for the same clock: at once.
  it.concurrent.each([
    ['with the headers', head, undefined],
    ['with the headers, and drips', head, 'X-Drip: 1\r\n'],
    ['with the body', `${head}Content-Length: 30\r\n\r\n{`, undefined],
    ['with the body, and drips', `${head}Content-Length: 3000\r\n\r\n{`, ' '],
    ['with the chunks of a body, and drips', `${head}Transfer-Encoding: chunked\r\n\r\n`, '1\r\n \r\n'],
    ['with everything', '', undefined],
  ])('%s is answered with 408, and its socket is closed', { timeout: 20_000 }, async (_what, begin, every) => {
    const { text, tookMs } = await raw(begin, every === undefined ? {} : { every });
    expect(text).toMatch(/^HTTP\/1\.1 408 Request Timeout\r\nConnection: close\r\n/);
    expect(tookMs).toBeGreaterThan(1_000);
    expect(tookMs).toBeLessThan(6_000);
  });
});

describe('a batch', () => {
  const ping = (_: unknown, id: number) => ({ jsonrpc: '2.0', id, method: 'ping' });

  it('of 100 messages is served, and one of more is not, in any part', async () => {
    const session = await beginSession(server.url, { version: '2025-03-26' });
    const hundred = session.post(Array.from({ length: 100 }, ping));
    for (let id = 0; id < 100; id++) expect(await hundred.answer(id)).toMatchObject({ result: {} });
    const more = session.post([toolCall('run', 'operations'), ...Array.from({ length: 100 }, ping)]);
    expect((await more.response).status).toBe(400);
    await more.over;
    expect(JSON.parse(more.text())).toMatchObject({ id: null, error: { message: 'A batch holds at most 100 messages.' } });
    expect(server.stderr.filter((line) => line.includes('"requestId":"run"'))).toEqual([]);
  });
});

describe('a principal that asks too often', () => {
  const perMinute = 12;
  const alice = 'tok-alice-0123456789';
  const bob = 'tok-bob-0123456789ab';
  let limited: HttpTestServer;
  beforeAll(async () => { limited = await startHttpServer({ args: ['--max-requests-per-minute', String(perMinute)], env: { MONGO_LEASH_TOKENS: `alice leash:kill ${alice};bob leash:read ${bob}` } }); });
  afterAll(() => limited.stop());

  it('is answered with 429 and the time to wait, in both eras and however it batches, while what stops still passes and nobody else is touched', async () => {
    const session = await beginSession(limited.url, { token: alice });
    const other = await beginSession(limited.url, { token: alice });
    // Six are taken: a batch counts as many as it holds.
    const batch = session.post([1, 2, 3, 4, 5, 6, 7, 8, 9].map((id) => ({ jsonrpc: '2.0', id, method: 'ping' })));
    expect((await batch.response).status).toBe(429);
    for (const refused of [session.post({ jsonrpc: '2.0', id: 1, method: 'ping' }), session.post([{ jsonrpc: '2.0', id: 1, method: 'ping' }, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }]), session.get()]) {
      const { status, headers } = await refused.response;
      expect(status).toBe(429);
      expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(1);
      expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60);
      await refused.over;
      expect(JSON.parse(refused.text())).toMatchObject({ id: null, error: { message: expect.stringContaining('More than 12 requests in a minute.') } });
    }
    const young = await fetch(limited.url, modernRequest(1, 'server/discover', {}, { token: alice }));
    expect(young.status).toBe(429);
    await young.body?.cancel();

    // What stops something.
    expect(await session.cancel(7)).toBe(202);
    expect((await session.request('tasks/cancel', { taskId: 'unknown' })).error.code).toBe(-32_602);
    expect(await session.ask('kill', { id: '0000000000' })).toHaveProperty('error');
    expect((await ask(limited.url, modernRequest(1, 'tools/call', { name: 'kill', arguments: { id: '0000000000' } }, { token: alice }))).result.isError).toBe(true);
    expect((await ask(limited.url, modernRequest(1, 'tasks/cancel', { taskId: 'unknown' }, { token: alice }))).error.code).toBe(-32_602);
    expect(await other.end()).toBe(200);

    // Somebody else.
    expect(await works(limited.url, bob)).toBe(true);
    await (await connectModern(limited.url, bob)).close();
  });

  it('and whoever tries tokens is counted by its address, which keeps no known token out', async () => {
    const statuses: number[] = [];
    for (let i = 0; i < perMinute + 2; i++) {
      const response = await fetch(limited.url, modernRequest(1, 'server/discover', {}, { token: `guess-0123456789-${i}` }));
      statuses.push(response.status);
      await response.body?.cancel();
    }
    expect(statuses).toEqual([...Array.from({ length: perMinute }, () => 401), 429, 429]);
    // Nor does a word for stopping make a guess free.
    expect(await joinSession(limited.url, 'x', { token: 'guess-0123456789' }).cancel(1)).toBe(429);
    expect(await works(limited.url, bob)).toBe(true);
    expect((await fetch(limited.at('/healthz'))).status).toBe(200);
  });
});

/** Writes on a socket, and goes on writing `every` 50 ms; settles when the server has closed it. */
async function raw(text: string, { every }: { every?: string } = {}): Promise<{ text: string; tookMs: number }> {
  const startedAt = performance.now();
  const socket = connect(Number(server.url.port), '127.0.0.1');
  let received = '';
  let isClosed = false;
  socket.setEncoding('utf8').on('data', (chunk: string) => { received += chunk; });
  socket.on('error', () => undefined);
  socket.on('close', () => { isClosed = true; });
  socket.write(text);
  const drip = every === undefined ? undefined : setInterval(() => { socket.write(every); }, 50);
  await eventually('the server closes the connection', () => isClosed, 15_000);
  clearInterval(drip);
  return { text: received, tookMs: performance.now() - startedAt };
}
