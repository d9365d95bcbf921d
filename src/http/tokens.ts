/** Static bearer tokens: read from the environment and a file, and compared without telling by the time how near a guess was. */

import { createHash, timingSafeEqual } from 'node:crypto';
import { ConfigError } from '../config/load.js';
import { type Scope, isScope, scopes } from '../domain/scope.js';

export interface TokenEntry {
  name: string;
  scopes: ReadonlySet<Scope>;
  /** SHA-256 of the token's text. */
  digest: Buffer;
}

/** Where a text of tokens comes from, for messages, and what separates its entries besides the end of a line. */
export interface TokensText {
  from: string;
  text: string;
  separator?: string;
}

const namePattern = /^[A-Za-z0-9._@-]{1,64}$/;
/** RFC 6750, section 2.1: b64token. */
const tokenPattern = /^[A-Za-z0-9._~+/-]+=*$/;
const minTokenLength = 16;

/**
 * One entry a line: `<name> <scopes separated by commas> <token, or sha256:<64 hex digits>>`; empty lines and those that begin with # count as lines only.
 * @throws ConfigError naming the line, and repeating nothing of it: whatever stands in the wrong place may be the token
 */
export function parseTokens(texts: readonly TokensText[]): TokenEntry[] {
  const entries: (TokenEntry & { where: string })[] = [];
  for (const { from, text, separator } of texts) {
    const lines = text.split(separator === undefined ? /\r?\n/ : new RegExp(`\\r?\\n|${separator}`));
    for (const [index, raw] of lines.entries()) {
      const line = raw.trim();
      if (line === '' || line.startsWith('#')) continue;
      const where = `${from}, line ${index + 1}`;
      const entry = parseLine(line, where);
      for (const before of entries) {
        if (before.name === entry.name) throw new ConfigError(`${where}: the name is that of ${before.where} as well.`);
        if (before.digest.equals(entry.digest)) throw new ConfigError(`${where}: the token is that of ${before.where} as well.`);
      }
      entries.push({ ...entry, where });
    }
  }
  return entries.map(({ name, scopes: given, digest }) => ({ name, scopes: given, digest }));
}

function parseLine(line: string, where: string): TokenEntry {
  const refuse = (why: string): never => {
    throw new ConfigError(`${where}: ${why}.`);
  };
  const [name = '', scopeList = '', token = '', ...more] = line.split(/\s+/);
  if (token === '' || more.length > 0) refuse('it must be <name> <scopes separated by commas> <token, or sha256: and its hash>');
  if (!namePattern.test(name)) refuse('the name must be 1 to 64 letters, digits and . _ @ -');
  const given = scopeList.split(',').map((scope) => (isScope(scope) ? scope : refuse(`the scopes must be among ${scopes.join(', ')}, separated by commas`)));
  return { name, scopes: new Set(given), digest: digestOf(token, refuse) };
}

function digestOf(token: string, refuse: (why: string) => never): Buffer {
  if (/^sha256:/i.test(token)) {
    const hex = token.slice('sha256:'.length);
    return /^[0-9a-f]{64}$/i.test(hex) ? Buffer.from(hex, 'hex') : refuse('sha256: must be followed by 64 hexadecimal digits');
  }
  if (token.length < minTokenLength) refuse(`the token is shorter than ${minTokenLength} characters`);
  if (!tokenPattern.test(token)) refuse('the token holds other characters than letters, digits and - . _ ~ + /, with = at the end');
  return sha256(token);
}

/** Whose token this is. Every entry is compared in full, whichever fits. */
export function findToken(entries: readonly TokenEntry[], token: string): TokenEntry | undefined {
  const digest = sha256(token);
  let found: TokenEntry | undefined;
  for (const entry of entries) if (timingSafeEqual(digest, entry.digest)) found = entry;
  return found;
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
