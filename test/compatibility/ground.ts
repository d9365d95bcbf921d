/** The stock server and ours on one database, spoken to by the same client, and a witness with a connection of its own. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { installOutside } from '../../scripts/outside.mjs';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { startRewritingTunnel } from '../support/rewriting-tunnel.js';
import { type TestServer, startServer } from '../support/server.js';

export const stockPackage = 'mongodb-mcp-server@3.0.4';

/** Where it is installed, or why it is not. What it can do without is Atlas Local and keychains, and half of its size. */
export const installed = await installOutside([stockPackage], { withoutOptional: true });

const code = (value: number) => `\x10code\0${String.fromCharCode(value & 0xff, value >> 8, 0, 0)}`;
/** What MongoDB 7.0 and later answer to $listSearchIndexes where there is no search, in place of what 6.0 says: that it knows no such stage. */
const withoutSearch = (message: string) => message.replaceAll(code(40_324), code(31_082));

/** For the title of a suite that may be skipped. */
export const whetherSkipped = installed.unavailable === undefined ? '' : ` (skipped: ${installed.unavailable})`;

export interface Ground {
  mongo: TestMongo;
  /** The server version, such as 6.0.5. */
  version: string;
  stock: TestServer;
  ours: TestServer;
  /** Connection strings for `connect`, by the names that the calls know. */
  uris: Record<'narrow' | 'searchless', string>;
  stop(): Promise<void>;
}

export async function startGround(prepare: (mongo: TestMongo) => Promise<void>): Promise<Ground> {
  const mongo = await startMongo({ auth: true });
  await prepare(mongo);
  const { version } = (await mongo.client.db('admin').command({ buildInfo: 1 })) as unknown as { version: string };
  const tunnel = await startRewritingTunnel(mongo.hosts[0] ?? '', withoutSearch);
  const home = mkdtempSync(join(tmpdir(), 'mongo-leash-stock-'));
  const program = join(installed.folder ?? '', 'node_modules/mongodb-mcp-server/dist/esm/index.js');
  const [stock, ours] = await Promise.all([
    startServer({ command: [process.execPath, program, '--readOnly'], env: { HOME: home, MDB_MCP_CONNECTION_STRING: mongo.uri, MDB_MCP_TELEMETRY: 'disabled', DO_NOT_TRACK: '1' } }),
    startServer({ uri: mongo.uri }),
  ]);
  return {
    mongo,
    version,
    stock,
    ours,
    uris: {
      narrow: mongo.uriFor('narrow', 'narrow-secret'),
      searchless: `${mongo.uri.replace(mongo.hosts[0] ?? '', tunnel.host).split('?')[0]}?directConnection=true&authSource=admin`,
    },
    async stop() {
      await Promise.all([stock.close(), ours.close()]);
      await tunnel.close();
      await mongo.stop();
      rmSync(home, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    },
  };
}
