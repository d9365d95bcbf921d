/** Tells whether an answer reached its client, as far as the system tells: a handle that did not is of no use to anyone. */

import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** How long a connection that breaks after its answer was written may take to show it, in milliseconds. */
const lingerMs = 250;

/** For each connection whose last answer has just been written: takes note that it arrived. */
const lingering = new WeakMap<Socket, () => void>();

/**
 * An answer counts as sent when it was written and the connection lived on for a moment, or was closed in order: the system
 * takes what is written to a connection that the client has closed, and says so only afterwards (measured: EPIPE).
 * @param aborted aborted when the client has gone before the answer was written
 */
export function overOf(socket: Socket, outgoing: ServerResponse, aborted: AbortController): Promise<'sent' | 'cut'> {
  // Whoever sends the next request has the answer to the one before.
  lingering.get(socket)?.();
  return new Promise((resolve) => {
    outgoing.once('close', () => {
      if (!outgoing.writableFinished || socket.destroyed) {
        const isSent = outgoing.writableFinished && socket.errored === null;
        if (!isSent) aborted.abort();
        resolve(isSent ? 'sent' : 'cut');
        return;
      }
      const settle = (hadError: boolean) => {
        clearTimeout(timer);
        socket.off('close', settle);
        lingering.delete(socket);
        resolve(hadError ? 'cut' : 'sent');
      };
      const timer = setTimeout(settle, lingerMs, false).unref();
      socket.once('close', settle);
      lingering.set(socket, () => { settle(false); });
    });
  });
}
