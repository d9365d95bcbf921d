/** `serve --demo`: a server with an in-memory replica set of its own, which ends with it, however that ends. */
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { reportOf } from '../support/busy-server.js';
import { sleeping } from '../support/checked.js';
import { eventually } from '../support/mongo.js';
import { type ProcessRow, descendants, isAlive } from '../support/processes.js';
import { type TestServer, type TestServerOptions, startServer } from '../support/server.js';

let folders: string[] = [];
afterEach(() => {
  // What a killed process leaves: its mongod ends by itself, its files stay.
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  folders = [];
});

/** The mongods of the server, once there are any. */
async function mongodsOf(server: TestServer): Promise<ProcessRow[]> {
  const found = await eventually('the server has started a mongod', () => {
    const mongods = descendants(server.process.pid ?? 0).filter(({ command }) => command.includes('--dbpath'));
    return mongods.length > 0 ? mongods : null;
  }, 30_000);
  folders.push(...found.map(({ command }) => command[command.indexOf('--dbpath') + 1] ?? ''));
  return found;
}

async function startDemo(options: TestServerOptions = {}): Promise<{ server: TestServer; mongods: ProcessRow[] }> {
  const server = await startServer({ args: ['serve', '--demo', '--allow-js'], ...options });
  return { server, mongods: await mongodsOf(server) };
}

const noneLeft = (mongods: ProcessRow[], withinMs: number) => eventually('none of its mongods is left', () => mongods.every(({ pid }) => !isAlive(pid)), withinMs);

it('serves sample data, and with the end of stdin its mongod ends too', async () => {
  const { server, mongods } = await startDemo();
  const answer = await server.call('run', { database: 'shop', collection: 'orders', pipeline: [{ $lookup: { from: 'customers', localField: 'customer', foreignField: '_id', as: 'who' } }], limit: 1 });
  expect(answer.documents).toEqual([{ _id: 0, customer: 0, amount: 0, placedAt: expect.anything(), who: [{ _id: 0, name: 'Customer 0', country: 'DE' }] }]);
  const since = performance.now();
  expect(await server.close()).toEqual({ code: 0, signal: null });
  expect(performance.now() - since).toBeLessThan(5_000);
  await noneLeft(mongods, 1_000);
});

describe('with an operation that runs in it', () => {
  it('SIGTERM stops the operation, proves it, and then ends the mongod', async () => {
    const { server, mongods } = await startDemo();
    const { operationId } = await server.call('run', { database: 'shop', collection: 'orders', pipeline: sleeping(), waitMs: 0 });
    await eventually('status has seen it running', async () => (await server.call('status', { id: operationId })).server === 'running');
    const since = performance.now();
    server.process.kill('SIGTERM');
    expect(await server.exited).toEqual({ code: 0, signal: null });
    expect(performance.now() - since).toBeLessThan(5_000);
    expect(reportOf(server)).toMatchObject({ allProven: true, operations: [{ operationId, verdict: 'stopped' }] });
    await noneLeft(mongods, 1_000);
  });

  it('SIGKILL leaves no mongod behind for long', async () => {
    const { server, mongods } = await startDemo();
    await server.call('run', { database: 'shop', collection: 'orders', pipeline: sleeping(), waitMs: 0 });
    server.process.kill('SIGKILL');
    expect(await server.exited).toEqual({ code: null, signal: 'SIGKILL' });
    await noneLeft(mongods, 20_000);
  });
});

it('without a mongod to start, the start stops, and says what to do', async () => {
  const server = await startServer({ args: ['--demo'], env: { MONGOMS_SYSTEM_BINARY: '/no/such/mongod' }, raw: true });
  expect(await server.exited).toEqual({ code: 2, signal: null });
  expect(server.stderr.at(-1)).toMatch(/^mongo-leash: --demo: .*\/no\/such\/mongod.*MONGOMS_SYSTEM_BINARY/);
});

it('the progress of a download does not go to stdout, which belongs to JSON-RPC', async () => {
  // A mirror that has something, and no mongod: the download comes to its end, and what was downloaded is of no use.
  const mirror = createServer((_request, response) => { response.writeHead(200, { 'content-length': 4_096 }).end(Buffer.alloc(4_096)); });
  await new Promise<void>((resolve) => { mirror.listen(0, '127.0.0.1', resolve); });
  const folder = mkdtempSync(join(tmpdir(), 'mongod-download-'));
  folders.push(folder);
  const { port } = mirror.address() as AddressInfo;
  const env = { MONGOMS_SYSTEM_BINARY: '', MONGOMS_DOWNLOAD_MIRROR: `http://127.0.0.1:${port}`, MONGOMS_USE_HTTP: 'true', MONGOMS_DOWNLOAD_DIR: folder, MONGOMS_PREFER_GLOBAL_PATH: 'false' };
  const server = await startServer({ args: ['--demo'], env, raw: true });
  let stdout = '';
  server.process.stdout?.on('data', (chunk) => { stdout += String(chunk); });
  expect(await server.exited).toEqual({ code: 2, signal: null });
  expect(server.stderr.join('\n')).toContain('Downloading MongoDB');
  expect(stdout).toBe('');
  mirror.close();
});

it('a signal in the moment in which it starts its mongod leaves none behind for long', async () => {
  const left: ProcessRow[] = [];
  for (let count = 0; count < 3; count += 1) {
    const server = await startServer({ args: ['--demo'], raw: true });
    let mongods: ProcessRow[] = [];
    // Without a pause: what would end the mongod is started a few milliseconds later.
    while (mongods.length === 0) {
      await new Promise((resolve) => { setImmediate(resolve); });
      mongods = descendants(server.process.pid ?? 0).filter(({ command }) => command.includes('--dbpath'));
    }
    server.process.kill('SIGTERM');
    expect(await server.exited).toEqual({ code: null, signal: 'SIGTERM' });
    folders.push(...mongods.map(({ command }) => command[command.indexOf('--dbpath') + 1] ?? ''));
    left.push(...mongods);
  }
  await noneLeft(left, 20_000);
});

it('the end of stdin while it still starts ends it in order, once it has started', async () => {
  const server = await startServer({ args: ['--demo'], raw: true });
  const mongods = await mongodsOf(server);
  server.process.stdin?.end();
  expect(await server.exited).toEqual({ code: 0, signal: null });
  expect(reportOf(server)).toMatchObject({ shutdown: 'end of stdin', allProven: true });
  await noneLeft(mongods, 1_000);
});
