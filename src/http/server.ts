/** Listens for HTTP, and carries requests and answers between Node's sockets and the web's Request and Response. */

import { type IncomingMessage, type RequestListener, type ServerResponse, createServer as createPlainServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { toWebRequest } from '@modelcontextprotocol/node';
import type { Log } from '../core/ports.js';
import { messageOf } from '../domain/errors.js';
import type { App } from './app.js';
import { openExchange } from './exchange.js';
import { rejection } from './rejection.js';

export interface HttpServerOptions {
  app: Pick<App, 'handle'>;
  tls: { cert: string; key: string } | undefined;
  maxBodyBytes: number;
  /** How long a client may take to send a request, in milliseconds. */
  receiveMs: number;
  log: Log;
  redact(text: string): string;
}

export interface HttpServer {
  /** @returns the port; @throws the system's error when the address cannot be had */
  listen(host: string, port: number): Promise<number>;
  /** Takes no more connections, lets answers leave for up to so many milliseconds, and closes what is left. */
  close(drainMs: number): Promise<void>;
}

/** How often Node looks for requests that take too long, in milliseconds. */
const checkMs = 1_000;

export function createHttpServer({ app, tls, maxBodyBytes, receiveMs, log, redact }: HttpServerOptions): HttpServer {
  const open = new Set<Promise<unknown>>();

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const aborted = new AbortController();
    const over = new Promise<'sent' | 'cut'>((resolve) => {
      outgoing.once('close', () => {
        const isSent = outgoing.writableFinished;
        if (!isSent) aborted.abort();
        resolve(isSent ? 'sent' : 'cut');
      });
    });
    try {
      const request = await toWebRequest(incoming, undefined, { signal: aborted.signal, maxRequestBodySize: maxBodyBytes });
      openExchange(request, { identity: null, remoteAddress: incoming.socket.remoteAddress ?? 'unknown', over });
      await write(await app.handle(request), outgoing);
    } catch (error) {
      if (aborted.signal.aborted) return;
      await write(refusalOf(error), outgoing);
    }
  }

  function refusalOf(error: unknown): Response {
    if (isTooLarge(error)) return rejection(413, `The body of a request may have ${maxBodyBytes} bytes at most.`, { Connection: 'close' });
    log.error({ error: redact(error instanceof Error ? (error.stack ?? error.message) : messageOf(error)) }, 'unexpected error');
    return rejection(500, 'An error of this server.');
  }

  const listener: RequestListener = (incoming, outgoing) => {
    const answering = answer(incoming, outgoing).catch(() => { outgoing.destroy(); }).finally(() => { open.delete(answering); });
    open.add(answering);
  };
  const options = { requestTimeout: receiveMs, headersTimeout: receiveMs, connectionsCheckingInterval: Math.min(checkMs, receiveMs) };
  const server = tls === undefined ? createPlainServer(options, listener) : createTlsServer({ ...options, ...tls }, listener);

  return {
    listen: (host, port) => new Promise((resolve, reject) => {
      server.once('error', reject);
      server.listen(port, host, () => {
        server.off('error', reject);
        server.on('error', (error) => { log.error({ error: redact(error.message) }, 'HTTP server'); });
        resolve((server.address() as AddressInfo).port);
      });
    }),
    async close(drainMs) {
      const closed = new Promise((resolve) => { server.close(resolve); });
      server.closeIdleConnections();
      const timer = new AbortController();
      const late = delay(drainMs, undefined, { signal: timer.signal }).catch(() => undefined);
      await Promise.race([Promise.allSettled(open), late]);
      timer.abort();
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The headers leave at once: whoever waits for a long answer knows that it was heard. */
async function write(response: Response, outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) {
    outgoing.end();
    return;
  }
  outgoing.flushHeaders();
  // A client that goes away is told to the stream's source by its cancel.
  await pipeline(Readable.fromWeb(response.body), outgoing).catch(() => undefined);
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && error.name === 'RequestBodyTooLargeError';
}
