/** A mongod with the real program on it, and every answer held against what holds for all of them. */

import { expect } from 'vitest';
import { type TestMongo, type TestMongoOptions, eventually, startMongo, taggedAs } from './mongo.js';
import { type TestServer, type TestServerOptions, startServer } from './server.js';

export interface Checked {
  mongo: TestMongo;
  server: TestServer;
  /** A further server on the same mongod; ended with the rest. */
  another(options?: Omit<TestServerOptions, 'uri'> & { uri?: string }): Promise<TestServer>;
  stop(): Promise<void>;
}

export async function startChecked(options: Omit<TestServerOptions, 'uri'> = {}, mongoOptions: TestMongoOptions = {}): Promise<Checked> {
  const mongo = await startMongo(mongoOptions);
  const started: TestServer[] = [];
  const another: Checked['another'] = async (more = {}) => {
    const server = checked(await startServer({ uri: mongo.uri, ...more }));
    started.push(server);
    // With the tools listed, the client holds every answer against its output schema.
    if (more.raw !== true) await server.client.listTools();
    return server;
  };
  const server = await another(options);
  return {
    mongo,
    server,
    another,
    async stop() {
      await Promise.all(started.map((each) => each.close()));
      await mongo.stop();
    },
  };
}

/** The same server, whose every answer has as its one text the same JSON as its structure. */
export function checked(server: TestServer): TestServer {
  const callRaw: TestServer['callRaw'] = async (...call) => {
    const result = await server.callRaw(...call);
    expect(result.content).toHaveLength(1);
    expect(JSON.parse(result.content[0].text)).toEqual(result.structuredContent);
    return result;
  };
  return { ...server, callRaw, call: async (...call) => (await callRaw(...call)).structuredContent };
}

/** JavaScript that sleeps in the database, for servers with --allow-js: long without making the machine busy. */
export function sleeping(ms = 30_000): object[] {
  return [{ $match: { $expr: { $function: { body: `function(){sleep(${ms});return true}`, args: [], lang: 'js' } } } }];
}

/** Starts it and comes back when the database shows it. */
export async function startDetached({ server, mongo }: Pick<Checked, 'server' | 'mongo'>, args: Record<string, unknown>): Promise<any> {
  const handle = await server.call('run', { waitMs: 0, ...args });
  expect(handle, JSON.stringify(handle)).toMatchObject({ wait: 'detached', outcome: null });
  await eventually('the database shows the operation', async () => (await taggedAs(mongo.client, handle.operationId)).length > 0);
  return handle;
}
