/** MCP over stdio: one client, until it goes away. */

import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Service, ServiceDeps } from './serve.js';

export function serveOverStdio({ wired, log, end, version }: ServiceDeps): Promise<Service> {
  process.stdin.on('end', () => { end('end of stdin'); });
  process.stdin.on('close', () => { end('end of stdin'); });
  process.stdout.on('error', (error: Error) => { end(`stdout is broken: ${error.message}`); });

  const transport = new StdioServerTransport();
  serveStdio(({ era }) => wired.createServer(wired.stdioCaller, era), { transport, onerror: (error) => { log.warn({ error: wired.redact(error.message) }, 'transport error'); } });
  // A transport that gave up (a message over its 10 MiB) reads nothing any more, not even the end of stdin.
  const onClose = transport.onclose?.bind(transport);
  transport.onclose = () => {
    onClose?.();
    end('the transport closed');
  };
  log.info({ instance: wired.instance, version }, 'serving MCP over stdio');
  // The engine refuses new work by itself, and the transport ends with the process.
  return Promise.resolve({ refuseWork: () => undefined, close: () => Promise.resolve() });
}
