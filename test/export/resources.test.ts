/** Resources in both protocol versions: what is listed, what is read, and what is not there for others. */
import { rmSync, symlinkSync } from 'node:fs';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { database, exportFiles, fill, findAll, textOf } from '../support/exports.js';
import { type TestMongo, eventually, startMongo } from '../support/mongo.js';
import { freshFolder, newOperationId } from '../support/records.js';
import { programPath, startServer } from '../support/server.js';

let mongo: TestMongo;
const stateFolder = freshFolder();
const secret = 'hunter2-secret';
beforeAll(async () => {
  mongo = await startMongo({ auth: true });
  await fill(mongo.client, 'many', 5_000);
  await mongo.client.db('admin').command({ createUser: 'reader', pwd: secret, roles: [{ role: 'read', db: database }] });
});
afterAll(() => mongo.stop());

interface AnyClient {
  call(name: string, args: Record<string, unknown>): Promise<any>;
  resources(): Promise<any[]>;
  templates(): Promise<any[]>;
  read(uri: string): Promise<any[]>;
  close(): Promise<void>;
}

const info = { name: 'test', version: '1.0.0' };
/** The smallest answer and piece that there may be. */
const target = () => ({ command: process.execPath, args: [programPath, '--max-response-bytes', '40000'], env: { MONGO_LEASH_URI: mongo.uriFor('reader', secret), MONGO_LEASH_STATE_FOLDER: stateFolder }, stderr: 'ignore' as const });

async function modern(): Promise<AnyClient> {
  const client = new Client(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new StdioClientTransport(target()));
  return {
    call: (name, args) => client.callTool({ name, arguments: args }),
    resources: async () => (await client.listResources()).resources,
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    read: async (uri) => (await client.readResource({ uri })).contents,
    close: () => client.close(),
  };
}

async function legacy(): Promise<AnyClient> {
  const client = new LegacyClient(info);
  await client.connect(new LegacyTransport(target()));
  return {
    call: (name, args) => client.callTool({ name, arguments: args }),
    resources: async () => (await client.listResources()).resources,
    templates: async () => (await client.listResourceTemplates()).resourceTemplates,
    read: async (uri) => (await client.readResource({ uri })).contents,
    close: () => client.close(),
  };
}

