/** What the tools that describe a deployment share: a read on the leash, waited for, and the short form of its answer. */

import { BSON, type Document } from 'bson';
import type { Command } from '../core/ports.js';
import type { OperationRecord } from '../domain/operation.js';
import type { Namespace } from '../domain/policy/pipeline-policy.js';
import { failureAnswer } from './operation-answer.js';
import { runRead } from './read.js';
import type { ToolAnswer, ToolCaller, ToolDeps } from './tool.js';

export interface MetadataRead {
  tool: string;
  connectionId: string | undefined;
  on: Namespace;
  command: Command;
  /** Documents to keep; one when left out. */
  limit?: number;
  notes: string[];
  /** What to do next when the database answers with this error code, in place of the general advice. */
  advice?: Readonly<Record<number, string>>;
}

export type MetadataAnswer = { ok: true; record: OperationRecord; documents: Uint8Array[] } | { ok: false; record: OperationRecord; answer: ToolAnswer };

export const metadataAnnotations = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;

/** Facts about a deployment are worth a short wait: what takes longer has another reason than its size. In milliseconds. */
const maxTimeMS = 30_000;

/** Server error codes that several of the tools meet. */
export const serverCodes = { namespaceNotFound: 26, unauthorized: 13, commandNotSupportedOnView: 166 } as const;

/** `ok: false` with the answer to give, when it did not succeed. @throws LeashError when nothing was sent */
export async function readMetadata(read: MetadataRead, caller: ToolCaller, deps: ToolDeps): Promise<MetadataAnswer> {
  const { limits } = deps;
  const { on } = read;
  const namespaces = on.coll === null ? [] : [{ ns: on, path: 'collection' }];
  const limit = read.limit ?? 1;
  const ran = await runRead({ ...read, namespaces, limit, maxTimeMS: Math.min(maxTimeMS, limits.maxTimeMS), responseBytes: limits.responseBytes }, caller, deps);
  const { record, documents } = ran;
  const answer = failureAnswer(ran, limits);
  if (answer === null) return { ok: true, record, documents };
  const next = read.advice?.[record.error?.code ?? 0] ?? (record.outcome === 'timed_out' ? `It was given ${record.maxTimeMS ?? maxTimeMS} ms. See with operations what the database is busy with, then call again.` : undefined);
  return { ok: false, record, answer: next === undefined ? answer : { ...answer, body: { ...answer.body, next } } };
}

/** The one document of a reply. Numbers become plain ones: sizes and counts stay below 2^53. */
export function replyOf(documents: readonly Uint8Array[]): Document {
  const [reply] = documents;
  return reply === undefined ? {} : BSON.deserialize(reply);
}

/** What stands beside the facts in each answer; `notes` are those that came after the record was made. */
export function metadataBody(record: OperationRecord, facts: Record<string, unknown>, notes: readonly string[] = []): Record<string, unknown> {
  const all = [...new Set([...record.notes, ...notes])];
  return { operationId: record.operationId, elapsedMs: record.elapsedMs, ...facts, ...(all.length === 0 ? {} : { notes: all }) };
}

/** As many items from the first on as fit into so many bytes of JSON. */
export function fitting<T>(items: readonly T[], maxBytes: number): T[] {
  let bytes = 0;
  const end = items.findIndex((item) => (bytes += Buffer.byteLength(JSON.stringify(item)) + 1) > maxBytes);
  return end === -1 ? [...items] : items.slice(0, end);
}
