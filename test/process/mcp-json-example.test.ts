/** `.mcp.json.example`, started as Claude Code starts it: its command, its arguments, its environment. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { stderrLines } from '../support/busy-server.js';
import { expand, readServerEntry } from '../support/mcp-json.js';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

const example = new URL('../../.mcp.json.example', import.meta.url);
const clone = fileURLToPath(new URL('../../', import.meta.url)).replace(/\/$/, '');
const count = { database: 'app', collection: 'things', pipeline: [{ $count: 'n' }] };

let mongo: TestMongo;
let elsewhere: string;
beforeAll(async () => {
  elsewhere = mkdtempSync(join(tmpdir(), 'a-project-'));
  mongo = await startMongo();
  await mongo.client.db('app').collection('things').insertMany([{}, {}, {}]);
});
afterAll(async () => {
  rmSync(elsewhere, { recursive: true });
  await mongo.stop();
});

/** The program that a client starts has the client's own variables too, with those of the entry on top. */
async function startExample(variables: Record<string, string>, cwd: string): Promise<TestServer> {
  const { command, args, env } = readServerEntry(example, 'mongo-leash', variables);
  return await startServer({ command: [command, ...args], env: { ...variables, ...env }, cwd });
}

it('with MONGO_LEASH_HOME and MONGO_LEASH_URI set, it starts from the folder of any project and reaches the database', async () => {
  const server = await startExample({ MONGO_LEASH_HOME: clone, MONGO_LEASH_URI: mongo.uri }, elsewhere);
  expect(await server.call('run', count)).toMatchObject({ documents: [{ n: 3 }] });
  expect(await server.close()).toEqual({ code: 0, signal: null });
  expect(stderrLines(server).filter(({ level }) => level >= 40)).toEqual([]);
});

it('with nothing set it starts in the folder of the clone, lists its tools, and says how to set a connection string', async () => {
  const server = await startExample({}, clone);
  expect((await server.client.listTools()).tools.map(({ name }) => name)).toContain('run');
  expect(await server.call('run', count)).toMatchObject({ error: { code: 'not_configured' }, next: expect.stringContaining('MONGO_LEASH_URI') });
  expect(await server.close()).toEqual({ code: 0, signal: null });
});

it("with the stock server's variable alone it reaches the database too", async () => {
  const server = await startExample({ MONGO_LEASH_HOME: clone, MDB_MCP_CONNECTION_STRING: mongo.uri }, elsewhere);
  expect(await server.call('run', count)).toMatchObject({ documents: [{ n: 3 }] });
  await server.close();
});

it('a password in the variable does not come out anywhere, also when the database refuses it', async () => {
  const server = await startExample({ MONGO_LEASH_HOME: clone, MONGO_LEASH_URI: mongo.uri.replace('mongodb://', 'mongodb://user:s3cr3tPassword@') }, elsewhere);
  const answer = await server.call('run', count);
  expect(answer.error.code).toBe('authentication_failed');
  await server.close();
  expect(`${JSON.stringify(answer)}${server.stderr.join('')}${server.stdout.join('')}`).not.toContain('s3cr3tPassword');
});

it.each([
  ['${A}/x', 'a/x'],
  ['${A:-b}', 'a'],
  ['${EMPTY:-b}', ''],
  ['${NONE:-b/c:d}', 'b/c:d'],
  ['${NONE:-}', ''],
  ['$A ${A}${A}', '$A aa'],
])('%s is expanded to %j', (text, expanded) => {
  expect(expand(text, { A: 'a', EMPTY: '' })).toBe(expanded);
});
it('a variable that is not set and has no default is an error', () => {
  expect(() => expand('${NONE}', {})).toThrow('NONE');
});
