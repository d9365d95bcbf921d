/** A client of the 2025 era in a process of its own, to be killed: it holds its stream open, starts a call that waits and one that is handed over, and says so. */
import process from 'node:process';
import { setInterval } from 'node:timers';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const [url, ...works] = process.argv.slice(2);
const client = new Client({ name: 'vanishing', version: '1.0.0' });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
for (const work of works) client.callTool({ name: 'run', arguments: JSON.parse(work) }, undefined, { timeout: 120_000 }).catch(() => undefined);
process.stdout.write(`${transport.sessionId}\n`);
setInterval(() => undefined, 1_000);
