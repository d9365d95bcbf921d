/** What stops the start: it is named, the exit code is 2, stdout stays empty, and no secret is repeated. */
import { spawnSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { ConfigError, loadConfig } from '../../src/config/load.js';
import { type OptionName, type OptionRow, optionRows } from '../../src/config/options.js';
import { programPath, startServer } from '../support/server.js';

/** A value that each option refuses, and one that is only beyond its bounds. */
const badValues: Record<OptionName, string[]> = {
  uri: ['nonsense', 'mongodb://'],
  controlUri: ['nonsense', 'mongodb://'],
  connections: [''],
  demo: ['maybe'],
  maxTimeMS: ['soon', '0', '-1', '1.5', '2147483648'],
  maxTimeMSCeiling: ['soon', '0', '2147483648'],
  deadlineGraceMs: ['soon', '-1'],
  waitMs: ['soon', '-1'],
  verifyMs: ['soon', '0'],
  maxOperations: ['many', '0', '1001'],
  maxQueued: ['many', '-1'],
  limit: ['all', '0'],
  maxLimit: ['all', '0'],
  responseBytes: ['1MB', '1999'],
  maxResponseBytes: ['1MB', '16777217'],
  resultBytes: ['1MB', '0'],
  storeBytes: ['1GB', '0'],
  exportBytes: ['1GB', '1023'],
  exportStoreBytes: ['4GB', '0'],
  store: ['disk', 'Local'],
  stateFolder: [''],
  keepResults: ['maybe'],
  sweep: ['maybe', 'true'],
  retentionMs: ['1h', '0'],
  maxRetentionMs: ['1d', '999'],
  shutdownMs: ['soon', '0'],
  readPreference: ['sideways', 'Primary'],
  denyDiskUse: ['maybe'],
  allowWrites: ['maybe', 'yes'],
  allowJs: ['maybe'],
  allowInternal: ['maybe'],
  allowStage: ['match', '$'],
  indexCheck: ['maybe', 'yes'],
  tools: ['some', 'Core'],
  disabledTools: ['no-such-tool'],
  http: ['maybe'],
  host: ['http://127.0.0.1', '127.0.0.1:3777', 'a b', '*'],
  port: ['http', '-1', '65536', '3777.5'],
  publicUrl: ['leash.example.com', 'ftp://leash.example.com', 'https://user:secret@leash.example.com/mcp', 'https://leash.example.com/mcp?x=1', 'https://leash.example.com/mcp#x'],
  allowedHosts: ['https://leash.example.com', 'leash.example.com:443', '*.example.com', 'a b'],
  allowedOrigins: ['https://app.example.com', 'app.example.com:443', '*'],
  tokens: ['alice leash:read'],
  tokensFile: ['/no/such/file'],
  jwtIssuer: ['auth.example.com', 'http://auth.example.com', 'http://localhost.example.com', 'http://127.0.0.1.example.com', 'https://auth.example.com?x=1'],
  jwtJwks: ['http://auth.example.com/keys', 'ftp://auth.example.com/keys', 'file:///keys.json'],
  jwtAudience: [''],
  unauthenticatedAccessFromTheNetwork: ['maybe'],
  tlsCert: ['/no/such/file'],
  tlsKey: ['/no/such/file'],
  maxBodyBytes: ['4MB', '1023'],
  receiveMs: ['soon', '99'],
  maxRequestsPerMinute: ['many', '0'],
  maxSessions: ['many', '0'],
  sessionGraceMs: ['soon', '99'],
  sessionIdleMs: ['soon', '99'],
  logLevel: ['loud', 'INFO'],
};
const options = Object.entries(badValues) as [OptionName, string[]][];
/** Read when the table has nothing against them: what is wrong with these shows later, at the start, or only when they are empty. */
const readLater = ['uri', 'controlUri', 'connections', 'disabledTools', 'stateFolder', 'tokens', 'tokensFile', 'jwtAudience', 'tlsCert', 'tlsKey'];

function start(args: string[], env: Record<string, string> = {}): { code: number | null; stdout: string; stderr: string } {
  const clean = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(MONGO_LEASH|MDB_MCP)_/.test(name)));
  // A start that is not refused ends by the end of stdin, with exit code 0.
  const { status, stdout, stderr } = spawnSync(process.execPath, [programPath, ...args], { env: { ...clean, ...env }, input: '', encoding: 'utf8', timeout: 20_000 });
  return { code: status, stdout, stderr };
}

