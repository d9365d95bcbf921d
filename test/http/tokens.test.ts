/** Static tokens: what a file and a variable may say, what they may not, and that nothing is repeated. */
import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ConfigError } from '../../src/config/load.js';
import { hasScope, scopes } from '../../src/domain/scope.js';
import { findToken, parseTokens } from '../../src/http/tokens.js';

const token = 'tok-0123456789abcdef';
const other = 'tok-fedcba9876543210';
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const parse = (text: string, separator?: string) => parseTokens([{ from: '--tokens-file', text, ...(separator === undefined ? {} : { separator }) }]);

describe('a text of tokens', () => {
  it('holds one entry a line, comments and empty lines', () => {
    const entries = parse(`# agents\n\n alice  leash:read,leash:kill\t${token} \r\nci-bot@build leash:admin sha256:${sha256(other)}\n`);
    expect(entries.map(({ name, scopes: given }) => [name, [...given]])).toEqual([['alice', ['leash:read', 'leash:kill']], ['ci-bot@build', ['leash:admin']]]);
    expect(findToken(entries, token)?.name).toBe('alice');
    expect(findToken(entries, other)?.name).toBe('ci-bot@build');
  });

  it('in the environment may separate its entries by semicolons', () => {
    const entries = parse(`alice leash:read ${token}; bob leash:kill ${other};`, ';');
    expect(entries.map(({ name }) => name)).toEqual(['alice', 'bob']);
  });

  it('takes a hash in capital letters', () => {
    expect(findToken(parse(`a leash:read SHA256:${sha256(token).toUpperCase()}`), token)?.name).toBe('a');
  });

  it('keeps hashes only', () => {
    expect(JSON.stringify(parse(`alice leash:read ${token}`))).not.toContain(token);
  });
});

describe('findToken finds nothing', () => {
  const entries = parse(`alice leash:read ${token}\nbob leash:read sha256:${sha256(other)}`);
  it.each(['', token.slice(0, -1), `${token}x`, token.toUpperCase(), ` ${token}`, sha256(other), `sha256:${sha256(other)}`])('for %j', (given) => {
    expect(findToken(entries, given)).toBeUndefined();
  });
});

describe('an entry is refused by its line, and nothing of it is repeated', () => {
  const secret = 's3cr3t-s3cr3t-s3cr3t';
  it.each([
    ['no scopes', `alice ${secret}`, /<name> <scopes/],
    ['a fourth word', `alice leash:read ${secret} more`, /<name> <scopes/],
    ['an unknown scope', `alice leash:write ${secret}`, /scopes must be among leash:read, leash:kill, leash:admin/],
    ['an empty scope', `alice leash:read, ${secret}`, /scopes must be among/],
    ['the token in the place of the scopes', `alice ${secret} leash:read`, /scopes must be among/],
    ['the token in the place of the name', `${secret}/+ leash:read ${secret}`, /name must be/],
    ['a name of 65 characters', `${'n'.repeat(65)} leash:read ${secret}`, /name must be/],
    ['a name with a colon', `a:b leash:read ${secret}`, /name must be/],
    ['a token of 15 characters', 'alice leash:read s3cr3t-s3cr3t-s', /shorter than 16/],
    ['a token with a character that no header carries', `alice leash:read ${secret}"`, /other characters/],
    ['a token with = inside', `alice leash:read s3cr3t=s3cr3t-s3cr3t`, /other characters/],
    ['a hash that is too short', 'alice leash:read sha256:s3cr3t', /64 hexadecimal/],
    ['a name given twice', `bob leash:read ${secret}`, /line 2: the name is that of --tokens-file, line 1/],
    ['a token given twice', `alice leash:read ${token}`, /line 2: the token is that of --tokens-file, line 1/],
    ['a token given twice, once as its hash', `alice leash:read sha256:${sha256(token)}`, /line 2: the token is that of --tokens-file, line 1/],
  ])('%s', (_what, line, why) => {
    const read = () => parse(`bob leash:read ${token}\n${line}`);
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(why);
    expect(read).toThrow('--tokens-file, line 2');
    expect(read).not.toThrow('s3cr3t');
    expect(read).not.toThrow(token);
    expect(read).not.toThrow(sha256(token));
  });

  it('also across the variable and the file', () => {
    const read = () => parseTokens([{ from: 'MONGO_LEASH_TOKENS', text: `bob leash:read ${token}` }, { from: '--tokens-file', text: `#\nbob leash:kill ${other}` }]);
    expect(read).toThrow('--tokens-file, line 2: the name is that of MONGO_LEASH_TOKENS, line 1 as well.');
  });
});

describe('a scope', () => {
  it.each(scopes.map((given, rank) => [given, scopes.slice(0, rank + 1)] as const))('%s covers %j and nothing else', (given, covered) => {
    expect(scopes.filter((needed) => hasScope(new Set([given]), needed))).toEqual(covered);
  });
  it('is not covered by nothing', () => {
    expect(scopes.filter((needed) => hasScope(new Set(), needed))).toEqual([]);
  });
});
