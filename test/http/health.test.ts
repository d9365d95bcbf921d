/** What those are told who keep the server running: whether the process lives, and whether its database answers. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpTestServer, startHttpServer } from '../support/http-server.js';
import { type TestMongo, eventually, startMongo } from '../support/mongo.js';

let mongo: TestMongo;
let host: string;
let server: HttpTestServer;
beforeAll(async () => {
  mongo = await startMongo();
  host = mongo.hosts[0] ?? '';
  server = await startHttpServer({ uri: mongo.uri });
});
afterAll(async () => {
  await server.stop();
  await mongo.stop();
});

const statusAt = async (path: string) => (await fetch(server.at(path))).status;
const turns = (path: string, status: number) => eventually(`${path} answers ${status}`, async () => (await statusAt(path)) === status, 20_000);

describe('readyz', () => {
  it('is 200 while the database answers, and says nothing of it', async () => {
    const response = await fetch(server.at('/readyz'));
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ ready: true });
  });

  it('is 503 within some seconds while it is frozen, and 200 when it is back; the process lives on', async () => {
    mongo.freeze(host);
    try {
      await turns('/readyz', 503);
      const askedAt = performance.now();
      expect(await statusAt('/readyz')).toBe(503);
      expect(performance.now() - askedAt).toBeLessThan(5_000);
      expect(await statusAt('/healthz')).toBe(200);
      const body = await (await fetch(server.at('/readyz'))).text();
      expect(body).not.toContain(host);
    } finally {
      mongo.thaw(host);
    }
    await turns('/readyz', 200);
  });

  it('is 503 while the database is down, and 200 when it is back', async () => {
    const restarted = mongo.restart(host);
    await turns('/readyz', 503);
    expect(await statusAt('/healthz')).toBe(200);
    await restarted;
    await turns('/readyz', 200);
  });
});

it('a server whose database was never there starts, lives, and is not ready', async () => {
  const lonely = await startHttpServer({ uri: 'mongodb://127.0.0.1:9/' });
  try {
    expect((await fetch(lonely.at('/healthz'))).status).toBe(200);
    expect((await fetch(lonely.at('/readyz'))).status).toBe(503);
  } finally {
    expect((await lonely.stop()).code).toBe(0);
  }
});
