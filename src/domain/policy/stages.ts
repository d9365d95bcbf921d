/** The tables of stages that the policy knows: a stage in none of them is refused, so that a future write stage cannot pass. */

/** Stages of MongoDB 4.4 to 8.x and of Atlas Search that only read what the caller may read. */
export const readStages: ReadonlySet<string> = new Set([
  '$addFields', '$bucket', '$bucketAuto', '$collStats', '$count', '$densify', '$documents', '$facet', '$fill',
  '$geoNear', '$graphLookup', '$group', '$indexStats', '$limit', '$listSearchIndexes', '$lookup', '$match',
  '$project', '$rankFusion', '$redact', '$replaceRoot', '$replaceWith', '$sample', '$score', '$scoreFusion',
  '$search', '$searchBeta', '$searchMeta', '$set', '$setWindowFields', '$skip', '$sort', '$sortByCount',
  '$unionWith', '$unset', '$unwind', '$vectorSearch',
]);

export type WriteStage = '$out' | '$merge';

export function isWriteStage(name: string): name is WriteStage {
  return name === '$out' || name === '$merge';
}

/** Stages whose specification is itself an expression; the others' is a list of options or of field names. */
export const expressionStages: ReadonlySet<string> = new Set(['$documents', '$redact', '$replaceWith', '$sortByCount']);

/** Stages that hold pipelines or name collections: out of their place, nothing would check what they hold. */
export const reachingStages: ReadonlySet<string> = new Set([
  '$facet', '$graphLookup', '$lookup', '$rankFusion', '$scoreFusion', '$unionWith',
]);

export interface Refusal {
  /** Follows "is refused: ". */
  reason: string;
  /** Whether `allowInternal` lifts it. */
  liftable: boolean;
}

const neverEnds = 'a change stream never ends by itself, and this version has no way to follow one';
const othersQueries = "it shows other users' queries";
const othersSessions = "it shows other users' sessions";
const allDatabases = 'it shows the collections of all databases';
const serverOnly = 'it is internal to the server and has no meaning in a query';

const byName: ReadonlyMap<string, Refusal> = new Map<string, Refusal>([
  ['$changeStream', { reason: neverEnds, liftable: false }],
  ['$changeStreamSplitLargeEvent', { reason: neverEnds, liftable: false }],
  ['$currentOp', { reason: "it shows other users' operations", liftable: true }],
  ['$listSessions', { reason: othersSessions, liftable: true }],
  ['$listLocalSessions', { reason: othersSessions, liftable: true }],
  ['$listCachedAndActiveUsers', { reason: 'it shows who else is logged in', liftable: true }],
  ['$planCacheStats', { reason: othersQueries, liftable: true }],
  ['$listSampledQueries', { reason: othersQueries, liftable: true }],
  ['$queryStats', { reason: othersQueries, liftable: true }],
  ['$querySettings', { reason: othersQueries, liftable: true }],
  ['$shardedDataDistribution', { reason: allDatabases, liftable: true }],
  ['$listCatalog', { reason: allDatabases, liftable: true }],
  ['$listClusterCatalog', { reason: allDatabases, liftable: true }],
  ['$operationMetrics', { reason: "it can clear the server's metrics", liftable: false }],
  ['$backupCursor', { reason: "it holds back the server's files for a backup", liftable: false }],
  ['$backupCursorExtend', { reason: "it holds back the server's files for a backup", liftable: false }],
  ['$queue', { reason: serverOnly, liftable: false }],
  ['$mergeCursors', { reason: serverOnly, liftable: false }],
  ['$setVariableFromSubPipeline', { reason: serverOnly, liftable: false }],
]);

/**
 * Why a stage or an operator is refused by its name alone; null for the others. Nothing lifts `$_internal*`: such
 * stages may write, and no query needs them.
 */
export function refusalOf(name: string): Refusal | null {
  return isInternal(name) ? { reason: serverOnly, liftable: false } : (byName.get(name) ?? null);
}

/** What servers send to each other; 6.0.5 takes many of these names from anyone. */
export function isInternal(name: string): boolean {
  return name.startsWith('$_internal');
}
