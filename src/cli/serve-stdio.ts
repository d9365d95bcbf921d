/** MCP over stdio: one client, until it goes away. */

import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import type { Service, ServiceDeps } from './serve.js';

/** How long a client has to ask for the tools before everything else begins, in milliseconds. */
const greetingMs = 1_000;

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
  const greeted = new Promise<void>((resolve) => {
    const send = transport.send.bind(transport);
    transport.send = async (message) => {
      await send(message);
      // The answer to `initialize` alone names the server: what follows it is the list of the tools.
      if ('result' in message && !('serverInfo' in message.result)) resolve();
    };
    setTimeout(resolve, greetingMs).unref();
  });
  void greeted.then(() => { transport.send = StdioServerTransport.prototype.send; });
  log.info({ instance: wired.instance, version }, 'serving MCP over stdio');
  // The engine refuses new work by itself, and the transport ends with the process.
  return Promise.resolve({ greeted, refuseWork: () => undefined, close: () => Promise.resolve() });
}
