/** The SDK's own clients, of both lines: 1.x, and 2.x in each way in which it agrees on a version. */
import { afterAll, beforeAll } from 'vitest';
import { connectSdk1, connectSdk2 } from './clients.js';
import { type Ground, type Lane, describeLane, startGround } from './suite.js';

let ground: Ground;
beforeAll(async () => { ground = await startGround(); });
afterAll(() => ground.stop());

const clients: Pick<Lane, 'title' | 'version' | 'connect'>[] = [
  { title: '@modelcontextprotocol/sdk 1.x', version: '2025-11-25', connect: connectSdk1 },
  { title: '@modelcontextprotocol/client 2.x, legacy', version: '2025-11-25', connect: connectSdk2('legacy') },
  { title: '@modelcontextprotocol/client 2.x, auto', version: '2026-07-28', connect: connectSdk2('auto') },
  { title: '@modelcontextprotocol/client 2.x, pinned', version: '2026-07-28', connect: connectSdk2({ pin: '2026-07-28' }) },
];

for (const client of clients) {
  describeLane({ ...client, transport: 'stdio', cancelsBy: 'notifications/cancelled', leavesBy: 'end' }, () => ground);
  describeLane({ ...client, transport: 'http', cancelsBy: client.version === '2026-07-28' ? 'cut POST' : 'notifications/cancelled', leavesBy: 'nothing' }, () => ground);
}
