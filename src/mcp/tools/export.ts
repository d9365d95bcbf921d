/** The tool `export`: the documents of a find or an aggregation, however many, into a file. */

import { createHash } from 'node:crypto';
import { BSON } from 'bson';
import { z } from 'zod';
import { exportFormats } from '../../domain/export-text.js';
import { LeashError } from '../../domain/errors.js';
import { operationBody } from '../answer.js';
import { checkIndexes } from '../index-check.js';
import { endedAnswer, openAnswer } from '../operation-answer.js';
import { millisecondsArgument } from '../shapes.js';
import { atMost, taskTerms } from '../task-terms.js';
import { taskView } from '../tasks/operations.js';
import { defineTool } from '../tool.js';
import { type Query, type QueryContext, aggregateQuery, findQuery } from './query.js';
import { collectionArguments, filterArgument, jsonObject, limitArgument, operationArguments, pipelineArgument, queryOptions, skipArgument } from './query-arguments.js';

const name = z.string().min(1, 'must not be empty');
const targetArguments = z.strictObject({
  filter: filterArgument,
  projection: jsonObject.optional(),
  sort: jsonObject.optional(),
  limit: limitArgument,
  skip: skipArgument,
  pipeline: pipelineArgument.optional(),
  ...queryOptions,
});
const target = z.strictObject({ name: z.enum(['find', 'aggregate'], { error: 'must be find or aggregate' }), arguments: targetArguments });

const input = z.strictObject({
  ...collectionArguments,
  collection: name.optional().describe('Leave out for a pipeline on the database'),
  exportTitle: z.string().max(200, 'must have at most 200 characters').optional(),
  exportTarget: z.array(target).length(1, 'must have one entry').describe('filter etc. for find, pipeline for aggregate; as EJSON'),
  jsonExportFormat: z.enum(['relaxed', 'canonical'], { error: 'must be relaxed or canonical' }).optional(),
  format: z.enum(exportFormats, { error: 'must be jsonl, json or csv' }).optional().describe('Default jsonl; json is one array'),
  fields: z.array(name).min(1, 'must have one entry at least').optional().describe('Columns of csv, with dots'),
  ...operationArguments,
  waitMs: millisecondsArgument.describe('How long to wait before the id is handed over'),
});

type Target = z.output<typeof target>;

export const exportTool = defineTool({
  name: 'export',
  title: 'Export',
  description: 'Writes all documents of a find or an aggregation to a file, with a resource link; for results too long to read here.',
  input,
  scope: 'leash:read',
  task: 'optional',
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: false, openWorldHint: false },

  async call(args, notes, caller, deps) {
    const { leash, limits, policy, exports } = deps;
    const { exportTitle: title = '', format = 'jsonl', fields, connectionId, comment } = args;
    if (fields !== undefined && format !== 'csv') throw new LeashError('bad_argument', 'fields names the columns of csv; the other formats hold whole documents: use projection or $project.', { path: 'fields' });
    const on = { db: args.database, coll: args.collection ?? null };
    const wanted = args.exportTarget[0]!;
    const query = queryOf(wanted, { on, policy, limits, notes });
    const canonical = args.jsonExportFormat === 'canonical';
    const maxTimeMS = atMost('maxTimeMS', args.maxTimeMS ?? limits.maxTimeMS, limits.maxTimeMSCeiling, notes);
    const sink = exports.sink({ title, format, canonical, fields });
    const refused = await checkIndexes({ tool: 'export', on, namespaces: query.namespaces, explainable: query.explainable, connectionId, maxTimeMS, comment }, caller, deps);
    if (refused !== null) return refused;
    const limit = limitOf(wanted);
    const form = { canonical, responseBytes: limits.responseBytes };
    const answer = await leash.run(
      {
        tool: 'export',
        connectionId,
        on,
        namespaces: query.namespaces,
        writes: null,
        // What a file may hold is counted in its own bytes.
        execute: { command: query.command, maxTimeMS, readPreference: limits.readPreference, limit, maxResultBytes: Number.POSITIVE_INFINITY },
        sink,
        ownComment: comment ?? '',
        waitMs: args.waitMs ?? limits.waitMs,
        ...taskTerms(caller, limits, notes),
        answerAs: form,
        digest: createHash('sha256').update(BSON.serialize({ command: query.command, limit, maxTimeMS, format, canonical, fields })).digest('hex'),
        startAnother: false,
        notes,
      },
      caller,
    );
    const { record } = answer;
    const demanded = caller.task?.demanded === true;
    const task = taskView(record, null, limits, Date.now(), exports.placeOf);
    if (answer.kind === 'already_running') {
      return { isError: false, ...(demanded ? { task } : {}), body: { ...operationBody(record), alreadyRunning: true, next: `The same export is already running and nothing was started. Ask status with id "${record.operationId}", or stop it with kill.` } };
    }
    if (answer.kind === 'detached') return { ...openAnswer(record), task };
    return { ...endedAnswer(record, null, form, limits, exports.placeOf), ...(demanded ? { task } : {}) };
  },
});

/**
 * More documents than there can be, where the call names no number. A pipeline ends in a `$limit` all the same: without
 * one the server closes the connection when a document grows over 16 MB, and says nothing (measured on 6.0.5).
 */
function limitOf({ name: method, arguments: { limit } }: Target): number {
  if (method === 'aggregate') return Number.MAX_SAFE_INTEGER - 1;
  return limit ?? Number.MAX_SAFE_INTEGER;
}

/** @throws LeashError bad_argument, refused_by_policy */
function queryOf({ name: method, arguments: given }: Target, context: QueryContext): Query {
  const foreign = Object.keys(given).find((key) => (method === 'find' ? key === 'pipeline' : !['pipeline', 'hint', 'collation'].includes(key)));
  if (foreign !== undefined) throw new LeashError('bad_argument', `exportTarget[0].arguments: ${method} takes no ${foreign}.`, { path: `exportTarget[0].arguments.${foreign}` });
  if (method === 'find') {
    if (context.on.coll === null) throw new LeashError('bad_argument', 'export of a find needs the argument collection.', { path: 'collection' });
    return findQuery(given, context, given.limit ?? Number.MAX_SAFE_INTEGER - 1);
  }
  const { pipeline } = given;
  if (pipeline === undefined) throw new LeashError('bad_argument', 'exportTarget[0].arguments: aggregate needs pipeline.', { path: 'exportTarget[0].arguments.pipeline' });
  const query = aggregateQuery({ ...given, pipeline }, context, null);
  if (query.writes !== null) throw new LeashError('refused_by_policy', `export does not run pipelines with ${query.writes.stage}: they write, and have no documents.`, { next: 'Leave the stage out, or run the pipeline with run.' });
  return query;
}