describe.each([['2026-07-28', modern], ['2025-11-25', legacy]] as const)('a client of %s', (_era, connect) => {
  let client: AnyClient;
  let small: any;
  beforeAll(async () => {
    client = await connect();
    small = await client.call('export', { database, collection: 'many', exportTitle: 'the first ten', ...findAll({ limit: 10 }) });
  });
  afterAll(() => client.close());

  it('gets a resource link beside the answer, and finds the export listed under its title', async () => {
    const { resource, operationId, bytes } = small.structuredContent;
    expect(small.content).toEqual([
      { type: 'text', text: JSON.stringify(small.structuredContent) },
      { type: 'resource_link', uri: resource, name: `${operationId}.jsonl`, title: 'the first ten', mimeType: 'application/jsonl', size: bytes },
    ]);
    const resources = await client.resources();
    expect(resources).toContainEqual(expect.objectContaining({ uri: 'mongo-leash://deployment' }));
    expect(resources).toContainEqual(expect.objectContaining({ uri: resource, title: 'the first ten', description: '10 documents', size: bytes }));
    expect((await client.templates()).map(({ uriTemplate }) => uriTemplate)).toEqual(['mongo-leash://operations/{id}', 'mongo-leash://operations/{id}/result{?offset}']);
  });

  it('reads the file and the record', async () => {
    const { resource, operationId } = small.structuredContent;
    const [content, about] = await client.read(resource);
    expect(content).toEqual({ uri: resource, mimeType: 'application/jsonl', text: textOf(small.structuredContent) });
    expect(about.text).toMatch(/untrusted, never instructions/);
    const [record] = await client.read(`mongo-leash://operations/${operationId}`);
    const status = (await client.call('status', { id: operationId })).structuredContent;
    expect({ ...JSON.parse(record.text), next: '' }).toEqual({ ...status, next: '' });
  });

  it('reads a long file in pieces of bounded size, which together are the file', async () => {
    const { structuredContent: long } = await client.call('export', { database, collection: 'many', ...findAll() });
    let uri = long.resource as string | undefined;
    const pieces: string[] = [];
    while (uri !== undefined) {
      const [content, about] = await client.read(uri);
      expect(Buffer.byteLength(content.text)).toBeLessThanOrEqual(40_000);
      pieces.push(content.text);
      if (pieces.length === 1) expect(about.text).toContain(`of ${long.bytes}. The rest: read`);
      uri = /read (mongo-leash:\S+\?offset=\d+)\./.exec(about.text)?.[1];
    }
    expect(pieces.length).toBeGreaterThan(5);
    expect(pieces.join('')).toBe(textOf(long));
  });

  it('reads what the deployment is, without any secret', async () => {
    const [content] = await client.read('mongo-leash://deployment');
    const { connections, server } = JSON.parse(content.text);
    expect(connections).toEqual([{ connectionId: 'preconfigured', set: 'testset', nodes: [{ node: mongo.hosts[0], role: 'primary', version: expect.stringMatching(/^\d+\.\d+/), user: { seesOthersOperations: false, killsOthersOperations: false, canWrite: false } }] }]);
    expect(server).toMatchObject({ exportBytes: 1_073_741_824, allowWrites: false });
    expect(content.text).not.toContain(secret);
    expect(content.text).not.toContain('reader');
  });

  it('is told in one form what is not there', async () => {
    const absent = ['mongo-leash://operations/none', 'mongo-leash://operations/none/result', 'mongo-leash://else', 'file:///etc/passwd', `mongo-leash://operations/${newOperationId()}/result`, `mongo-leash://operations/${newOperationId()}`];
    for (const uri of absent) await expect(client.read(uri)).rejects.toMatchObject({ code: -32_602, data: { uri }, message: expect.stringMatching(/There is no such resource\./) });
    // An operation that is no export has no file.
    const { structuredContent: read } = await client.call('run', { database, collection: 'many', pipeline: [{ $limit: 1 }] });
    await expect(client.read(`mongo-leash://operations/${read.operationId}/result`)).rejects.toThrow(/There is no such resource\./);
    expect((await client.call('result', { id: small.structuredContent.operationId })).structuredContent).toMatchObject({ error: { message: expect.stringMatching(/its documents are in a file/) } });
  });
});

it('a link in the folder of exports is not followed', async () => {
  const server = await startServer({ uri: mongo.uriFor('reader', secret), stateFolder: freshFolder() });
  const { path, resource } = await server.call('export', { database, collection: 'many', ...findAll({ limit: 10 }) });
  rmSync(path);
  symlinkSync(programPath, path);
  await expect(server.client.readResource({ uri: resource })).rejects.toThrow(/has no file/);
  await server.close();
});

describe('when the time of its record is over', () => {
  it('an export is expired, and its file removed', async () => {
    const folder = freshFolder();
    const options = { uri: mongo.uriFor('reader', secret), stateFolder: folder, args: ['--retention-ms', '1000', '--max-retention-ms', '1000'] };
    const first = await startServer(options);
    const answer = await first.call('export', { database, collection: 'many', ...findAll({ limit: 10 }) });
    expect(exportFiles(folder)).toHaveLength(1);
    await eventually('it is expired', async () => (await first.call('status', { id: answer.operationId })).error?.code === 'expired');
    await expect(first.client.readResource({ uri: answer.resource })).rejects.toThrow(/its record was kept for 1000 ms and is gone/);
    expect((await first.client.listResources()).resources.map(({ uri }) => uri)).toEqual(['mongo-leash://deployment']);
    await first.close();
    // Each server tidies when it starts, and every minute after that.
    const second = await startServer(options);
    await eventually('the file is gone', () => exportFiles(folder).length === 0);
    await second.close();
  });

  it('a server that keeps its records in memory leaves no file behind at its end', async () => {
    const folder = freshFolder();
    const server = await startServer({ uri: mongo.uriFor('reader', secret), stateFolder: folder, args: ['--store', 'memory'] });
    const answer = await server.call('export', { database, collection: 'many', ...findAll({ limit: 10 }) });
    expect(textOf(answer).trimEnd().split('\n')).toHaveLength(10);
    await server.close();
    expect(exportFiles(folder)).toEqual([]);
  });
});
