/** The store that the options name, ready to be asked; nothing of it is opened or loaded before that. */

import type { Clock, Log, Store } from '../core/ports.js';
import { createIsolatedStore } from './isolated.js';
import { createMemoryStore } from './memory.js';
import { createResilientStore } from './resilient.js';
import { defaultStateFolder } from './state-folder.js';

export interface StoreOptions {
  store: 'local' | 'memory';
  stateFolder: string | undefined;
  keepResults: boolean;
  /** Milliseconds after the end of an operation, where its record does not say; and the most that one may say. */
  retentionMs: number;
  maxRetentionMs?: number;
  /** Bytes of documents of all operations together. */
  storeBytes: number;
}

/** Longest waits for the disk, in milliseconds: a start of the store's process with its opening, and one call. */
const openMs = 8_000;
const callMs = 4_000;

export function createStore(options: StoreOptions, clock: Clock, log: Log): Store {
  const { retentionMs, maxRetentionMs = retentionMs, storeBytes } = options;
  const limits = { retentionMs, maxRetentionMs, maxResultBytes: storeBytes };
  const memory = createMemoryStore(limits, clock);
  if (options.store === 'memory') return memory;
  const folder = options.stateFolder ?? defaultStateFolder(process.env);
  return createResilientStore({ local: createIsolatedStore({ ...limits, folder, openMs, callMs }), memory, clock, log, keepDocuments: options.keepResults });
}
