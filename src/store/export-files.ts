/** Keeps the files of exports in the state folder, for their owner alone: each as long as the record of its operation, all of them within a size. */

import { constants, rmSync } from 'node:fs';
import { open, readdir, rm, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Readable } from 'node:stream';
import type { Exports } from '../core/exports.js';
import type { Clock, Liveness, Log, Store } from '../core/ports.js';
import { LeashError, messageOf } from '../domain/errors.js';
import { isOperationId } from '../domain/ids.js';
import { createExportSink, halfExtension } from './export-sink.js';
import { makeFolder } from './state-folder.js';

export interface ExportFilesSettings {
  stateFolder: string;
  instance: string;
  /** Bytes of one file, and of all together; the oldest go first. */
  maxBytes: number;
  maxTotalBytes: number;
  /** The longest time for which a record may be kept, in milliseconds. */
  maxRetentionMs: number;
  /** Whether documents go to the disk at all. */
  keepDocuments: boolean;
  /** Whether the records end with this process, and with them its files. */
  endsWithProcess: boolean;
  placeOf: Exports['placeOf'];
}

export interface ExportFilesDeps {
  store: Pick<Store, 'get' | 'expired'>;
  livenessOf(instance: string): Promise<Liveness>;
  clock: Clock;
  log: Log;
}

interface Found {
  name: string;
  bytes: number;
  writtenAt: number;
}

const tidyEveryMs = 60_000;
/** A link in the folder leads to what nobody has exported. (Windows knows no such flag.) */
const readItself = constants.O_RDONLY | ((constants.O_NOFOLLOW as number | undefined) ?? 0);

export function exportFolder(stateFolder: string): string {
  return join(stateFolder, 'exports');
}

export function createExportFiles(settings: ExportFilesSettings, { store, livenessOf, clock, log }: ExportFilesDeps): Exports & { tidy(): Promise<void>; pathOf(file: string): string } {
  const folder = exportFolder(settings.stateFolder);
  const unfinished = new Set<ReturnType<typeof createExportSink>>();
  const own = new Set<string>();
  let cancelTimer: () => void = () => undefined;

  /** A name comes from a record; it must never lead elsewhere. */
  const pathOf = (file: string) => join(folder, basename(file));

  async function all(): Promise<Found[]> {
    const names = await readdir(folder).catch(() => []);
    const found = await Promise.all(names.map(async (name): Promise<Found | null> => {
      const file = await stat(join(folder, name)).catch(() => null);
      return file === null ? null : { name, bytes: file.size, writtenAt: file.mtimeMs };
    }));
    return found.filter((file) => file !== null);
  }

  async function dropOldest(keep: string): Promise<void> {
    const kept = (await all()).filter(({ name }) => !name.endsWith(halfExtension)).sort((a, b) => a.writtenAt - b.writtenAt);
    let total = kept.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const { name, bytes } of kept) {
      if (total <= settings.maxTotalBytes) return;
      if (name === keep) continue;
      await rm(join(folder, name), { force: true });
      total -= bytes;
      log.info({ file: name, bytes }, 'the file of an export was removed to make room for a later one');
    }
  }

  async function isOver({ name, writtenAt }: Found): Promise<boolean> {
    // What nobody can tell of (another machine's, that of a process without a store) goes when nothing may be kept any more.
    const isOld = Date.now() - writtenAt > settings.maxRetentionMs;
    const [operationId = '', ...rest] = name.split('.');
    if (!isOperationId(operationId)) return isOld;
    if (name.endsWith(halfExtension)) {
      const writer = rest.at(-2) ?? '';
      return writer !== settings.instance && (isOld || (await livenessOf(writer)) === 'dead');
    }
    if ((await store.get(operationId)) !== null) return false;
    return isOld || (await store.expired(operationId)) !== null;
  }

  async function tidy(): Promise<void> {
    for (const file of await all()) {
      if (!(await isOver(file))) continue;
      await rm(join(folder, file.name), { force: true });
      log.info({ file: file.name, bytes: file.bytes }, 'the file of an export was removed');
    }
  }

  function next(): void {
    void tidy()
      .catch((error: unknown) => { log.warn({ error: messageOf(error) }, 'the folder of exports could not be tidied'); })
      .finally(() => { cancelTimer = clock.after(tidyEveryMs, next, { background: true }); });
  }

  return {
    sink(spec) {
      if (!settings.keepDocuments) throw new LeashError('refused_by_policy', 'This server keeps no documents on its disk (--keep-results false), so it cannot export.', { next: 'Read the documents with run or find, and result.' });
      const sink = createExportSink(spec, {
        folder,
        makeFolder: () => { makeFolder(folder); },
        maxBytes: settings.maxBytes,
        instance: settings.instance,
        kept(file) {
          unfinished.delete(sink);
          if (settings.endsWithProcess) own.add(file);
          dropOldest(file).catch((error: unknown) => { log.warn({ error: messageOf(error) }, 'no room could be made in the folder of exports'); });
        },
      });
      return {
        ...sink,
        async open(operationId) {
          unfinished.add(sink);
          await sink.open(operationId);
        },
        async discard() {
          unfinished.delete(sink);
          await sink.discard();
        },
      };
    },
    async read(file, offset, maxBytes) {
      const handle = await open(pathOf(file), readItself).catch(() => null);
      if (handle === null) return null;
      try {
        const { size } = await handle.stat();
        const { buffer, bytesRead } = await handle.read(Buffer.alloc(Math.max(0, Math.min(maxBytes, size - offset))), 0, null, offset);
        return { bytes: buffer.subarray(0, bytesRead), size };
      } finally {
        await handle.close();
      }
    },
    async stream(file, rangeOf) {
      const handle = await open(pathOf(file), readItself).catch(() => null);
      if (handle === null) return null;
      const { size } = await handle.stat();
      const range = rangeOf(size);
      if (range === null || size === 0) {
        await handle.close();
        return { size, start: 0, end: -1, body: new Blob([]).stream() };
      }
      return { size, ...range, body: Readable.toWeb(handle.createReadStream(range)) as ReadableStream<Uint8Array> };
    },
    placeOf: settings.placeOf,
    pathOf,
    start: next,
    tidy,
    close() {
      cancelTimer();
      for (const sink of unfinished) sink.removeNow();
      for (const file of own) rmSync(pathOf(file), { force: true });
    },
  };
}
