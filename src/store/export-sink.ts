/** Writes what an operation reads into a file, a piece at a time: what is being written, and the half of it, has a name of its own. */

import { rmSync } from 'node:fs';
import { type FileHandle, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { ExportSpec, Sink } from '../core/exports.js';
import { createExportText, endBytes } from '../domain/export-text.js';
import { LeashError, messageOf } from '../domain/errors.js';
import type { ExportReport } from '../domain/operation.js';

/** Text that is gathered before it is written, in UTF-16 units. */
const chunkChars = 262_144;

export interface ExportSinkSettings {
  folder: string;
  /** Makes the folder when it is not there. @throws the system's error */
  makeFolder(): void;
  /** Of one file. */
  maxBytes: number;
  /** Stands in the name of a file that is being written: whoever finds it later can tell whether its writer lives. */
  instance: string;
  /** A file is there from now on. */
  kept(file: string): void;
}

/** Names of files: `<operation id>.jsonl`; `.cut.jsonl` where it reached the limit; `.jsonl.<instance>.half` while it is written. */
export const halfExtension = '.half';

export function createExportSink(spec: ExportSpec, settings: ExportSinkSettings): Sink & { removeNow(): void } {
  const { folder, maxBytes } = settings;
  const text = createExportText(spec);
  let operationId = '';
  let handle: FileHandle | null = null;
  let half: string | null = null;
  let discarded = false;
  let begun = false;
  let full = false;
  const report: ExportReport = { title: spec.title, format: spec.format, file: null, documents: 0, bytes: 0, complete: null };

  async function write(chunk: string): Promise<void> {
    if (chunk === '' || handle === null) return;
    const bytes = Buffer.from(chunk);
    await handle.appendFile(bytes);
    report.bytes += bytes.byteLength;
  }

  async function takeAll(batch: readonly Uint8Array[]): Promise<number> {
    let chunk = begun ? '' : text.begin(batch);
    let chunkBytes = Buffer.byteLength(chunk);
    begun = true;
    let taken = 0;
    for (const bson of batch) {
      const piece = text.document(bson);
      const pieceBytes = Buffer.byteLength(piece);
      full = report.bytes + chunkBytes + pieceBytes + endBytes > maxBytes;
      if (full) break;
      chunk += piece;
      chunkBytes += pieceBytes;
      taken += 1;
      if (chunk.length < chunkChars) continue;
      await write(chunk);
      chunk = '';
      chunkBytes = 0;
    }
    await write(chunk);
    report.documents += taken;
    return taken;
  }

  async function finish(): Promise<void> {
    if (handle === null || half === null) throw new Error('the file is not open');
    await write(begun ? text.end() : text.begin([]) + text.end());
    await handle.datasync();
    await handle.close();
    handle = null;
    const file = `${operationId}${full ? '.cut' : ''}.${spec.format}`;
    await rename(half, join(folder, file));
    half = null;
    report.file = file;
    report.complete = !full;
    settings.kept(file);
  }

  async function begin(id: string): Promise<void> {
    operationId = id;
    settings.makeFolder();
    const path = join(folder, `${id}.${spec.format}.${settings.instance}${halfExtension}`);
    handle = await open(path, 'wx', 0o600);
    half = path;
    if (discarded) await discard();
  }

  async function discard(): Promise<void> {
    discarded = true;
    const left = half;
    const opened = handle;
    handle = null;
    half = null;
    // The name first: a handle that hangs must not keep the half file there.
    if (left !== null) await rm(left, { force: true }).catch(() => undefined);
    await opened?.close().catch(() => undefined);
  }

  return {
    open: (id) => told('could not be made', () => begin(id), 'Nothing was sent to the database.'),
    take: (batch) => told('could not be written', () => takeAll(batch)),
    keep: () => told('could not be finished', finish),
    discard,
    removeNow() {
      if (half !== null) rmSync(half, { force: true });
    },
    report: () => ({ ...report }),
    notes: () => text.notes(),
  };
}

/** @throws LeashError export_failed in place of what was thrown */
async function told<T>(what: string, act: () => Promise<T>, database?: string): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw new LeashError('export_failed', `The file of the export ${what}: ${messageOf(error)}.`, { cause: error, database });
  }
}
