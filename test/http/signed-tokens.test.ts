/** Tokens of an authorization server, over the real program and clients of both eras: how a client comes to one, how it ends, and what it may at each moment. */
import { ClientCredentialsProvider as ModernCredentials, Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { ClientCredentialsProvider as LegacyCredentials } from '@modelcontextprotocol/sdk/client/auth-extensions.js';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { challenge, initialize } from '../support/challenge.js';
import { type HttpTestServer, ask, connectModern, modernRequest, startHttpServer } from '../support/http-server.js';
import { beginSession, joinSession, seen, sleepFor } from '../support/http-sessions.js';
import { type SigningKey, type TestIssuer, newKey, sign, startIssuer } from '../support/issuer.js';
import { type TestMongo, eventually, killTagged, startMongo, taggedAs } from '../support/mongo.js';

const info = { name: 'test', version: '1.0.0' };
let mongo: TestMongo;
let key: SigningKey;
let issuer: TestIssuer;
let server: HttpTestServer;
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('one').insertOne({});
  key = await newKey('first');
  issuer = await startIssuer('', key);
  issuer.answers.set('/.well-known/oauth-authorization-server', {
    issuer: issuer.issuer,
    jwks_uri: issuer.jwksUrl.href,
    authorization_endpoint: `${issuer.issuer}/authorize`,
    token_endpoint: `${issuer.issuer}/token`,
    response_types_supported: ['code'],
    grant_types_supported: ['client_credentials'],
  });
  server = await startHttpServer({ uri: mongo.uri, args: ['--allow-js', '--jwt-issuer', issuer.issuer] });
});
afterAll(async () => {
  await killTagged(mongo.client);
  await server.stop();
  await issuer.close();
  await mongo.stop();
});

const signed = (claims: Record<string, unknown> = {}, expiresInSeconds = 300) => sign(key, { claims: { iss: issuer.issuer, aud: server.url.href, sub: 'carol', scope: 'leash:kill', ...claims }, expiresInSeconds });

it.each([
  ['2025', async () => {
    const client = new LegacyClient(info);
    await client.connect(new LegacyTransport(server.url, { authProvider: new LegacyCredentials({ clientId: 'agent', clientSecret: 'client-secret', expectedIssuer: issuer.issuer }) }));
    return client;
  }],
  ['2026', async () => {
    const client = new ModernClient(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    await client.connect(new ModernTransport(server.url, { authProvider: new ModernCredentials({ clientId: 'agent', clientSecret: 'client-secret', expectedIssuer: issuer.issuer }) }));
    return client;
  }],
] as const)('a signed token is had by a client of %s that knows nothing but the address: from the 401 to the metadata, the issuer, the token and the answer', async (_era, connect) => {
  issuer.answers.set('/token', { access_token: await signed(), token_type: 'Bearer', expires_in: 300 });
  const asked = issuer.asked.length;
  const client = await connect();
  expect((await client.callTool({ name: 'run', arguments: { database: 'app', collection: 'one', pipeline: [] } })).structuredContent).toMatchObject({ outcome: 'succeeded' });
  await client.close();
  expect(issuer.asked.slice(asked)).toEqual(expect.arrayContaining(['/.well-known/oauth-authorization-server', '/token']));
});

it('one of another key, for another server or too old is answered with 401, in both eras', async () => {
  const stranger = await newKey('first');
  const wrong = [
    await sign(stranger, { claims: { iss: issuer.issuer, aud: server.url.href, sub: 'carol' } }),
    await signed({ aud: 'https://elsewhere.example.com/mcp' }),
    await signed({}, -60),
  ];
  for (const token of wrong) {
    for (const init of [initialize(token), modernRequest(1, 'server/discover', {}, { token })]) {
      expect(await challenge(server.url, init)).toMatchObject({ status: 401, challenge: expect.stringContaining(`resource_metadata="${server.at('/.well-known/oauth-protected-resource/mcp').href}"`) });
    }
  }
});

it('one that expires in the middle of a session ends nothing but its own use: a new one of the same subject goes on with it', async () => {
  // Good for four seconds more: clocks may differ by five.
  const short = await signed({}, -1);
  const session = await beginSession(server.url, { token: short });
  const work = sleepFor(60_000);
  session.call('work', 'run', work);
  const operationId = await seen(mongo.client, work.comment);
  const refused = await eventually('the token has expired', async () => {
    const { status, headers } = await session.post({ jsonrpc: '2.0', id: 'ping', method: 'ping' }).response;
    return status === 200 ? null : { status, challenge: headers['www-authenticate'] };
  });
  expect(refused).toEqual({ status: 401, challenge: expect.stringMatching(/^Bearer error="invalid_token", error_description="The token is not accepted\. It has expired\."/) });
  expect(await session.cancel('work')).toBe(401);
  expect(await session.end()).toBe(401);
  expect(await taggedAs(mongo.client, operationId)).not.toEqual([]);
  expect(await joinSession(server.url, session.id, { token: await signed({ sub: 'mallory' }) }).end()).toBe(404);
  const again = joinSession(server.url, session.id, { token: await signed() });
  expect(await again.ask('kill', { id: operationId })).toMatchObject({ verdict: 'stopped' });
  expect(await again.end()).toBe(200);
});

it('one counts with the scopes that it has now, not with those of the one that began the session', async () => {
  const begun = await beginSession(server.url, { token: await signed({ scope: 'leash:admin' }) });
  const as = async (scope: string) => joinSession(server.url, begun.id, { token: await signed({ scope }) });
  const work = sleepFor(60_000, { waitMs: 0 });
  const elsewhere = await connectModern(server.url, await signed({ sub: 'dave', scope: 'leash:read' }));
  const { operationId: others } = await elsewhere.call('run', work);
  const { operationId: own } = await begun.ask('run', sleepFor(60_000, { waitMs: 0 }));

  const reading = await as('leash:read');
  expect(await reading.ask('status', { id: others })).toMatchObject({ error: { code: 'not_found' } });
  expect((await reading.call('kill', 'kill', { id: own }).response).status).toBe(403);
  expect((await (await as('other:scope')).call('look', 'operations').response).status).toBe(403);

  const killing = await as('leash:kill');
  expect(await killing.ask('kill', { id: others })).toMatchObject({ error: { code: 'not_found' } });
  expect(await killing.ask('kill', { id: own })).toMatchObject({ verdict: 'stopped' });
  expect(await taggedAs(mongo.client, others)).not.toEqual([]);

  expect(await (await as('leash:admin')).ask('kill', { id: others })).toMatchObject({ verdict: 'stopped' });
  expect(await taggedAs(mongo.client, others)).toEqual([]);
  expect(await begun.end()).toBe(200);
  await elsewhere.close();
});

it('one of an issuer that does not answer is not refused but put off, in both eras', async () => {
  issuer.status = 500;
  const fresh = await startHttpServer({ args: ['--jwt-issuer', issuer.issuer, '--jwt-audience', 'any'] });
  const token = await signed({ aud: 'any' });
  for (const init of [initialize(token), modernRequest(1, 'server/discover', {}, { token })]) expect(await challenge(fresh.url, init)).toMatchObject({ status: 503, challenge: null });
  issuer.status = 200;
  await eventually('it answers again', async () => (await ask(fresh.url, modernRequest(1, 'server/discover', {}, { token }))).result !== undefined, 15_000);
  await fresh.stop();
});
