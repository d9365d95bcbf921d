/** Tells whether an answer reached its client, as far as the system tells: a handle that did not is of no use to anyone. */

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/**
 * `sent`: the answer has left as a whole, and the connection lived on for a moment, or was closed in order;
 * `cut`: the connection broke before all of it had been written; `unsure`: it broke in the moment after.
 */
export type Delivery = 'sent' | 'cut' | 'unsure';

/** How long a connection that breaks after its answer was written may take to show it, in milliseconds. */
const lingerMs = 250;

/** For each connection whose last answer has just been written: takes note that it arrived. */
const lingering = new WeakMap<Socket, () => void>();

/**
 * The system takes what is written to a connection that the client has closed, and says so only afterwards (measured: EPIPE).
 * It says the same of a client that has read its answer, and drops the connection with the end of the stream unread.
 * @param aborted aborted when the client has gone before the answer was written
 */
export function overOf(socket: Socket, outgoing: ServerResponse, aborted: AbortController): Promise<Delivery> {
  // Whoever sends the next request has the answer to the one before.
  lingering.get(socket)?.();
  return new Promise((resolve) => {
    outgoing.once('close', () => {
      if (!outgoing.writableFinished) aborted.abort();
      if (!outgoing.writableFinished || socket.destroyed) {
        resolve(!outgoing.writableFinished ? 'cut' : socket.errored === null ? 'sent' : 'unsure');
        return;
      }
      const settle = (hadError: boolean) => {
        clearTimeout(timer);
        socket.off('close', settle);
        lingering.delete(socket);
        resolve(hadError ? 'unsure' : 'sent');
      };
      const timer = setTimeout(settle, lingerMs, false).unref();
      socket.once('close', settle);
      lingering.set(socket, () => { settle(false); });
    });
  });
}
