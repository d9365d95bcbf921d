/** Clients of both eras over stdio: the 2026-07-28 protocol by the 2.x client, the 2025-11-25 one by the 1.x client and by the 2.x one. */
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { productTools } from '../../src/mcp/tools/all.js';
import { sleeping } from '../support/checked.js';
import { type TestMongo, eventually, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { programPath } from '../support/server.js';

let mongo: TestMongo;
beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('few').insertMany([{}, {}]);
});
afterAll(() => mongo.stop());

interface AnyClient {
  version(): string | undefined;
  tools(): Promise<{ name: string; inputSchema: unknown; outputSchema?: unknown; annotations?: unknown; title?: string | undefined; description?: string | undefined }[]>;
  call(name: string, args: Record<string, unknown>, options?: { signal?: AbortSignal; onprogress?: () => void }): Promise<any>;
  close(): Promise<void>;
}

const info = { name: 'test', version: '1.0.0' };
const target = () => ({ command: process.execPath, args: [programPath, '--allow-js'], env: { MONGO_LEASH_URI: mongo.uri }, stderr: 'ignore' as const });
const structured = (result: any) => {
  expect(JSON.parse(result.content[0].text)).toEqual(result.structuredContent);
  return result.structuredContent;
};

async function client2(mode: 'legacy' | 'auto' | { pin: string }): Promise<AnyClient> {
  const client = new Client(info, { versionNegotiation: { mode } });
  await client.connect(new StdioClientTransport(target()));
  return {
    version: () => client.getNegotiatedProtocolVersion(),
    tools: async () => (await client.listTools()).tools,
    call: async (name, args, options) => structured(await client.callTool({ name, arguments: args }, { timeout: 60_000, ...options })),
    close: () => client.close(),
  };
}

async function client1(): Promise<AnyClient> {
  const client = new LegacyClient(info);
  const transport: Transport = new LegacyTransport(target());
  let version: string | undefined;
  transport.setProtocolVersion = (negotiated) => { version = negotiated; };
  await client.connect(transport);
  return {
    version: () => version,
    tools: async () => (await client.listTools()).tools,
    call: async (name, args, options) => structured(await client.callTool({ name, arguments: args }, undefined, { timeout: 60_000, ...options })),
    close: () => client.close(),
  };
}

describe.each<[string, string, () => Promise<AnyClient>]>([
  ['2026-07-28', 'the 2.x client that wants this version', () => client2({ pin: '2026-07-28' })],
  ['2026-07-28', 'the 2.x client that asks what there is', () => client2('auto')],
  ['2025-11-25', 'the 2.x client of the 2025 era', () => client2('legacy')],
  ['2025-11-25', 'the 1.x client', client1],
])('in %s, with %s', (version, _title, connect) => {
  const run = { database: 'app', collection: 'few' };
  let client: AnyClient;
  beforeEach(async () => { client = await connect(); });
  afterEach(async () => {
    await client.close();
    expect(await tagged(mongo.client)).toEqual([]);
  });

  it('the version is agreed on, and the tools are listed with their schemas', async () => {
    expect(client.version()).toBe(version);
    const tools = await client.tools();
    expect(tools.map(({ name }) => name)).toEqual(productTools.map(({ name }) => name));
    for (const tool of tools) expect(tool).toMatchObject({ title: expect.any(String), description: expect.any(String), inputSchema: { type: 'object' }, annotations: { readOnlyHint: expect.any(Boolean) } });
    expect(tools.filter(({ outputSchema }) => outputSchema !== undefined).map(({ name, outputSchema }) => [name, (outputSchema as { type: unknown }).type])).toEqual([['run', 'object'], ['kill', 'object']]);
  });

  it('a run returns its documents, and one that is wrong says so', async () => {
    await client.tools();
    expect(await client.call('run', { ...run, pipeline: [{ $count: 'n' }] })).toMatchObject({ outcome: 'succeeded', documents: [{ n: 2 }] });
    expect(await client.call('run', { ...run, pipeline: [{ $out: 'x' }] })).toMatchObject({ error: { code: 'refused_by_policy' } });
  });

  it('a call that is cancelled is gone from the database within 2 s, and status of a later call says that it was stopped', async () => {
    const abort = new AbortController();
    const call = client.call('run', { ...run, pipeline: sleeping(), waitMs: 60_000 }, { signal: abort.signal });
    const [row] = await eventually('the database shows it', async () => {
      const rows = await tagged(mongo.client);
      return rows.length === 1 ? rows : null;
    });
    const id = String(row?.['command'].comment).split('.')[3] ?? '';
    abort.abort('the user stopped it');
    await expect(call).rejects.toThrow();
    await eventually('it is gone', async () => (await taggedAs(mongo.client, id)).length === 0, 2_000);
    expect(await client.call('status', { id, waitMs: 5_000 })).toMatchObject({ wait: 'cancelled', outcome: 'killed', verdict: 'stopped', cause: 'client_cancelled' });
  });

  it('one that is handed over is found by status, told of by progress, and stopped by kill', async () => {
    let told = 0;
    const handle = await client.call('run', { ...run, pipeline: sleeping(), waitMs: 1_500 }, { onprogress: () => { told += 1; } });
    expect(handle).toMatchObject({ wait: 'detached', server: 'running', outcome: null });
    expect(told).toBeGreaterThan(0);
    expect(await client.call('status', { id: handle.operationId })).toMatchObject({ server: 'running' });
    expect(await client.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped' });
    expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);
  });

  it('a client that closes its side leaves nothing on the database', async () => {
    await client.call('run', { ...run, pipeline: sleeping(), waitMs: 0 });
    await eventually('the database shows it', async () => (await tagged(mongo.client)).length === 1);
    const closed = client.close();
    await eventually('it is gone', async () => (await tagged(mongo.client)).length === 0, 2_000);
    await closed;
  });
});
