/** mcp-remote: what a client that only knows stdio uses to reach a server over HTTP; it stands between a client of the 2025 era and ours. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe } from 'vitest';
import { installOutside } from '../../scripts/outside.mjs';
import { type Connect, connectSdk1 } from './clients.js';
import { type Ground, describeLane, startGround } from './suite.js';

const { folder = '', unavailable } = await installOutside(['mcp-remote@0.15.1']);

describe.skipIf(unavailable !== undefined)(`mcp-remote${unavailable === undefined ? '' : ` (skipped: ${unavailable})`}`, () => {
  let ground: Ground;
  let configFolder: string;
  beforeAll(async () => {
    configFolder = mkdtempSync(join(tmpdir(), 'mongo-leash-mcp-remote-'));
    ground = await startGround();
  });
  afterAll(async () => {
    await ground.stop();
    rmSync(configFolder, { recursive: true, force: true });
  });

  const connectThrough = (protocol: 'legacy' | 'auto'): Connect => async (target) => {
    if (!('url' in target)) throw new Error('mcp-remote connects to an address');
    const program = join(folder, 'node_modules/mcp-remote/dist/proxy.js');
    return await connectSdk1({ command: [process.execPath, program, target.url.href, '--protocol', protocol], env: { MCP_REMOTE_CONFIG_DIR: configFolder } });
  };
  const client = { transport: 'http', leavesBy: 'nothing' } as const;
  describeLane({ ...client, title: 'protocol legacy', version: '2025-11-25', cancelsBy: 'notifications/cancelled', connect: connectThrough('legacy') }, () => ground);
  // It posts notifications/cancelled, which 2026-07-28 does not have over HTTP: there, closing the stream of the answer is the cancel.
  describeLane({ ...client, title: 'protocol auto', version: '2026-07-28', versionOfClient: '2025-11-25', cancelsBy: null, connect: connectThrough('auto') }, () => ground);
});
