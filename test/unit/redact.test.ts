import { describe, expect, it } from 'vitest';
import { createRedactor } from '../../src/domain/redact.js';
import { parseConnectionString } from '../../src/mongo/connection-string.js';

describe('a redactor', () => {
  it.each([
    ['mongodb://user:s3cr3t@host/?x=1', 's3cr3t'],
    ['mongodb+srv://user:p%40ss%2Fword@host/db', 'p%40ss%2Fword'],
    ['mongodb+srv://user:p%40ss%2Fword@host/db', 'p@ss/word'],
    ['mongodb://user:p@ss@host', 'p@ss'],
    ['mongodb://h/?tls=true&tlsCertificateKeyFilePassword=keypass&x=1', 'keypass'],
    ['mongodb://h/?authMechanismProperties=AWS_SESSION_TOKEN:token123', 'token123'],
    ['mongodb://h/?proxyHost=p&proxyPassword=proxypass', 'proxypass'],
  ])('takes the secrets of %s out of any text', (uri, secret) => {
    const redact = createRedactor([uri]);
    for (const text of [`connecting to ${uri} failed`, `authentication with "${secret}" failed`]) expect(redact(text)).not.toContain(secret);
  });
  it('takes user information out of connection strings that it does not know', () => {
    expect(createRedactor([])('see mongodb://a:b@c/ and mongodb+srv://d:e@f/')).toBe('see mongodb://<credentials>@c/ and mongodb+srv://<credentials>@f/');
  });
  it('knows the secrets that it learns later, and keeps those of before', () => {
    const redact = createRedactor(['mongodb://user:first-secret@host']);
    redact.learn('mongodb://user:sec%40nd@host');
    expect(redact('first-secret, sec%40nd, sec@nd')).toBe('<secret>, <secret>, <secret>');
  });
  it('leaves everything else as it is', () => {
    expect(createRedactor(['mongodb://user:s3cr3t@host'])('user at host: no answer')).toBe('user at host: no answer');
  });
});

describe('a connection string that cannot be read', () => {
  it.each([
    ['mongodb://user:p@ss@host/', /percent-encoded/],
    ['mongodb://user:pa/ss@host/', /percent-encoded/],
    ['mongodb://user:100%@host/', /percent-encoded/],
    ['postgres://user:secret@host/', /does not begin with mongodb/],
    ['mongodb://', /cannot be read/],
  ])('%s gets an error that says why, and does not repeat it', (uri, why) => {
    try {
      parseConnectionString(uri);
      expect.unreachable();
    } catch (error) {
      expect(String(error)).toMatch(why);
      expect(String(error)).not.toMatch(/p@ss|pa\/ss|100%|secret/);
    }
  });
});
