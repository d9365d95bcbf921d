/** Tokens that an authorization server signed (JWT): what must be true of one before it says who asks. */

import { OAuthError, OAuthErrorCode } from '@modelcontextprotocol/server';
import { type JWTPayload, decodeJwt, errors, jwtVerify } from 'jose';
import type { Clock, Log } from '../core/ports.js';
import { messageOf } from '../domain/errors.js';
import { type Scope, isScope } from '../domain/scope.js';
import { type IssuerSettings, IssuerUnavailable, createIssuerKeys } from './issuer-keys.js';

export interface JwtSettings extends IssuerSettings {
  /** What a token must be for; the address of this server when undefined. */
  audience: string | undefined;
}

export interface JwtBearer {
  principal: string;
  scopes: ReadonlySet<Scope>;
}

/** Asymmetric ones only: with a shared secret, or none, whoever can read the public keys could sign. */
const algorithms = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'];
/** Access tokens (RFC 9068) say at+jwt, most issuers JWT, some nothing; anything else was signed for another use. */
const types = new Set(['', 'jwt', 'at+jwt']);
const clockToleranceSeconds = 5;

/**
 * @param resource the address of this server, as clients know it
 * @returns a function that throws OAuthError invalid_token, or IssuerUnavailable when nothing can be said about the token
 */
export function createJwtVerifier(settings: JwtSettings, resource: () => URL, context: { clock: Clock; log: Log }): (token: string) => Promise<JwtBearer> {
  const { issuer, audience } = settings;
  const keys = createIssuerKeys(settings, context);
  return async (token) => {
    try {
      // Looked at before the signature: whether another issuer's token is good here needs no key, and no answer of ours.
      if (decodeJwt(token).iss !== issuer) throw refused('It was issued by someone else');
      const { payload, protectedHeader } = await jwtVerify(token, keys, {
        algorithms,
        issuer,
        audience: audience ?? namesOf(resource()),
        requiredClaims: ['exp', 'sub'],
        clockTolerance: clockToleranceSeconds,
      });
      if (!types.has((protectedHeader.typ ?? '').toLowerCase().replace(/^application\//, ''))) throw refused('It is no access token');
      if (typeof payload.sub !== 'string' || payload.sub === '') throw refused('It names no subject');
      return { principal: `jwt:${issuer}#${payload.sub}`, scopes: scopesOf(payload) };
    } catch (error) {
      if (error instanceof IssuerUnavailable || OAuthError.isInstance(error)) throw error;
      // Beside jose's own errors a key of the issuer may be one that cannot be used at all, which only trying shows.
      if (!(error instanceof errors.JOSEError)) context.log.warn({ issuer, error: messageOf(error) }, 'a key of the authorization server cannot be used');
      throw refused(explain(error));
    }
  };
}

function refused(why: string): OAuthError {
  return new OAuthError(OAuthErrorCode.InvalidToken, `The token is not accepted. ${why}.`);
}

/** Says nothing that its bearer could not read in it. */
function explain(error: unknown): string {
  if (error instanceof errors.JWTExpired) return 'It has expired';
  if (error instanceof errors.JWTClaimValidationFailed) return `Its claim ${error.claim} is ${error.reason === 'missing' ? 'missing' : 'not what this server asks for'}`;
  return 'Its signature cannot be verified';
}

/** An address without a path is written with and without a slash at the end. */
function namesOf({ href }: URL): string[] {
  return [href, href.replace(/\/$/, '')];
}

/** `scope` is a text by RFC 9068; `scp` is a list or a text at issuers that came before it. Scopes of others mean nothing here. */
function scopesOf({ scope, scp }: JWTPayload): ReadonlySet<Scope> {
  const words = [scope, scp].flatMap((claim) => (typeof claim === 'string' ? claim.split(' ') : Array.isArray(claim) ? (claim as unknown[]) : []));
  return new Set(words.filter((word): word is Scope => typeof word === 'string' && isScope(word)));
}
