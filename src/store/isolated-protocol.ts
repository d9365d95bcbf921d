/** What is said between the program and the process that holds its store. */

import type { Store } from '../core/ports.js';
import type { LocalStoreSettings } from './local-path.js';
import type { StoreError } from './store-error.js';

export type Method = Exclude<keyof Store, 'problem'>;

/** Messages are lists of these: what is asked, or answered, in one turn of the event loop is one message. The first request opens the store. */
export type Request = { id: number; open: LocalStoreSettings } | { id: number; method: Method; args: unknown[] };

export type Reply = { id: number; value: unknown } | { id: number; error: { kind: StoreError['kind']; message: string } };
