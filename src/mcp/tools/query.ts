/** What a tool call asks of the database: read, checked by the policy, and once in the form that an explain of it takes. */

import { hintsFor } from '../../domain/argument-hints.js';
import { parseArgument } from '../../domain/ejson-in.js';
import { LeashError } from '../../domain/errors.js';
import type { WriteReport } from '../../domain/operation.js';
import { setOwn } from '../../domain/own-property.js';
import { type Namespace, checkExpression, checkNamespace, checkPipeline } from '../../domain/policy/pipeline-policy.js';
import type { Command } from '../../core/ports.js';
import type { ToolDeps } from '../tool.js';

export interface Query {
  on: Namespace;
  /** Every collection that it reads, for the resolution of views. */
  namespaces: readonly { ns: Namespace; path: string }[];
  writes: WriteReport | null;
  command: Command;
  /** The command as it is sent, for an explain of it. */
  explainable: Record<string, unknown>;
}

export interface QueryContext extends Pick<ToolDeps, 'policy' | 'limits'> {
  on: Namespace;
  notes: string[];
}

interface Options {
  hint?: unknown;
  collation?: unknown;
}

export interface PipelineArguments extends Options {
  pipeline: unknown[];
}

export interface FilterArguments extends Options {
  filter?: unknown;
}

export interface FindArguments extends FilterArguments {
  projection?: unknown;
  sort?: unknown;
  skip?: number | undefined;
}

/** @param limit documents that are kept: the database is asked for one more. null where the pipeline is explained as it stands */
export function aggregateQuery(args: PipelineArguments, context: QueryContext, limit: number | null): Query {
  const { on, policy, limits } = context;
  const pipeline = parseArgument(args.pipeline, 'pipeline') as unknown[];
  const facts = checkPipeline(pipeline, on, policy);
  const options = { ...optionsOf(args, context), ...(limits.denyDiskUse ? { allowDiskUse: false } : {}) };
  context.notes.push(...hintsFor(args.pipeline, 'pipeline'));
  const writes = facts.writes === null ? null : writeReport(facts.writes);
  return {
    on,
    namespaces: facts.namespaces,
    writes,
    command: { kind: 'aggregate', on, pipeline, writes: writes !== null, ...options },
    explainable: { aggregate: on.coll ?? 1, pipeline: limit === null || writes !== null ? pipeline : [...pipeline, { $limit: limit + 1 }], cursor: {}, ...options },
  };
}

/** @param limit documents that are kept: the database is asked for one more */
export function findQuery(args: FindArguments, context: QueryContext, limit: number): Query {
  const on = namedCollection(context);
  const filter = filterOf(args.filter, 'filter', context);
  const projection = checkedDocument(args.projection, 'projection', context);
  const sort = args.sort === undefined ? undefined : sortOf(args.sort, context);
  const rest = { ...(projection === undefined ? {} : { projection }), ...(sort === undefined ? {} : { sort }), ...(args.skip === undefined ? {} : { skip: args.skip }), ...optionsOf(args, context) };
  const options = { ...rest, ...(context.limits.denyDiskUse ? { allowDiskUse: false } : {}) };
  return {
    on,
    namespaces: [{ ns: on, path: 'collection' }],
    writes: null,
    command: { kind: 'find', on, filter, ...options },
    explainable: { find: on.coll, filter, limit: limit + 1, ...options },
  };
}

/**
 * An exact count: an aggregation that counts what the filter finds. The count of the metadata is never used, since it
 * may be wrong after an unclean end of the server, and on a sharded cluster, and nothing tells from outside.
 * A filter that only a find takes ($where, $near) is counted by the command `count`, which looks at each document too.
 */
export function countQuery(filterArguments: FilterArguments, context: QueryContext, path: 'query' | 'filter' = 'query'): Query {
  const on = namedCollection(context);
  const filter = filterOf(filterArguments.filter, path, context);
  const options = optionsOf(filterArguments, context);
  const namespaces = [{ ns: on, path: 'collection' }];
  if (onlyForFind(filter)) {
    const command = { count: on.coll, query: filter, ...options };
    return { on, namespaces, writes: null, command: { kind: 'reply', db: on.db, command }, explainable: command };
  }
  const pipeline = [{ $match: filter }, { $count: 'n' }];
  return { on, namespaces, writes: null, command: { kind: 'aggregate', on, pipeline, writes: false, ...options }, explainable: { aggregate: on.coll, pipeline, cursor: {}, ...options } };
}

