/** Who asks, and may they: bearer tokens as MCP's authorization specification wants them (OAuth 2.1, RFC 6750, RFC 9728). */

import { type AuthMetadataOptions, OAuthError, OAuthErrorCode, bearerAuthChallengeResponse, getOAuthProtectedResourceMetadataUrl, oauthMetadataResponse } from '@modelcontextprotocol/server';
import type { Clock, Log } from '../core/ports.js';
import { type Scope, scopes } from '../domain/scope.js';
import { IssuerUnavailable, pauseMs } from './issuer-keys.js';
import { type JwtSettings, createJwtVerifier } from './jwt.js';
import { type TokenEntry, findToken } from './tokens.js';

export interface Identity {
  /** `token:<name>`, or `jwt:<issuer>#<subject>`. */
  principal: string;
  scopes: ReadonlySet<Scope>;
}

export interface Authenticator {
  /** Whether any authentication is configured. */
  readonly required: boolean;
  /** The identity, or the ready answer (400, 401 or 503); null when no authentication is configured. */
  authenticate(request: Request): Promise<Identity | Response | null>;
  /** The 403 for one who is known and lacks this scope. */
  refuse(needed: Scope): Response;
  /** Protected-resource metadata (RFC 9728); undefined for other paths, and when there is no authorization server to name. */
  metadata(request: Request): Response | undefined;
}

export interface AuthenticatorOptions {
  tokens: readonly TokenEntry[];
  jwt: JwtSettings | undefined;
  /** The address of the MCP endpoint, as clients know it; asked when it is needed, since a free port is known only then. */
  resource: () => URL;
  clock: Clock;
  log: Log;
}

const metadataPath = '/.well-known/oauth-protected-resource';
/** What a client is told to ask an authorization server for: enough for every tool. */
const usualScopes: Scope[] = ['leash:read', 'leash:kill'];

export function createAuthenticator({ tokens, jwt, resource, clock, log }: AuthenticatorOptions): Authenticator {
  const required = tokens.length > 0 || jwt !== undefined;
  const verifyJwt = jwt === undefined ? undefined : createJwtVerifier(jwt, resource, { clock, log });
  /** Only where an authorization server exists: metadata that name none lead a client nowhere. */
  const challenge = (error: OAuthError, requiredScopes: Scope[]) => bearerAuthChallengeResponse(error, { requiredScopes, ...(jwt === undefined ? {} : { resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource()) }) });

  async function identify(request: Request): Promise<Identity> {
    const token = bearerToken(request);
    const known = findToken(tokens, token);
    if (known !== undefined) return { principal: `token:${known.name}`, scopes: known.scopes };
    if (verifyJwt === undefined || token.split('.').length !== 3) throw new OAuthError(OAuthErrorCode.InvalidToken, 'The token is not known here.');
    return await verifyJwt(token);
  }

  return {
    required,
    async authenticate(request) {
      if (!required) return null;
      try {
        return await identify(request);
      } catch (error) {
        if (error instanceof IssuerUnavailable) return unavailable(error);
        if (!OAuthError.isInstance(error)) throw error;
        log.debug({ reason: error.message }, 'a request was not authenticated');
        return challenge(error, usualScopes);
      }
    },
    refuse: (needed) => challenge(new OAuthError(OAuthErrorCode.InsufficientScope, `This takes the scope ${needed}.`), [needed]),
    metadata(request) {
      if (jwt === undefined) return undefined;
      const own = new URL(getOAuthProtectedResourceMetadataUrl(resource())).pathname;
      const asked = new URL(request.url).pathname.replace(/\/$/, '');
      if (![own, metadataPath, `${metadataPath}/mcp`].includes(asked)) return undefined;
      // Asked as the one path that the helper knows, which it takes from the address of the resource.
      return oauthMetadataResponse(new Request(new URL(own, request.url), { method: request.method, headers: request.headers }), {
        // Of these the document for this path shows the issuer only; the rest is the authorization server's own to tell.
        oauthMetadata: { issuer: jwt.issuer } as AuthMetadataOptions['oauthMetadata'],
        resourceServerUrl: resource(),
        scopesSupported: [...scopes],
        resourceName: 'mongo-leash',
      });
    },
  };
}

/** @throws OAuthError when there is none where it belongs */
function bearerToken(request: Request): string {
  // An address stands in logs and histories: a token in it must be seen to be useless, not ignored.
  if (new URL(request.url).searchParams.has('access_token')) throw new OAuthError(OAuthErrorCode.InvalidRequest, 'A token belongs into the header Authorization, never into the address. Take this one out of use.');
  const header = request.headers.get('authorization');
  if (header === null) throw new OAuthError(OAuthErrorCode.InvalidToken, 'A bearer token is needed, in the header Authorization.');
  const token = /^Bearer +([A-Za-z0-9._~+/-]+=*)$/i.exec(header.trim())?.[1];
  if (token === undefined) throw new OAuthError(OAuthErrorCode.InvalidToken, 'The header Authorization must be: Bearer, and one token.');
  return token;
}

function unavailable({ message }: IssuerUnavailable): Response {
  const error = new OAuthError(OAuthErrorCode.TemporarilyUnavailable, `${message} Nothing is known about this token; try again.`);
  return Response.json(error.toResponseObject(), { status: 503, headers: { 'Retry-After': String(pauseMs / 1_000) } });
}
