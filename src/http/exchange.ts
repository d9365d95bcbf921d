/** What is known of one HTTP request beside the request itself: who sent it, and what becomes of its answer. */

import type { Identity } from './auth.js';

export interface Exchange {
  /** null without authentication. */
  identity: Identity | null;
  /** Address of the client. */
  remoteAddress: string;
  /** Settles when the answer is over: it has left as a whole, or the connection broke before, or in the moment after. */
  readonly over: Promise<'sent' | 'cut'>;
}

const exchanges = new WeakMap<Request, Exchange>();

/** Makes the exchange of a request findable by whoever is handed the request. */
export function openExchange(request: Request, exchange: Exchange): void {
  exchanges.set(request, exchange);
}

/** @throws Error for a request that did not come through {@link openExchange}: that is a bug of ours */
export function exchangeOf(request: Request | undefined): Exchange {
  const exchange = request === undefined ? undefined : exchanges.get(request);
  if (exchange === undefined) throw new Error('a request without its exchange');
  return exchange;
}
