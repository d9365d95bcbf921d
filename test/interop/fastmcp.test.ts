/** Python's fastmcp, on the Python SDK: the client of another language, in each way in which it agrees on a version. */
import { afterAll, beforeAll, describe } from 'vitest';
import { installOutsidePython } from '../../scripts/outside-python.mjs';
import { connectFastmcp } from './fastmcp.js';
import { type Ground, describeLane, startGround } from './suite.js';

const { python = '', unavailable } = await installOutsidePython(['fastmcp==4.1.6', 'mcp==2.3.0']);

describe.skipIf(unavailable !== undefined)(`fastmcp${unavailable === undefined ? '' : ` (skipped: ${unavailable})`}`, () => {
  let ground: Ground;
  beforeAll(async () => { ground = await startGround(); });
  afterAll(() => ground.stop());

  for (const [mode, version] of [['legacy', '2025-11-25'], ['auto', '2026-07-28'], ['2026-07-28', '2026-07-28']] as const) {
    const client = { title: `mode ${mode}`, version, connect: connectFastmcp(python, mode) };
    describeLane({ ...client, transport: 'stdio', cancelsBy: 'notifications/cancelled', leavesBy: 'end' }, () => ground);
    describeLane({ ...client, transport: 'http', ...(version === '2026-07-28' ? { cancelsBy: 'cut POST', leavesBy: 'nothing' } : { cancelsBy: 'notifications/cancelled', leavesBy: 'DELETE' }) }, () => ground);
  }
});
