/** Keeps the documents of each operation in a file of its own: what is dropped is gone from the disk's folder at once. */

import { readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { isOperationId } from '../domain/ids.js';
import { makeFolder } from './state-folder.js';

export interface DocumentFiles {
  /** Replaces what is there; then drops the oldest of all until they fit. @throws the system's error (ENOSPC, EACCES, ...) */
  write(operationId: string, documents: readonly Uint8Array[]): void;
  /** null when there are none, or a crash cut them off. */
  read(operationId: string): Uint8Array[] | null;
  remove(operationId: string): void;
  /** Removes what was written that long ago, in milliseconds, whoever wrote it, but for what is kept. */
  removeOlderThan(ageMs: number, isKept: (operationId: string) => boolean): void;
}

/** BSON begins with its own length: four bytes, little-endian. */
const lengthBytes = 4;
const smallestDocument = 5;
const extension = '.bson';
/** How often the folder is counted anew, in milliseconds: others write there too, and a count reads the state of every file. */
const countEveryMs = 10_000;

export function createDocumentFiles(folder: string, maxBytes: number): DocumentFiles {
  makeFolder(folder);
  const pathOf = (operationId: string) => {
    if (!isOperationId(operationId)) throw new Error('not an operation id');
    return join(folder, operationId + extension);
  };

  function all(): { path: string; bytes: number; writtenAt: number }[] {
    return readdirSync(folder).flatMap((file) => {
      const path = join(folder, file);
      // Another process may have removed it meanwhile.
      const stat = statSync(path, { throwIfNoEntry: false });
      return stat === undefined ? [] : [{ path, bytes: stat.size, writtenAt: stat.mtimeMs }];
    });
  }

  /** Bytes by path, the oldest first: what was there at the last count, and what this process has done since. */
  const known = new Map<string, number>();
  let total = 0;
  let countedAt = Number.NEGATIVE_INFINITY;

  function forget(path: string): void {
    total -= known.get(path) ?? 0;
    known.delete(path);
  }

  function remember(path: string, bytes: number): void {
    forget(path);
    known.set(path, bytes);
    total += bytes;
  }

  function count(): void {
    countedAt = performance.now();
    known.clear();
    total = 0;
    for (const { path, bytes } of all().sort((a, b) => a.writtenAt - b.writtenAt)) remember(path, bytes);
  }

  function dropOldest(keep: string): void {
    if (performance.now() - countedAt > countEveryMs) count();
    for (const path of [...(total > maxBytes ? known.keys() : [])]) {
      if (total <= maxBytes) return;
      if (path === keep) continue;
      rmSync(path, { force: true });
      forget(path);
    }
  }

  return {
    write(operationId, documents) {
      const path = pathOf(operationId);
      const partial = `${path}.${process.pid}`;
      try {
        const bytes = Buffer.concat(documents);
        writeFileSync(partial, bytes, { mode: 0o600 });
        renameSync(partial, path);
        remember(path, bytes.byteLength);
      } catch (error) {
        rmSync(partial, { force: true });
        throw error;
      }
      dropOldest(path);
    },
    read(operationId) {
      try {
        return split(readFileSync(pathOf(operationId)));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
        throw error;
      }
    },
    remove(operationId) {
      rmSync(pathOf(operationId), { force: true });
      forget(pathOf(operationId));
    },
    removeOlderThan(ageMs, isKept) {
      for (const { path, writtenAt } of all()) {
        // The name of one that a crash left half-written is no operation's id.
        if (Date.now() - writtenAt <= ageMs || isKept(basename(path, extension))) continue;
        rmSync(path, { force: true });
        forget(path);
      }
    },
  };
}

function split(bytes: Buffer): Uint8Array[] | null {
  const documents: Uint8Array[] = [];
  for (let at = 0; at < bytes.byteLength; ) {
    const length = at + lengthBytes <= bytes.byteLength ? bytes.readInt32LE(at) : 0;
    if (length < smallestDocument || at + length > bytes.byteLength) return null;
    documents.push(new Uint8Array(bytes.subarray(at, at + length)));
    at += length;
  }
  return documents;
}
