/** What is known of one HTTP request beside the request itself: who sent it, and what becomes of its answer. */

import { hasScope } from '../domain/scope.js';
import type { Identity } from './auth.js';
import type { Delivery } from './delivery.js';

export interface Exchange {
  /** null without authentication. */
  identity: Identity | null;
  /** Address of the client. */
  remoteAddress: string;
  /** Settles when the answer is over. */
  readonly over: Promise<Delivery>;
  /** How many parts of the answer have been given to the connection. */
  chunksWritten(): number;
  /** Whether the connection is looked at before each part of the answer is written, so that a client that has closed by then is seen. */
  looksFirst: boolean;
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

/** Whether the caller may see and kill what everybody runs. */
export function isAdmin({ identity }: Pick<Exchange, 'identity'>): boolean {
  return identity !== null && hasScope(identity.scopes, 'leash:admin');
}
