/** Starts of the program: with and without a connection string, from each place that may give one, and the options that only answer. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadConfig } from '../../src/config/load.js';
import { optionRows } from '../../src/config/options.js';
import { stderrLines } from '../support/busy-server.js';
import { productTools } from '../../src/mcp/tools/all.js';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { programPath, startServer } from '../support/server.js';

const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
const toolNames = productTools.map(({ name }) => name);

let mongo: TestMongo;
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection<{ _id: number }>('things').insertMany([{ _id: 1 }, { _id: 2 }]);
});
afterAll(() => mongo.stop());

const count = { database: 'app', collection: 'things', pipeline: [{ $count: 'n' }] };
/** The log lines of a server that is a warning or worse. */
const warnings = (server: { stderr: string[] }) => stderrLines(server).filter((line) => (line['level'] as number) >= 40).map((line) => line['msg'] as string);

describe('without a connection string', () => {
  it('it starts, lists its tools, and each call says how to set one', async () => {
    const server = await startServer();
    const { tools } = await server.client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(toolNames);
    const id = '0'.repeat(26);
    const calls: [string, object][] = [['run', count], ['status', { id }], ['kill', { id }], ['operations', {}], ['result', { id }]];
    for (const [tool, args] of calls) {
      const result = await server.callRaw(tool, { ...args });
      expect(result.isError, tool).toBe(true);
      expect(result.structuredContent.error.code, tool).toBe('not_configured');
      expect(result.structuredContent.next, tool).toContain('MONGO_LEASH_URI');
    }
    expect(await server.close()).toEqual({ code: 0, signal: null });
  });

  it('an empty variable is none, as a client writes it for one that is not set', async () => {
    const server = await startServer({ env: { MONGO_LEASH_URI: '' } });
    expect(await server.call('run', count)).toMatchObject({ error: { code: 'not_configured' } });
    await server.close();
  });
});

describe('the connection string', () => {
  it('comes from MONGO_LEASH_URI, without a warning', async () => {
    const server = await startServer({ uri: mongo.uri });
    expect(await server.call('run', count)).toMatchObject({ documents: [{ n: 2 }] });
    await server.close();
    expect(warnings(server)).toEqual([]);
  });

  it('comes from --uri, and the log says why the environment is preferred', async () => {
    const server = await startServer({ args: ['--uri', mongo.uri] });
    expect(await server.call('run', count)).toMatchObject({ documents: [{ n: 2 }] });
    await server.close();
    expect(warnings(server)).toEqual([expect.stringMatching(/--uri.*visible.*MONGO_LEASH_URI/)]);
  });

  it('comes from --uri before the environment', async () => {
    const server = await startServer({ uri: 'mongodb://127.0.0.1:1/', args: ['--uri', mongo.uri] });
    expect(await server.call('run', count)).toMatchObject({ documents: [{ n: 2 }] });
    await server.close();
  });

  it.each<Record<string, string>>([{}, { MONGO_LEASH_URI: '' }])("comes from the stock server's variable when there is no other (%j), and a line on stderr says so", async (env) => {
    const server = await startServer({ env: { ...env, MDB_MCP_CONNECTION_STRING: mongo.uri } });
    expect(await server.call('run', count)).toMatchObject({ documents: [{ n: 2 }] });
    await server.close();
    expect(warnings(server)).toEqual([expect.stringMatching(/MDB_MCP_CONNECTION_STRING.*MONGO_LEASH_URI/)]);
  });

  it("comes from MONGO_LEASH_URI before the stock server's variable, without a warning", async () => {
    const server = await startServer({ uri: mongo.uri, env: { MDB_MCP_CONNECTION_STRING: 'mongodb://127.0.0.1:1/' } });
    expect(await server.call('run', count)).toMatchObject({ documents: [{ n: 2 }] });
    await server.close();
    expect(warnings(server)).toEqual([]);
  });
});

describe('serve is the default command', () => {
  it.each([{ args: [] }, { args: ['serve'] }, { args: ['serve', '--max-operations', '2'] }])('$args serves', async ({ args }) => {
    const server = await startServer({ uri: mongo.uri, args });
    expect(server.client.getServerVersion()).toMatchObject({ name: 'mongo-leash', version });
    expect(await server.call('run', count)).toMatchObject({ documents: [{ n: 2 }] });
    expect(await server.close()).toEqual({ code: 0, signal: null });
  });
});

describe('an option that is given by flag or by variable is used', () => {
  it('a limit by flag wins over one by variable', async () => {
    const server = await startServer({ uri: mongo.uri, args: ['--limit', '1'], env: { MONGO_LEASH_LIMIT: '2', MONGO_LEASH_LOG_LEVEL: 'warn' } });
    expect(await server.call('run', { ...count, pipeline: [] })).toMatchObject({ returned: 1, more: true });
    await server.close();
    expect(server.stderr.filter((line) => !line.startsWith('{"shutdown"'))).toEqual([]);
  });

  it('a variable that looks like ours and is none is named in a warning', async () => {
    const server = await startServer({ uri: mongo.uri, env: { MONGO_LEASH_MAXTIME: '5' } });
    await server.close();
    expect(warnings(server)).toEqual([expect.stringContaining('MONGO_LEASH_MAXTIME')]);
  });
});

describe('options of the HTTP server', () => {
  it('that are given without --http are named in a warning, by the way they were given', async () => {
    const server = await startServer({ uri: mongo.uri, args: ['--port', '0'], env: { MONGO_LEASH_TOKENS: 'alice leash:read tok-0123456789abcdef', MONGO_LEASH_HOST: '' } });
    await server.close();
    expect(warnings(server)).toEqual([expect.stringMatching(/without --http.*: --port, MONGO_LEASH_TOKENS\.$/)]);
    expect(server.stderr.join('\n')).not.toContain('tok-0123456789abcdef');
  });

  it('that are lists are joined when they are given twice, and split at commas', () => {
    const config = (flags: object, env = {}) => loadConfig(flags, env).config;
    expect(config({ allowedHosts: ['a.example.com', 'b.example.com'] }).allowedHosts).toEqual(['a.example.com', 'b.example.com']);
    expect(config({}, { MONGO_LEASH_ALLOWED_HOSTS: 'a.example.com, [::2] ,' }).allowedHosts).toEqual(['a.example.com', '[::2]']);
    expect(config({}).allowedOrigins).toEqual([]);
  });

  it('take an IPv6 address with and without brackets', () => {
    for (const host of ['::1', '[::1]']) expect(loadConfig({ host }, {}).config.host).toBe('::1');
  });
});

describe('options that only answer', () => {
  const answer = (args: string[]) => spawnSync(process.execPath, [programPath, ...args], { input: '', encoding: 'utf8', timeout: 20_000 });

  it('--version tells the version of the package, with exit code 0', () => {
    expect(answer(['--version'])).toMatchObject({ status: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('serve --help lists every option with its variable, with exit code 0', () => {
    const { status, stdout } = answer(['serve', '--help']);
    expect(status).toBe(0);
    for (const { flag, env } of Object.values(optionRows)) {
      if (flag !== null) expect(stdout).toContain(`--${flag}`);
      expect(stdout).toContain(env);
    }
    expect(stdout).toMatch(/Only from the environment:\n {2}MONGO_LEASH_TOKENS /);
    expect(stdout).not.toContain('--tokens ');
  });

  it('--help names the command serve, with exit code 0', () => {
    const { status, stdout } = answer(['--help']);
    expect(status).toBe(0);
    expect(stdout).toContain('serve');
  });
});
