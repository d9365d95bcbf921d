/** Every tool of the product, in the order in which clients list them: the one place to add one. */

import type { Tool } from '../tool.js';
import { aggregateTool } from './aggregate.js';
import { aggregateDbTool } from './aggregate-db.js';
import { collectionIndexesTool } from './collection-indexes.js';
import { collectionSchemaTool } from './collection-schema.js';
import { collectionStorageSizeTool } from './collection-storage-size.js';
import { connectTool } from './connect.js';
import { countTool } from './count.js';
import { dbStatsTool } from './db-stats.js';
import { disconnectTool } from './disconnect.js';
import { distinctTool } from './distinct.js';
import { explainTool } from './explain.js';
import { exportTool } from './export.js';
import { findTool } from './find.js';
import { killTool } from './kill.js';
import { listCollectionsTool } from './list-collections.js';
import { listConnectionsTool } from './list-connections.js';
import { listDatabasesTool } from './list-databases.js';
import { mongodbLogsTool } from './mongodb-logs.js';
import { operationsTool } from './operations.js';
import { resultTool } from './result.js';
import { runTool } from './run.js';
import { statusTool } from './status.js';

/** Those of the leash itself: all that `--tools core` offers. */
export const coreTools: readonly Tool[] = [runTool, statusTool, killTool, operationsTool, resultTool];

const metadataTools: readonly Tool[] = [listDatabasesTool, listCollectionsTool, collectionSchemaTool, collectionIndexesTool, collectionStorageSizeTool, dbStatsTool, mongodbLogsTool];

const connectionTools: readonly Tool[] = [connectTool, disconnectTool, listConnectionsTool];

export const productTools: readonly Tool[] = [...coreTools, aggregateTool, findTool, countTool, distinctTool, explainTool, aggregateDbTool, exportTool, ...metadataTools, ...connectionTools];