/** Counts the documents of a whole pipeline. */
export function countPipeline(query: Query): Query {
  if (query.command.kind !== 'aggregate') throw new Error('only a pipeline is counted by a pipeline');
  const pipeline = [...query.command.pipeline, { $count: 'n' }];
  return { ...query, command: { ...query.command, pipeline }, explainable: { ...query.explainable, pipeline } };
}

export function distinctQuery(args: { field: string; query?: unknown; collation?: unknown }, context: QueryContext): Query {
  const on = namedCollection(context);
  const command = { distinct: on.coll, key: parseArgument(args.field, 'field'), query: filterOf(args.query, 'query', context), ...optionsOf({ collation: args.collation }, context) };
  return { on, namespaces: [{ ns: on, path: 'collection' }], writes: null, command: { kind: 'reply', db: on.db, command }, explainable: command };
}

function namedCollection({ on, policy }: QueryContext): Namespace & { coll: string } {
  checkNamespace(on, policy, 'collection');
  return { db: on.db, coll: on.coll ?? '' };
}

function filterOf(given: unknown, path: string, context: QueryContext): unknown {
  context.notes.push(...hintsFor(given, path));
  return checkedDocument(given, path, context) ?? {};
}

function checkedDocument(given: unknown, path: string, { policy }: QueryContext, options: { orderMatters?: boolean } = {}): unknown {
  if (given === undefined) return undefined;
  const parsed = parseArgument(given, path, options);
  checkExpression(parsed, policy, path);
  return parsed;
}

function optionsOf({ hint, collation }: Options, context: QueryContext): Options {
  return {
    ...(hint === undefined ? {} : { hint: typeof hint === 'string' ? parseArgument(hint, 'hint') : checkedDocument(hint, 'hint', context, { orderMatters: true }) }),
    ...(collation === undefined ? {} : { collation: checkedDocument(collation, 'collation', context) }),
  };
}

const directions: ReadonlyMap<unknown, 1 | -1> = new Map<unknown, 1 | -1>([[1, 1], [-1, -1], ['asc', 1], ['desc', -1], ['ascending', 1], ['descending', -1]]);

/** The order of keys is kept: what JSON would move is refused. */
function sortOf(given: unknown, context: QueryContext): Record<string, unknown> {
  const checked = checkedDocument(given, 'sort', context, { orderMatters: true }) as Record<string, unknown>;
  const sort = {};
  for (const [key, value] of Object.entries(given as Record<string, unknown>)) {
    const direction = directions.get(value);
    const isMeta = typeof value === 'object' && value !== null && Object.keys(value).join() === '$meta';
    if (direction === undefined && !isMeta) throw new LeashError('bad_argument', `sort: the direction of ${JSON.stringify(key)} must be 1, -1, "asc", "desc" or {"$meta": …}.`, { path: 'sort' });
    setOwn(sort, key, direction ?? checked[key]);
  }
  return sort;
}

const findOnlyOperators: ReadonlySet<string> = new Set(['$where', '$near', '$nearSphere']);

function onlyForFind(filter: unknown): boolean {
  if (Array.isArray(filter)) return filter.some(onlyForFind);
  if (typeof filter !== 'object' || filter === null || Object.getPrototypeOf(filter) !== Object.prototype) return false;
  return Object.entries(filter).some(([key, value]) => findOnlyOperators.has(key) || (key !== '$expr' && onlyForFind(value)));
}

export function writeReport({ stage, target }: { stage: '$out' | '$merge'; target: Namespace }): WriteReport {
  const name = `${target.db}.${target.coll ?? ''}`;
  return { stage, target: name, effects: `What it wrote to ${name} is not known yet: partial or full effects are possible.` };
}
