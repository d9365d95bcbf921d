/** The public keys of the authorization server: from a file, by URL, or found through its metadata; and what to do while it does not answer. */

import { type FetchImplementation, type JSONWebKeySet, type JWTVerifyGetKey, createLocalJWKSet, createRemoteJWKSet, customFetch, errors } from 'jose';
import { z } from 'zod';
import type { Clock, Log } from '../core/ports.js';
import { messageOf } from '../domain/errors.js';

export interface IssuerSettings {
  /** As its tokens and its metadata write it, to the letter. */
  issuer: string;
  /** Where its keys are, or the keys; found through the issuer's metadata when undefined. */
  jwks: URL | JSONWebKeySet | undefined;
}

/** Nothing is known about a token: its issuer's keys could not be had. */
export class IssuerUnavailable extends Error {
  constructor(cause: unknown) {
    super('The authorization server that signs the tokens cannot be asked for its keys now.', { cause });
    this.name = 'IssuerUnavailable';
  }
}

const requestTimeoutMs = 5_000;
/** How long an unknown key id does not make it ask again, after an answer. */
const cooldownMs = 30_000;
/** How long it is not asked again after it failed: each request would wait for the timeout otherwise. */
export const pauseMs = 5_000;

/** @returns a resolver for jose, which throws IssuerUnavailable, or jose's own error when the token asks for a key that is not there */
export function createIssuerKeys({ issuer, jwks }: IssuerSettings, { clock, log }: { clock: Clock; log: Log }): JWTVerifyGetKey {
  let pausedUntil = 0;
  let failing = false;
  let remote: Promise<JWTVerifyGetKey> | undefined;

  const request: typeof fetch = async (input, init) => {
    if (clock.now() < pausedUntil) throw new Paused();
    return await fetch(input, init);
  };
  const requestKeys: FetchImplementation = async (url, init) => {
    const response = await request(url, init);
    if (failing && response.ok) {
      failing = false;
      log.info({ issuer }, 'the authorization server answers again');
    }
    return response;
  };
  const find = async () =>
    jwks !== undefined && !(jwks instanceof URL)
      ? createLocalJWKSet(jwks)
      : createRemoteJWKSet(jwks ?? (await discoverJwks(issuer, request)), { timeoutDuration: requestTimeoutMs, cooldownDuration: cooldownMs, [customFetch]: requestKeys });

  return async (header, token) => {
    try {
      remote ??= find();
      const keys = await remote.catch((error: unknown) => {
        remote = undefined;
        throw error;
      });
      return await keys(header, token);
    } catch (error) {
      if (isAboutTheToken(error)) throw error;
      if (!(error instanceof Paused)) {
        pausedUntil = clock.now() + pauseMs;
        if (!failing) log.warn({ issuer, error: reasonOf(error) }, 'the keys of the authorization server cannot be had: its tokens are answered with 503 until they can');
        failing = true;
      }
      throw new IssuerUnavailable(error);
    }
  };
}

class Paused extends Error {}

function isAboutTheToken(error: unknown): boolean {
  return error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys || error instanceof errors.JOSENotSupported;
}

/** With the cause: fetch itself only says that it failed. */
function reasonOf(error: unknown): string {
  const { cause } = error instanceof Error ? error : { cause: undefined };
  return cause === undefined ? messageOf(error) : `${messageOf(error)}: ${messageOf(cause)}`;
}

const metadataShape = z.object({ issuer: z.string(), jwks_uri: z.url({ protocol: /^https?$/ }) });

/** RFC 8414, section 3, and OpenID Connect Discovery, section 4: the former puts the well-known part before the issuer's path, the latter behind it. */
export function metadataUrls(issuer: string): string[] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/$/, '');
  const oauth = `${origin}/.well-known/oauth-authorization-server${path}`;
  const openId = `${origin}${path}/.well-known/openid-configuration`;
  return path === '' ? [oauth, openId] : [oauth, `${origin}/.well-known/openid-configuration${path}`, openId];
}

/** @throws Error that says what each place answered */
async function discoverJwks(issuer: string, request: typeof fetch): Promise<URL> {
  const signal = AbortSignal.timeout(requestTimeoutMs);
  const answers: string[] = [];
  for (const url of metadataUrls(issuer)) {
    const response = await request(url, { signal, redirect: 'error', headers: { accept: 'application/json' } });
    const { data, problem } = response.ok ? read(await response.json().catch(() => null), issuer) : { data: undefined, problem: `status ${response.status}` };
    if (data !== undefined) return data;
    answers.push(`${url}: ${problem}`);
  }
  throw new Error(answers.join('; '));
}

function read(document: unknown, issuer: string): { data?: URL; problem: string } {
  const parsed = metadataShape.safeParse(document);
  if (!parsed.success) return { problem: 'no metadata with issuer and jwks_uri' };
  // RFC 8414, section 3.3: metadata of another issuer must not be used.
  if (parsed.data.issuer !== issuer) return { problem: `its issuer is ${JSON.stringify(parsed.data.issuer)}, and --jwt-issuer is ${JSON.stringify(issuer)}` };
  const url = new URL(parsed.data.jwks_uri);
  if (url.protocol !== 'https:' && new URL(issuer).protocol === 'https:') return { problem: 'its jwks_uri is not https' };
  return { data: url, problem: '' };
}
