/** Before the server listens: who will be able to reach it, whether they must say who they are, and under which names it may be called. */

import { readFileSync, statSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { localhostAllowedHostnames } from '@modelcontextprotocol/server';
import { type JSONWebKeySet, createLocalJWKSet } from 'jose';
import { ConfigError } from '../config/load.js';
import type { Config } from '../config/options.js';
import { messageOf } from '../domain/errors.js';
import type { JwtSettings } from './jwt.js';
import type { AllowedNames } from './origin.js';
import { type TokenEntry, type TokensText, parseTokens } from './tokens.js';

export interface Exposure {
  tokens: TokenEntry[];
  jwt: JwtSettings | undefined;
  /** PEM texts, which fit each other. */
  tls: { cert: string; key: string } | undefined;
  allowed: AllowedNames;
  /** The address of the MCP endpoint, as clients know it. @param port the one that it listens on */
  resource(port: number): URL;
  /** For the log. */
  warnings: string[];
}

/**
 * Reads every file that the options of --http name, and judges them together.
 * @throws ConfigError naming the options
 */
export function checkExposure(config: Config): Exposure {
  const warnings: string[] = [];
  const tokens = readTokens(config, warnings);
  const jwt = readJwt(config);
  const tls = readTls(config);
  checkReach(config, tokens.length > 0 || jwt !== undefined, warnings);
  const resource = (port: number) => new URL(config.publicUrl ?? `${tls === undefined ? 'http' : 'https'}://${urlHost(isWildcard(config.host) ? 'localhost' : config.host)}:${port}/mcp`);
  const hosts = allowedNames(config);
  return {
    tokens,
    jwt,
    tls,
    allowed: { hosts: [...hosts, ...config.allowedHosts.map(urlHost)], origins: [...hosts, ...config.allowedOrigins.map(urlHost)] },
    resource,
    warnings,
  };
}

function readTokens(config: Config, warnings: string[]): TokenEntry[] {
  const texts: TokensText[] = [];
  if (config.tokens !== undefined) texts.push({ from: 'MONGO_LEASH_TOKENS', text: config.tokens, separator: ';' });
  if (config.tokensFile !== undefined) {
    texts.push({ from: '--tokens-file', text: readText('--tokens-file', config.tokensFile) });
    if (process.platform !== 'win32' && (statSync(config.tokensFile).mode & 0o004) !== 0) warnings.push('--tokens-file can be read by every user of this machine: chmod o= it.');
  }
  const entries = parseTokens(texts);
  if (texts.length > 0 && entries.length === 0) throw new ConfigError(`${texts.map(({ from }) => from).join(' and ')} holds no token, so nobody could use this server.`);
  return entries;
}

function readJwt({ jwtIssuer, jwtJwks, jwtAudience, publicUrl, host }: Config): JwtSettings | undefined {
  if (jwtIssuer === undefined) {
    for (const [flag, value] of [['--jwt-jwks', jwtJwks], ['--jwt-audience', jwtAudience]] as const) if (value !== undefined) throw new ConfigError(`${flag} says how tokens are checked, and --jwt-issuer does not say whose: give it.`);
    return undefined;
  }
  if (publicUrl === undefined && isWildcard(host)) throw new ConfigError(`--jwt-issuer with --host ${host} needs --public-url: tokens are made out to the address under which clients reach this server, and nothing else says it.`);
  return { issuer: jwtIssuer, jwks: readJwks(jwtJwks), audience: jwtAudience };
}

function readJwks(given: string | undefined): URL | JSONWebKeySet | undefined {
  if (given === undefined) return undefined;
  if (/^https?:\/\//i.test(given)) return new URL(given);
  const text = readText('--jwt-jwks', given);
  try {
    const jwks = JSON.parse(text) as JSONWebKeySet;
    createLocalJWKSet(jwks);
    return jwks;
  } catch {
    throw new ConfigError('--jwt-jwks: the file is no JSON Web Key Set ({"keys": [...]}).');
  }
}

function readTls({ tlsCert, tlsKey }: Config): Exposure['tls'] {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined) throw new ConfigError('--tls-key is given without --tls-cert.');
  if (tlsKey === undefined) throw new ConfigError('--tls-cert is given without --tls-key.');
  const pair = { cert: readText('--tls-cert', tlsCert), key: readText('--tls-key', tlsKey) };
  try {
    createSecureContext(pair);
  } catch (error) {
    throw new ConfigError(`--tls-cert and --tls-key cannot be used together: ${messageOf(error)}.`);
  }
  return pair;
}

/** @throws ConfigError with the system's name of what went wrong */
function readText(flag: string, path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(`${flag}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? messageOf(error)}).`);
  }
}

function checkReach(config: Config, authenticated: boolean, warnings: string[]): void {
  const { host, publicUrl } = config;
  const publicHost = publicUrl === undefined ? undefined : new URL(publicUrl);
  const publicIsFar = publicHost !== undefined && !isLoopback(publicHost.hostname.replace(/^\[(.*)\]$/, '$1'));
  const reach = !isLoopback(host) ? `--host ${host}` : publicIsFar ? `--public-url ${publicUrl}` : undefined;
  if (reach === undefined) return;
  if (!authenticated) {
    if (!config.unauthenticatedAccessFromTheNetwork) throw new ConfigError(`${reach} is reached by other machines, and no authentication is configured: whoever reaches it would read the database. Give MONGO_LEASH_TOKENS, --tokens-file or --jwt-issuer, or say --unauthenticated-access-from-the-network.`);
    warnings.push(`${reach} is reached by other machines without authentication: whoever reaches it reads the database.`);
    return;
  }
  // Behind a public address with https, something in front of this server ends TLS.
  const isPlain = publicHost === undefined ? config.tlsCert === undefined : publicHost.protocol === 'http:';
  if (isPlain) warnings.push(`${reach} is reached over plain HTTP, so tokens can be read on the way: give --tls-cert and --tls-key, or put a server with TLS in front and say --public-url https://...`);
}

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Names are not resolved: what they mean may change after the check. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  return family === 0 ? host.toLowerCase() === 'localhost' : loopback.check(host, family === 6 ? 'ipv6' : 'ipv4');
}

function isWildcard(host: string): boolean {
  return ['0.0.0.0', '[::]'].includes(urlHost(host));
}

/** A host name as it stands in a URL, and in a Host header after the check has read it: lower case, IPv6 in brackets and in its short form. */
function urlHost(host: string): string {
  const written = isIP(host) === 6 ? `[${host}]` : host;
  return URL.canParse(`http://${written}`) ? new URL(`http://${written}`).hostname : written;
}

/** What may stand in both Host and Origin: this machine's names for itself, the address that it listens on, and the public one. */
function allowedNames({ host, publicUrl }: Config): string[] {
  return [...localhostAllowedHostnames(), ...(isWildcard(host) ? [] : [urlHost(host)]), ...(publicUrl === undefined ? [] : [new URL(publicUrl).hostname])];
}
