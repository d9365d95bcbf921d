/** Which tools there are: all or the core, without those that are disabled; and the stock server's variables mean here what they say. */
import { afterEach, describe, expect, it } from 'vitest';
import { type LoadedConfig, loadConfig } from '../../src/config/load.js';
import { type TestServer, startServer } from '../support/server.js';

let server: TestServer | undefined;
afterEach(async () => {
  await server?.close();
  server = undefined;
});
const core = ['run', 'status', 'kill', 'operations', 'result'];
const reading = ['aggregate', 'find', 'count', 'distinct', 'aggregate-db', 'export'];

async function toolsWith(args: string[], env: Record<string, string> = {}): Promise<string[]> {
  server = await startServer({ args, env });
  return (await server.client.listTools()).tools.map(({ name }) => name);
}

describe('--tools', () => {
  it('core is the leash alone', async () => {
    expect(await toolsWith(['--tools', 'core'])).toEqual(core);
  });

  it('all, the default, holds the tools of the stock server by their names', async () => {
    const all = await toolsWith([]);
    expect(all.slice(0, 5)).toEqual(core);
    expect(all).toEqual(expect.arrayContaining([...reading, 'explain', 'collection-schema', 'collection-indexes', 'collection-storage-size', 'db-stats', 'list-databases', 'list-collections', 'mongodb-logs', 'connect', 'disconnect', 'list-connections']));
    expect(new Set(all).size).toBe(all.length);
  });
});

describe('--disabled-tools', () => {
  it('takes away what it names, and a call of it is answered like one of a tool that never was', async () => {
    const left = await toolsWith(['--disabled-tools', 'find,count', '--disabled-tools', 'kill']);
    expect(left).toContain('distinct');
    for (const name of ['find', 'count', 'kill']) expect(left).not.toContain(name);
    const disabled = await server?.callRaw('find', { database: 'a', collection: 'b' });
    const never = await server?.callRaw('fond', { database: 'a', collection: 'b' });
    expect(disabled.isError).toBe(true);
    expect(disabled.structuredContent).toEqual(JSON.parse(JSON.stringify(never.structuredContent).replace('\\"fond\\"', '\\"find\\"')));
  });

  it.each([
    ['read', reading, ['explain', 'list-databases', 'connect']],
    ['metadata', ['explain', 'collection-schema', 'list-databases', 'list-connections', 'mongodb-logs'], ['find', 'connect']],
    ['connect', ['connect', 'disconnect'], ['find', 'list-connections']],
    ['mongodb', ['find', 'explain', 'connect', 'list-databases'], []],
  ])('takes the stock word %s for the tools of that kind, and never those of the leash', async (word, gone, there) => {
    const left = await toolsWith(['--disabled-tools', word]);
    for (const name of gone) expect(left).not.toContain(name);
    expect(left).toEqual(expect.arrayContaining([...core, ...there]));
  });

  it('takes names of the stock server that are not here, and stops the start for a name that nobody knows', async () => {
    expect(await toolsWith(['--disabled-tools', 'insert-many,atlas-list-clusters,drop-database,atlas'])).toContain('find');
    const refused = await startServer({ args: ['--disabled-tools', 'fnd'], raw: true });
    expect(await refused.exited).toMatchObject({ code: 2 });
    expect(refused.stderr.join('\n')).toMatch(/^mongo-leash: --disabled-tools: there is no tool "fnd"; "find" may be meant/m);
  });

  it.each(['create', 'update', 'delete'])('%s also refuses what writes in a pipeline, as in the stock server', async (word) => {
    server = await startServer({ uri: 'mongodb://127.0.0.1:9/', args: ['--allow-writes', '--disabled-tools', word] });
    expect(await server.call('aggregate', { database: 'a', collection: 'b', pipeline: [{ $out: 'c' }] })).toMatchObject({ error: { code: 'refused_by_policy' } });
  });
});

