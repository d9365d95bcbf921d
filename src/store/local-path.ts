/** What the local store is opened with, and its place: apart from the store itself, so that naming it does not load LMDB. */

import { hostname } from 'node:os';
import { join } from 'node:path';

export interface LocalStoreSettings {
  folder: string;
  /** How long a record that does not say so itself, and its documents, are kept after the operation's end, in milliseconds. */
  retentionMs: number;
  /** The longest that a record may ask for, in milliseconds; nothing longer than `retentionMs` when it is left out. */
  maxRetentionMs?: number;
  /** Bytes of documents of all operations of all processes together; the oldest go first. */
  maxResultBytes: number;
}

/** One file a machine: its locks hold on one machine only, and several machines may share a home folder. */
export function localStorePath(folder: string): string {
  return join(folder, `records.${hostname().replace(/[^\w-]+/g, '_')}.mdb`);
}
