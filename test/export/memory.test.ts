/** However much an export writes, the memory of the server stays where it was. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { database, fill, findAll } from '../support/exports.js';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;
beforeAll(async () => {
  mongo = await startMongo();
  await fill(mongo.client, 'large', 20_000, 15_000);
  server = await startServer({ uri: mongo.uri });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

/** The most memory that the process has had since it was asked to forget, in bytes; Linux only. */
const peak = () => Number(/VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${server.process.pid}/status`, 'utf8'))?.[1]) * 1_024;

describe.skipIf(process.platform !== 'linux')('an export of 300 MB', () => {
  it('takes no more memory than some of its batches, which the server sends 16 MB at a time', async () => {
    const small = await server.call('export', { database, collection: 'large', ...findAll({ limit: 2_000 }) });
    expect(small).toMatchObject({ documents: 2_000, complete: true });
    const before = peak();
    const answer = await server.call('export', { database, collection: 'large', ...findAll() });
    expect(answer).toMatchObject({ documents: 20_000, complete: true });
    expect(answer.bytes).toBeGreaterThan(300_000_000);
    expect(peak() - before).toBeLessThan(150_000_000);
  });
});
