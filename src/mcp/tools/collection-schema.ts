/** The tool `collection-schema`: what the documents of a collection look like, guessed from a sample that costs the database little. */

import { BSON } from 'bson';
import { z } from 'zod';
import type { Command } from '../../core/ports.js';
import { checkNamespace } from '../../domain/policy/pipeline-policy.js';
import { type SchemaAnalysis, createSchemaAnalysis } from '../../domain/schema.js';
import { type MetadataRead, fitting, metadataAnnotations, metadataBody, readMetadata, replyOf } from '../metadata.js';
import { responseLimit, untrustedNames } from '../answer.js';
import { checkIndexes } from '../index-check.js';
import { connectionIdArgument, responseBytesArgument } from '../shapes.js';
import { type ToolAnswer, type ToolCaller, type ToolDeps, defineTool } from '../tool.js';

const name = 'collection-schema';
const defaultSampleSize = 50;
/** Levels of nested fields that are tried one after another until the answer is small enough. */
const depths = [Number.POSITIVE_INFINITY, 4, 3, 2, 1];
/** Collections of so many documents may be read and sorted as a whole for a sample. */
const smallCollection = 5_000;
/** The server draws at most a twentieth of the documents at random: for more, and from up to 100, it reads and sorts all (measured on 6.0.5). */
const randomShare = 20;
/** The server has drawn the same documents again and again. */
const noMoreRandom = 28_799;

/** `first`: the first ones as they come, where nothing better can be had without reading everything. */
type Method = 'all' | 'random' | 'first';

interface Plan {
  method: Method;
  size: number;
  /** About so many documents there are; null where counting them would mean reading them. */
  of: number | null;
  exists: boolean;
  /** Reading a few of its documents may mean reading all of a collection. */
  isView: boolean;
}

export const collectionSchemaTool = defineTool({
  name,
  title: 'Schema of a collection',
  description: 'Infers the fields of a collection or view from a sample of documents: the types of each with their shares, optional and mixed ones, nested fields.',
  input: z.strictObject({
    database: z.string(),
    collection: z.string(),
    sampleSize: z.number().int('must be a whole number').min(1, 'must be at least 1').optional().describe('Documents, 50 by default'),
    responseBytesLimit: responseBytesArgument,
    connectionId: connectionIdArgument,
  }),
  scope: 'leash:read',
  annotations: metadataAnnotations,

  async call({ database, collection, sampleSize = defaultSampleSize, responseBytesLimit, connectionId }, notes, caller, deps) {
    const on = { db: database, coll: collection };
    checkNamespace(on, deps.policy, 'collection');
    const maxBytes = responseLimit(responseBytesLimit, deps.limits, notes);
    if (sampleSize > deps.limits.maxLimit) notes.push(`sampleSize was ${sampleSize}; this server allows at most ${deps.limits.maxLimit}, which was used.`);
    const base = { tool: name, connectionId, on, notes };
    const plan = await planFor(base, Math.min(sampleSize, deps.limits.maxLimit), caller, deps);
    if ('answer' in plan) return plan.answer;
    if (plan.isView) {
      const explainable = { aggregate: collection, pipeline: [{ $limit: plan.size + 1 }], cursor: {} };
      const refused = await checkIndexes({ tool: name, on, namespaces: [{ ns: on, path: 'collection' }], explainable, connectionId }, caller, deps);
      if (refused !== null) return refused;
    }
    let { method } = plan;
    let read = await readMetadata(sampling(base, plan, method), caller, deps);
    if (!read.ok && read.record.error?.code === noMoreRandom) {
      method = 'first';
      read = await readMetadata(sampling(base, plan, method), caller, deps);
    }
    if (!read.ok) return read.answer;
    const analysis = createSchemaAnalysis();
    for (const document of read.documents) analysis.add(document);
    // What came after the count may have made it more than all.
    if (method === 'all' && read.record.more === true) method = 'first';
    const { schema, left } = withinBytes(analysis, maxBytes);
    const sample = { documents: analysis.count(), of: method === 'all' ? analysis.count() : plan.of, method };
    if (analysis.hasTooManyNames()) notes.push('An object has more field names than are counted here: its names seem to be data.');
    return {
      isError: false,
      body: metadataBody(read.record, { schema, fieldsCount: analysis.fieldsCount(), ...(left === 0 ? {} : { fieldsNotShown: left }), sample, summary: summaryOf({ ...plan, method }, analysis.count(), `${database}.${collection}`), ...(analysis.count() === 0 ? {} : { untrusted: untrustedNames }) }, notes),
    };
  },
});

/** Of a collection the metadata tell how many documents it has; what a view or a time series has, only reading it tells. */
async function planFor(base: Omit<MetadataRead, 'command'>, size: number, caller: ToolCaller, deps: ToolDeps): Promise<Plan | { answer: ToolAnswer }> {
  const { db, coll } = base.on;
  const list = { listCollections: 1, filter: { name: coll }, nameOnly: true, authorizedCollections: true };
  const listed = await readMetadata({ ...base, command: { kind: 'cursor', db, command: list } }, caller, deps);
  if (!listed.ok) return listed;
  const [found] = listed.documents.map((document) => BSON.deserialize(document));
  const exists = found !== undefined;
  const isView = exists && found['type'] === 'view';
  if (exists && found['type'] !== 'collection') return { method: 'first', size, of: null, exists, isView };
  const counted = await readMetadata({ ...base, command: { kind: 'reply', db, command: { count: coll } } }, caller, deps);
  if (!counted.ok) return counted;
  const of = Number(replyOf(counted.documents)['n']);
  if (of <= size) return { method: 'all', size, of, exists, isView };
  const most = Math.floor(of / randomShare);
  if (of <= smallCollection || size <= most) return { method: 'random', size, of, exists, isView };
  base.notes.push(`sampleSize was ${size}; a random sample of more than ${most} of these documents would make the database read and sort all of them, so ${most} were drawn.`);
  return { method: 'random', size: most, of, exists, isView };
}

function sampling(base: Omit<MetadataRead, 'command'>, { size }: Plan, method: Method): MetadataRead {
  const pipeline = method === 'random' ? [{ $sample: { size } }] : [];
  const command: Command = { kind: 'aggregate', on: base.on, pipeline, writes: false };
  return { ...base, command, limit: size };
}

function withinBytes(analysis: SchemaAnalysis, maxBytes: number): { schema: Record<string, unknown>; left: number } {
  for (const depth of depths) {
    const schema = analysis.view(depth);
    if (Buffer.byteLength(JSON.stringify(schema)) <= maxBytes) return { schema, left: 0 };
  }
  const entries = Object.entries(analysis.view(1));
  const shown = fitting(entries, maxBytes);
  return { schema: Object.fromEntries(shown), left: entries.length - shown.length };
}

/** Says what the shares are worth. */
function summaryOf({ method, of, exists }: Plan, documents: number, namespace: string): string {
  if (documents === 0) return exists || (of ?? 0) > 0 ? `${namespace} is empty.` : `There is no ${namespace} that this user may see: list-collections shows what there is.`;
  if (method === 'all') return `All ${documents} documents were read.`;
  const whole = of === null ? 'of an unknown number of documents' : `of about ${of} documents`;
  const how = method === 'random' ? 'drawn at random' : 'the first ones that came, which need not be like the others';
  return `A guess from a sample of ${documents} ${whole}, ${how}: rarer fields and types may be missing.`;
}
