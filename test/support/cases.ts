/** The cases from the field, as the tests keep them: pipelines with their results, and runaway operations. */

import { readFileSync, readdirSync } from 'node:fs';
import { type Document, EJSON } from 'bson';
import type { MongoClient } from 'mongodb';

export interface PipelineCase {
  name: string;
  setup: { collection: string; docs: Document[]; indexes?: { key: Document; [option: string]: unknown }[] }[];
  commands?: Document[];
  collation?: Document;
  collection: string | null;
  pipeline: Document[];
  expected: Document[];
  ordered?: boolean;
}

export interface RunawayCase {
  name: string;
  title: string;
  topology: 'standalone' | 'replset';
  setup: Document[];
  helpers?: { session: string; transaction?: boolean; background?: boolean; afterMs?: number; command: Document }[];
  op: { kind: 'aggregate' | 'command' | 'cursorCommand'; coll?: string; pipeline?: Document[]; options?: Document; command?: Document; afterMs?: number; iterate?: boolean };
  right_outcome: string;
}

const folder = new URL('../cases/', import.meta.url);

function read<T>(kind: string): T[] {
  const at = new URL(`${kind}/`, folder);
  return readdirSync(at).sort().map((file) => EJSON.parse(readFileSync(new URL(file, at), 'utf8'), { relaxed: false }) as T);
}

/** Values are BSON classes: types are kept. */
export const pipelineCases = (): PipelineCase[] => read<PipelineCase>('pipelines');

/** As plain JSON, the way a client would send it. */
export function pipelineJson(name: string): { pipeline: unknown[]; collation?: unknown } {
  return JSON.parse(readFileSync(new URL(`pipelines/${name}.json`, folder), 'utf8')) as { pipeline: unknown[] };
}

export function runawayCase(name: string): RunawayCase {
  const file = readdirSync(new URL('runaways/', folder)).find((each) => each.startsWith(name));
  if (file === undefined) throw new Error(`no runaway case ${name}`);
  return JSON.parse(readFileSync(new URL(`runaways/${file}`, folder), 'utf8')) as RunawayCase;
}

/** Runs the case's set-up in a database of its own. */
export async function setUpRunaway(client: MongoClient, database: string, runaway: RunawayCase): Promise<void> {
  for (const command of runaway.setup) {
    if ('setParameterAdmin' in command) await client.db('admin').command({ setParameter: 1, ...(command['setParameterAdmin'] as Document) });
    else await client.db(database).command(command).catch((error: unknown) => {
      // A drop of what is not there is part of some set-ups.
      if (!('drop' in command)) throw error;
    });
  }
}
