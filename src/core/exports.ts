/** What the core needs of exports from the outside: a sink that takes an operation's documents, and the files that come of it. */

import type { ExportReport } from '../domain/operation.js';
import type { ExportForm } from '../domain/export-text.js';

/** Takes the documents of one operation in place of keeping them. */
export interface Sink {
  /** Before anything is sent. @throws LeashError when it can take nothing */
  open(operationId: string): Promise<void>;
  /** Raw BSON, used before it settles. @returns how many it took, in their order; fewer than there are when it is full @throws LeashError export_failed */
  take(batch: readonly Uint8Array[]): Promise<number>;
  /** After the last: from now on others can have it. @throws LeashError export_failed */
  keep(): Promise<void>;
  /** Removes what it holds. Never rejects. */
  discard(): Promise<void>;
  report(): ExportReport;
  notes(): string[];
}

export interface ExportSpec extends ExportForm {
  title: string;
}

/** Part of a kept file. */
export interface ExportPart {
  bytes: Uint8Array;
  /** Of the whole file. */
  size: number;
}

/** The files of exports, each for as long as its operation's record is kept. */
export interface Exports {
  /** @throws LeashError refused_by_policy where this server keeps no documents on its disk */
  sink(spec: ExportSpec): Sink;
  /** null when there is no such file (any more). */
  read(file: string, offset: number, maxBytes: number): Promise<ExportPart | null>;
  /** Bytes `start` to `end`, both included. null when there is no such file (any more). */
  stream(file: string, range: (size: number) => { start: number; end: number } | null): Promise<{ size: number; start: number; end: number; body: ReadableStream<Uint8Array> } | null>;
  /** Where the caller finds it besides the resource: `path` on this machine, or `download`, an address. */
  placeOf(operationId: string, file: string): Record<string, string>;
  /** Removes what is kept no longer and what dead processes left, now and then every minute. */
  start(): void;
  /** Removes what this process has not finished. */
  close(): void;
}
