/** The tool `collection-indexes`: the indexes of a collection with their options, and its search indexes where there can be any. */

import { z } from 'zod';
import { type JsonValue, renderDocument } from '../../domain/ejson-out.js';
import { checkNamespace } from '../../domain/policy/pipeline-policy.js';
import { untrustedNames } from '../answer.js';
import { type MetadataAnswer, type MetadataRead, metadataAnnotations, metadataBody, readMetadata, serverCodes } from '../metadata.js';
import { connectionIdArgument } from '../shapes.js';
import { type ToolAnswer, type ToolCaller, type ToolDeps, defineTool } from '../tool.js';

const name = 'collection-indexes';
/** A collection has at most 64, and about as many search indexes. */
const maxIndexes = 1_000;
/** Of a deployment without search indexes: an unknown stage, search not enabled, command not supported. */
const noSearchCodes: ReadonlySet<number | undefined> = new Set([40_324, 31_082, 115]);
const noSearch = 'it has no search indexes';

export const collectionIndexesTool = defineTool({
  name,
  title: 'Indexes of a collection',
  description: 'Lists the indexes of a collection with their options (unique, sparse, TTL, partial, ...), and its search indexes.',
  input: z.strictObject({ database: z.string(), collection: z.string(), connectionId: connectionIdArgument }),
  scope: 'leash:read',
  annotations: metadataAnnotations,

  async call({ database, collection, connectionId }, notes, caller, deps) {
    const on = { db: database, coll: collection };
    checkNamespace(on, deps.policy, 'collection');
    const advice = {
      [serverCodes.namespaceNotFound]: `There is no collection of this name in ${database}: list-collections shows those that there are.`,
      [serverCodes.commandNotSupportedOnView]: 'A view has no indexes: ask for those of the collection that it reads.',
    };
    const base = { tool: name, connectionId, on, limit: maxIndexes, notes, advice };
    const classic = await readMetadata({ ...base, command: { kind: 'cursor', db: database, command: { listIndexes: collection } } }, caller, deps);
    if (!classic.ok) return classic.answer;
    const classicIndexes = classic.documents.map((document) => withoutVersion(rendered(document)));
    const search = await searchIndexesOf(base, caller, deps);
    if ('answer' in search) return search.answer;
    const { searchIndexes } = search;
    return { isError: false, body: metadataBody(classic.record, { classicIndexes, searchIndexes, classicIndexesCount: classicIndexes.length, searchIndexesCount: searchIndexes.length, untrusted: untrustedNames }, notes) };
  },
});

/** Asks once for each deployment whether it has search indexes at all. */
async function searchIndexesOf(base: Omit<MetadataRead, 'command'>, caller: ToolCaller, deps: ToolDeps): Promise<{ searchIndexes: JsonValue[] } | { answer: ToolAnswer }> {
  const memory = deps.connections.memory(base.connectionId, caller);
  if (memory.has(noSearch)) return { searchIndexes: [] };
  const read: MetadataAnswer = await readMetadata({ ...base, notes: [], command: { kind: 'aggregate', on: base.on, pipeline: [{ $listSearchIndexes: {} }], writes: false } }, caller, deps);
  if (read.ok) return { searchIndexes: read.documents.map((document) => searchIndexOf(rendered(document))) };
  const { outcome, error } = read.record;
  if (outcome !== 'failed') return read;
  if (noSearchCodes.has(error?.code)) memory.set(noSearch, true);
  else base.notes.push(`The search indexes are not known: ${error?.message ?? 'the database did not say why'}`);
  return { searchIndexes: [] };
}

type Rendered = Record<string, JsonValue>;

function rendered(document: Uint8Array): Rendered {
  return renderDocument(document, { canonical: false }).value as Rendered;
}

/** The version of the index's format, which is the same for all. */
function withoutVersion({ v: _version, ...index }: Rendered): Rendered {
  return index;
}

function searchIndexOf({ name: indexName, type, status, queryable, latestDefinition }: Rendered): Rendered {
  return Object.fromEntries(Object.entries({ name: indexName, type, status, queryable, latestDefinition }).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined));
}