describe('a bad value of an option', () => {
  it('is tried here for every option that there is', () => {
    expect(Object.keys(badValues).sort()).toEqual(Object.keys(optionRows).sort());
  });

  it.each(options)('of %s stops the program, which names it', (name, [bad = '']) => {
    const row: OptionRow = optionRows[name];
    const byVariable = row.flag === null || row.value === undefined;
    const http = 'http' in row ? ['--http', '--port', '0'] : [];
    const { code, stdout, stderr } = byVariable ? start(http, { [row.env]: bad }) : start([...http, `--${row.flag}`, bad]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(byVariable ? row.env : `--${row.flag}`);
  });

  it.each(options.filter(([name]) => !readLater.includes(name)).flatMap(([name, values]) => values.map((value) => [name, value] as const)))('%s as %j is refused from the environment, by the name of the variable', (name, value) => {
    const read = () => loadConfig({}, { [optionRows[name].env]: value });
    expect(read).toThrow(ConfigError);
    expect(read).toThrow(optionRows[name].env);
  });

  it.each([
    [['--max-time-ms', '5000', '--max-time-ms-ceiling', '4000'], '--max-time-ms-ceiling'],
    [['--limit', '500', '--max-limit', '400'], '--max-limit'],
    [['--response-bytes', '5000', '--max-response-bytes', '4000'], '--max-response-bytes'],
    [['--retention-ms', '5000', '--max-retention-ms', '4000'], '--max-retention-ms'],
    [['--demo', '--uri', 'mongodb://127.0.0.1/'], '--demo'],
    [['--http', '--host', '0.0.0.0'], '--unauthenticated-access-from-the-network'],
    [['--http', '--public-url', 'https://leash.example.com/mcp'], '--unauthenticated-access-from-the-network'],
    [['--http', '--jwt-audience', 'leash'], '--jwt-issuer'],
    [['--http', '--tls-key', '/no/such/file'], '--tls-cert'],
  ])('%j do not go together', (args, named) => {
    const { code, stdout, stderr } = start(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(named);
  });
});

describe('a command line that is not understood', () => {
  it.each([
    [['--no-such-option'], '--no-such-option'],
    [['--max-time', '5'], '--max-time'],
    [['serve', '--frobnicate=1'], '--frobnicate'],
    [['--max-time-ms'], '--max-time-ms'],
    [['extra'], 'extra'],
    [['serve', 'extra'], 'extra'],
    [['--allow-js', 'true'], 'true'],
    [['--http', '--tokens', 'x'], '--tokens'],
  ])('%j stops the program, which names it', (args, named) => {
    const { code, stdout, stderr } = start(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(named);
  });
});

describe('a connection string that cannot be used stops the program, which says where it came from', () => {
  const unusable = [
    'localhost:27017',
    'http://127.0.0.1/',
    'mongodb://',
    'mongodb://user:p@ss/word@127.0.0.1/',
    'mongodb://127.0.0.1/?noSuchOption=1',
    'mongodb://127.0.0.1/?tls=perhaps',
    'mongodb://127.0.0.1/?authMechanism=MAGIC',
    'mongodb://127.0.0.1,127.0.0.2/?directConnection=true',
  ];
  it.each(unusable)('%s', (uri) => {
    const { code, stdout, stderr } = start([], { MONGO_LEASH_URI: uri });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toMatch(/^mongo-leash: MONGO_LEASH_URI: .*connection string/m);
  });

  it('from the variable of the stock server, and from the command line', () => {
    expect(start([], { MDB_MCP_CONNECTION_STRING: 'nonsense' })).toMatchObject({ code: 2, stderr: expect.stringMatching(/^mongo-leash: MDB_MCP_CONNECTION_STRING: /m) });
    expect(start(['--uri', 'nonsense'])).toMatchObject({ code: 2, stderr: expect.stringMatching(/^mongo-leash: --uri: /m) });
  });
});

it('an option that only the driver knows to be wrong ends a server that has told its tools, with the same exit code and message', async () => {
  const server = await startServer({ uri: 'mongodb://127.0.0.1:1/?nonsense=1' });
  expect((await server.client.listTools()).tools.length).toBeGreaterThan(0);
  expect(await server.exited).toEqual({ code: 2, signal: null });
  expect(server.stderr.join('\n')).toMatch(/mongo-leash: MONGO_LEASH_URI: .*nonsense/);
});

describe('a secret is not repeated', () => {
  const secret = 's3cr3tPassword';
  const strings = [`mongodb://user:${secret}@x@host/`, `Mongdb://user:${secret}@host/`, `user:x@${secret}@host`];
  it.each(strings.flatMap((uri) => [[uri], ['serve', uri], [`--url=${uri}`], [`--allow-stage=${uri}`]]).map((args) => [args] as const))('of a command line that is refused: %j', (args) => {
    const { code, stdout, stderr } = start([...args]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).not.toContain(secret);
  });

  it.each([`mongodb://user:p@${secret}/x@host/`, `mongodb://user:p@x?${secret}@host/`, `mongodb://user:${secret}@host/?authMechanism=${secret}`])('of a connection string that is refused: %s', (uri) => {
    const { code, stdout, stderr } = start([`--uri=${uri}`]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).not.toContain(secret);
  });

  it.each(['alice leash:read', `${secret}/${secret} leash:read,leash:kill`, 'alice leash:write'])('of tokens that are refused: %s <token>', (before) => {
    const { code, stdout, stderr } = start(['--http', '--port', '0'], { MONGO_LEASH_TOKENS: `${before} ${secret}` });
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('MONGO_LEASH_TOKENS, line 1');
    expect(stderr).not.toContain(secret);
  });
});
