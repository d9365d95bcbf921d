/** Listens for HTTP, and carries requests and answers between Node's sockets and the web's Request and Response. */

import { type IncomingMessage, type RequestListener, type ServerResponse, createServer as createPlainServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Readable, Transform } from 'node:stream';
import { finished, pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { toWebRequest } from '@modelcontextprotocol/node';
import type { Log } from '../core/ports.js';
import { messageOf } from '../domain/errors.js';
import type { App } from './app.js';
import { overOf } from './delivery.js';
import { type Exchange, openExchange } from './exchange.js';
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

interface Look {
  isNeeded(): boolean;
  written(): void;
}

/** How often Node looks for requests that take too long, in milliseconds. */
const checkMs = 1_000;
/** How long a body that is too large is still taken after its refusal, in milliseconds. */
const lingerMs = 2_000;

export function createHttpServer({ app, tls, maxBodyBytes, receiveMs, log, redact }: HttpServerOptions): HttpServer {
  const open = new Set<Promise<unknown>>();

  async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const aborted = new AbortController();
    const over = overOf(incoming.socket, outgoing, aborted);
    let chunksWritten = 0;
    const exchange: Exchange = { identity: null, remoteAddress: incoming.socket.remoteAddress ?? 'unknown', over, chunksWritten: () => chunksWritten, looksFirst: false };
    const look: Look = { isNeeded: () => exchange.looksFirst, written: () => { chunksWritten += 1; } };
    try {
      const request = await read(incoming, aborted.signal);
      if (request === undefined) return await write(rejection(400, 'The address, the header Host or the method of this request cannot be read.'), outgoing, look);
      openExchange(request, exchange);
      await write(await app.handle(request), outgoing, look);
    } catch (error) {
      if (aborted.signal.aborted) return;
      await (isTooLarge(error) ? refuseBody(incoming, outgoing) : write(failed(error), outgoing, look));
    }
  }

  /** undefined when the web's Request cannot be such a one, as with the method TRACE or a Host that is no name: a fault of its sender. */
  async function read(incoming: IncomingMessage, signal: AbortSignal): Promise<Request | undefined> {
    try {
      // Read in a way that leaves it whole when the limit is reached: the rest of the body is still to come.
      const { method, url, headers } = incoming;
      const source = { method, url, headers, [Symbol.asyncIterator]: () => incoming.iterator({ destroyOnReturn: false }) };
      return await toWebRequest(source, undefined, { signal, maxRequestBodySize: maxBodyBytes });
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      log.debug({ error: redact(error.message) }, 'a request cannot be read');
      return undefined;
    }
  }

  /** A client that is still sending when its connection closes never reads the answer: what it sends is thrown away for a while. */
  async function refuseBody(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const refusal = rejection(413, `The body of a request may have ${maxBodyBytes} bytes at most.`);
    const text = await refusal.text();
    outgoing.writeHead(refusal.status, { ...Object.fromEntries(refusal.headers), 'content-length': Buffer.byteLength(text), connection: 'close' });
    outgoing.write(text);
    incoming.resume();
    const signal = AbortSignal.timeout(lingerMs);
    await finished(incoming, { signal }).catch(() => undefined);
    outgoing.end();
  }

  function failed(error: unknown): Response {
    log.error({ error: redact(error instanceof Error ? (error.stack ?? error.message) : messageOf(error)) }, 'unexpected error');
    return rejection(500, 'An error of this server.');
  }

  const listener: RequestListener = (incoming, outgoing) => {
    const answering = answer(incoming, outgoing).catch(() => { outgoing.destroy(); }).finally(() => { open.delete(answering); });
    open.add(answering);
  };
  const options = { requestTimeout: receiveMs, headersTimeout: receiveMs, connectionsCheckingInterval: Math.min(checkMs, receiveMs) };
  const server = tls === undefined ? createPlainServer(options, listener) : createTlsServer({ ...options, ...tls, handshakeTimeout: receiveMs }, listener);

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
async function write(response: Response, outgoing: ServerResponse, look: Look): Promise<void> {
  const { connection: _connection, ...headers } = Object.fromEntries(response.headers);
  // Whether it stays is not for an answer to promise: the client has a say in it, and Node knows it.
  outgoing.writeHead(response.status, headers);
  if (response.body === null) {
    outgoing.end();
    return;
  }
  outgoing.flushHeaders();
  // A client that goes away is told to the stream's source by its cancel.
  await pipeline(Readable.fromWeb(response.body), lookFirst(look), outgoing).catch(() => undefined);
}

/** A client that has closed by now is seen before the next part is written: the system would take it, and lose it. */
function lookFirst({ isNeeded, written }: Look): Transform {
  return new Transform({
    transform(chunk, _encoding, pass) {
      const give = () => {
        if (!this.destroyed) written();
        pass(null, chunk);
      };
      // What is due in this turn of the event loop, and a whole look at all connections after it.
      if (isNeeded()) setImmediate(() => setImmediate(give));
      else give();
    },
  });
}

function isTooLarge(error: unknown): boolean {
  return error instanceof Error && error.name === 'RequestBodyTooLargeError';
}
