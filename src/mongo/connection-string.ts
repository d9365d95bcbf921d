/** Reads connection strings without ever repeating a secret of theirs. */

import { ConnectionString } from 'mongodb-connection-string-url';
import { LeashError } from '../domain/errors.js';

/**
 * Parses and checks a connection string.
 * @param path what gave it: the path of the error
 * @throws LeashError bad_argument that says what is wrong, without the string
 */
export function parseConnectionString(uri: string, path = 'uri'): ConnectionString {
  try {
    if (hasAtAfterHosts(uri)) throw new Error('an @ after the hosts');
    return new ConnectionString(uri);
  } catch {
    throw new LeashError('bad_argument', reasonFor(uri), {
      path,
      next: 'It looks like mongodb://user:password@host:27017/?authSource=admin or mongodb+srv://…',
    });
  }
}

/** A password with a bare @ before a bare / or ? would parse: a part of it as a host, the rest as a database or an option. */
function hasAtAfterHosts(uri: string): boolean {
  const [, path = '', query = ''] = /^[^/]*\/\/[^/?]*(\/[^?]*)?(?:\?(.*))?$/s.exec(uri) ?? [];
  return path.includes('@') || query.split('&').some((option) => option.split('=', 1)[0]?.includes('@') === true);
}

function reasonFor(uri: string): string {
  if (!/^mongodb(\+srv)?:\/\//.test(uri)) return 'The connection string does not begin with mongodb:// or mongodb+srv://.';
  const afterScheme = uri.slice(uri.indexOf('://') + 3);
  const authority = afterScheme.split(/[/?]/, 1)[0] ?? '';
  const looksSplit = !authority.includes('@') && afterScheme.includes('@');
  const userInfo = authority.slice(0, authority.lastIndexOf('@') + 1);
  if (looksSplit || hasAtAfterHosts(uri) || userInfo.split('@').length > 2 || userInfo.split(':').length > 2 || /[#[\]]|%(?![0-9a-f]{2})/i.test(userInfo)) {
    return 'The user or the password of the connection string holds a special character that is not percent-encoded (such as @ : / ? # [ ] %): write @ as %40, : as %3A, / as %2F, % as %25.';
  }
  return 'The connection string cannot be read.';
}

/** What may be told of a deployment to whoever lists connections: neither its hosts nor its users. */
export function describeConnection({ hosts, isSRV, username, searchParams }: ConnectionString): string {
  const names = hosts.map((host) => host.replace(/:\d+$/, '').toLowerCase());
  const hostType = names.some((name) => name.endsWith('.mongodb.net')) ? 'atlas' : !isSRV && names.every((name) => /^(localhost|127\.[\d.]+|\[::1\])$/.test(name)) ? 'local' : 'unknown';
  const mechanism = searchParams.get('authMechanism');
  const auth = mechanism === null ? (username === '' ? 'none' : 'scram') : (authKinds[mechanism.toUpperCase()] ?? mechanism.toLowerCase());
  return `MongoDB connection (host type: ${hostType}, auth: ${auth})`;
}

const authKinds: Readonly<Record<string, string>> = { 'MONGODB-X509': 'x.509', PLAIN: 'ldap', GSSAPI: 'kerberos', 'MONGODB-AWS': 'aws', 'MONGODB-OIDC': 'oidc', 'SCRAM-SHA-1': 'scram', 'SCRAM-SHA-256': 'scram' };