describe("the stock server's variables", () => {
  const load = (env: Record<string, string>, flags = {}): LoadedConfig => loadConfig(flags, env);

  it.each([
    ['CONNECTION_STRING', 'mongodb://h/', { uri: 'mongodb://h/' }, 'MONGO_LEASH_URI'],
    ['DISABLED_TOOLS', 'find, count', { disabledTools: ['find', 'count'] }, 'MONGO_LEASH_DISABLED_TOOLS'],
    ['INDEX_CHECK', 'true', { indexCheck: true }, 'MONGO_LEASH_INDEX_CHECK'],
    ['INDEX_CHECK', '1', { indexCheck: true }, 'MONGO_LEASH_INDEX_CHECK'],
    ['INDEX_CHECK', 'yes', { indexCheck: true }, 'MONGO_LEASH_INDEX_CHECK'],
    ['INDEX_CHECK', 'no', { indexCheck: false }, 'MONGO_LEASH_INDEX_CHECK'],
    ['DISABLE_SERVER_SIDE_JS', 'false', { allowJs: true }, 'MONGO_LEASH_ALLOW_JS'],
    ['DISABLE_SERVER_SIDE_JS', '1', { allowJs: false }, 'MONGO_LEASH_ALLOW_JS'],
    ['MAX_TIME_M_S', '2500', { maxTimeMS: 2_500, maxTimeMSCeiling: 2_500 }, 'MONGO_LEASH_MAX_TIME_MS and MONGO_LEASH_MAX_TIME_MS_CEILING'],
    ['MAX_TIME_MS', '2500', { maxTimeMS: 2_500, maxTimeMSCeiling: 2_500 }, 'ignored this one'],
    ['MAX_TIME_M_S', '0', { maxTimeMS: 300_000, maxTimeMSCeiling: 3_600_000 }, 'stays at its default'],
    ['MAX_DOCUMENTS_PER_QUERY', '50', { limit: 50, maxLimit: 50 }, 'MONGO_LEASH_LIMIT and MONGO_LEASH_MAX_LIMIT'],
    ['MAX_DOCUMENTS_PER_QUERY', '0', { limit: 1_000_000, maxLimit: 1_000_000 }, 'no limit there'],
    ['MAX_BYTES_PER_QUERY', '10000', { responseBytes: 10_000, maxResponseBytes: 10_000 }, 'MONGO_LEASH_MAX_RESPONSE_BYTES'],
    ['MAX_BYTES_PER_QUERY', '-1', { responseBytes: 40_000, maxResponseBytes: 16_777_216 }, 'MONGO_LEASH_MAX_RESPONSE_BYTES'],
    ['EXPORT_TIMEOUT_MS', '300000', { retentionMs: 300_000 }, 'MONGO_LEASH_RETENTION_MS'],
    ['EXPORT_TIMEOUT_MS', '0', { retentionMs: 1_000 }, 'all that an operation leaves'],
    ['EXPORT_TIMEOUT_MS', '90000000', { retentionMs: 86_400_000 }, 'MONGO_LEASH_RETENTION_MS'],
    ['TRANSPORT', 'http', { http: true }, 'MONGO_LEASH_HTTP'],
    ['TRANSPORT', 'stdio', { http: false }, 'MONGO_LEASH_HTTP'],
    ['HTTP_HOST', 'localhost', { host: 'localhost' }, 'MONGO_LEASH_HOST'],
    ['HTTP_PORT', '0', { port: 0 }, 'MONGO_LEASH_PORT'],
    ['HTTP_BODY_LIMIT', '102400', { maxBodyBytes: 102_400 }, 'MONGO_LEASH_MAX_BODY_BYTES'],
    ['MAX_SESSIONS', '7', { maxSessions: 7 }, 'MONGO_LEASH_MAX_SESSIONS'],
    ['IDLE_TIMEOUT_MS', '60000', { sessionIdleMs: 60_000 }, 'MONGO_LEASH_SESSION_IDLE_MS'],
  ])('MDB_MCP_%s=%s is read, and one line names what it is here', (name, value, config, named) => {
    const loaded = load({ [`MDB_MCP_${name}`]: value });
    expect(loaded.config).toMatchObject(config);
    const lines = loaded.warnings.filter((line) => line.includes(`MDB_MCP_${name}`));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(named);
  });

  it.each(['true', 'false', '1', '0'])('MDB_MCP_READ_ONLY=%s never turns writes on, and never off', (value) => {
    expect(load({ MDB_MCP_READ_ONLY: value }).config.allowWrites).toBe(false);
    expect(load({ MDB_MCP_READ_ONLY: value }).warnings).toEqual([expect.stringContaining('MONGO_LEASH_ALLOW_WRITES')]);
    expect(load({ MDB_MCP_READ_ONLY: value, MONGO_LEASH_ALLOW_WRITES: 'true' }).config.allowWrites).toBe(true);
  });

  it('count for nothing where ours are given, and nothing is said of them then', () => {
    const { config, warnings } = load({ MDB_MCP_INDEX_CHECK: 'true', MONGO_LEASH_INDEX_CHECK: 'false', MDB_MCP_CONNECTION_STRING: 'mongodb://a/', MDB_MCP_MAX_TIME_M_S: '5000' }, { uri: 'mongodb://b/', maxTimeMS: '7000' });
    expect(config).toMatchObject({ indexCheck: false, uri: 'mongodb://b/', maxTimeMS: 7_000, maxTimeMSCeiling: 7_000 });
    expect(warnings).toEqual([expect.stringContaining('--uri'), 'MDB_MCP_MAX_TIME_M_S is read; its name here is MONGO_LEASH_MAX_TIME_MS_CEILING.']);
    expect(load({ MDB_MCP_MAX_DOCUMENTS_PER_QUERY: '500', MONGO_LEASH_MAX_LIMIT: '200' }).config).toMatchObject({ limit: 200, maxLimit: 200 });
    expect(load({ MDB_MCP_MAX_TIME_MS: '1000', MDB_MCP_MAX_TIME_M_S: '2000' }).config).toMatchObject({ maxTimeMS: 2_000, maxTimeMSCeiling: 2_000 });
  });

  it('with a value that means nothing stop the start by their own name', () => {
    expect(() => load({ MDB_MCP_INDEX_CHECK: 'perhaps' })).toThrow('MDB_MCP_INDEX_CHECK must be true or false.');
    expect(() => load({ MDB_MCP_MAX_TIME_M_S: 'soon' })).toThrow('MDB_MCP_MAX_TIME_M_S must be a number.');
    expect(() => load({ MDB_MCP_HTTP_PORT: 'x' })).toThrow('MDB_MCP_HTTP_PORT must be an integer.');
  });

  it('without a counterpart are named in one line, without their values', () => {
    const { warnings } = load({ MDB_MCP_TELEMETRY: 'disabled', MDB_MCP_API_CLIENT_SECRET: 's3cr3t', MDB_MCP_LOGGERS: 'disk' });
    expect(warnings).toEqual(['these variables of the stock server have no counterpart and are ignored: MDB_MCP_API_CLIENT_SECRET, MDB_MCP_LOGGERS, MDB_MCP_TELEMETRY.']);
  });

  it('that protected the stock server by a header stop a start over HTTP that nothing else protects', () => {
    expect(() => load({ MDB_MCP_TRANSPORT: 'http', MDB_MCP_HTTP_HEADERS: '{"x":"s3cr3t"}' })).toThrow(/^MDB_MCP_HTTP_HEADERS is not read here: protect the server with MONGO_LEASH_TOKENS_FILE/);
    expect(load({ MDB_MCP_HTTP_HEADERS: '{"x":"y"}' }).config.http).toBe(false);
  });

  it('are told of on stderr by the program', async () => {
    await toolsWith(['--tools', 'all'], { MDB_MCP_DISABLED_TOOLS: 'find', MDB_MCP_READ_ONLY: '1' });
    const told = server?.stderr.join('\n') ?? '';
    expect(told).toContain('MDB_MCP_DISABLED_TOOLS is read; its name here is MONGO_LEASH_DISABLED_TOOLS.');
    expect(told).toContain('MDB_MCP_READ_ONLY changes nothing');
  });
});
