/** An authorization server on this machine: signs tokens with real keys, publishes them, changes them, and fails on demand. */

import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, type JSONWebKeySet, SignJWT, exportJWK, generateKeyPair } from 'jose';

export interface SigningKey {
  kid: string;
  alg: string;
  privateKey: CryptoKey;
  publicKey: CryptoKey;
}

export async function newKey(kid: string, alg = 'ES256'): Promise<SigningKey> {
  return { kid, alg, ...(await generateKeyPair(alg, { extractable: true })) };
}

export async function jwksOf(...keys: SigningKey[]): Promise<JSONWebKeySet> {
  return { keys: await Promise.all(keys.map(async ({ kid, alg, publicKey }) => ({ ...(await exportJWK(publicKey)), kid, alg, use: 'sig' }))) };
}

export interface TokenOptions {
  claims?: Record<string, unknown>;
  header?: Record<string, unknown>;
  /** Seconds from now, also past; null for none. */
  expiresInSeconds?: number | null;
}

/** Signs a token that names exactly these claims, besides `exp`. */
export async function sign(key: SigningKey, { claims = {}, header = {}, expiresInSeconds = 60 }: TokenOptions = {}): Promise<string> {
  const now = Math.floor(Date.now() / 1_000);
  const payload = { ...claims, ...(expiresInSeconds === null ? {} : { exp: now + expiresInSeconds }) };
  return await new SignJWT(payload).setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'at+jwt', ...header }).sign(key.privateKey);
}

export interface TestIssuer {
  /** `http://127.0.0.1:<port>` and the path that was asked for. */
  issuer: string;
  jwksUrl: URL;
  /** Paths that were asked for, in order. */
  asked: string[];
  /** Publishes these keys instead of those before. */
  publish(...keys: SigningKey[]): Promise<void>;
  /** Answers at these paths instead of the usual ones: a document, or a status. */
  answers: Map<string, unknown>;
  /** Answers everything with this status until it is 200 again. */
  status: number;
  /** Sends everybody there, when it is set. */
  redirectTo: string | null;
  close(): Promise<void>;
}

/** @param path of the issuer, such as `/tenant` */
export async function startIssuer(path = '', ...keys: SigningKey[]): Promise<TestIssuer> {
  const answers = new Map<string, unknown>();
  const asked: string[] = [];
  const server: Server = createServer((request, response) => {
    const url = request.url ?? '';
    asked.push(url);
    if (self.redirectTo !== null) return void response.writeHead(302, { location: self.redirectTo }).end();
    const answer = answers.get(url);
    const status = self.status !== 200 ? self.status : typeof answer === 'number' ? answer : answer === undefined ? 404 : 200;
    response.writeHead(status, { 'content-type': 'application/json' }).end(typeof answer === 'string' ? answer : JSON.stringify(answer ?? {}));
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer = `${origin}${path}`;
  const self: TestIssuer = {
    issuer,
    jwksUrl: new URL(`${origin}/keys`),
    asked,
    answers,
    status: 200,
    redirectTo: null,
    publish: async (...published) => void answers.set('/keys', await jwksOf(...published)),
    close: () => new Promise((resolve) => {
      server.close(() => { resolve(); });
      server.closeAllConnections();
    }),
  };
  answers.set(`/.well-known/oauth-authorization-server${path}`, { issuer, jwks_uri: self.jwksUrl.href });
  await self.publish(...keys);
  return self;
}
