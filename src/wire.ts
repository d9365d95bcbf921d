/** The only place that joins the parts: configuration in, a running engine and its MCP servers out. */

import { randomBytes } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import type { Server } from '@modelcontextprotocol/server';
import type { Config } from './config/options.js';
import { createAdmission } from './core/admission.js';
import { systemClock } from './core/clock.js';
import { createFleet } from './core/fleet.js';
import { type Leash, createLeash } from './core/leash.js';
import { describeConnections } from './core/describe.js';
import type { Exports } from './core/exports.js';
import { createLivenessOf } from './core/liveness.js';
import type { Clock, Deployment, Liveness, Log, Store } from './core/ports.js';
import { checkViews, rememberCollections } from './core/view-policy.js';
import { encodeId, idLengths } from './domain/ids.js';
import type { PolicySettings } from './domain/policy/pipeline-policy.js';
import { type Redactor, createRedactor } from './domain/redact.js';
import { type CallerOf, type Era, createMcpServer } from './mcp/server.js';
import { createOperationTasks } from './mcp/tasks/operations.js';
import type { TaskSource } from './mcp/tasks/source.js';
import type { Tool } from './mcp/tool.js';
import { allowsWrites, selectTools } from './mcp/tool-selection.js';
import { productTools } from './mcp/tools/all.js';
import { createStore } from './store/create.js';
import { createExportFiles } from './store/export-files.js';
import { describeInstance, probeProcess, readMachine } from './store/machine.js';
import { defaultStateFolder } from './store/state-folder.js';
import { type MainDeployment, wireConnections } from './wire-connections.js';

export interface Wired {
  instance: string;
  leash: Leash;
  deployment: MainDeployment;
  store: Store;
  exports: Exports;
  /** From now on answers tell under which address the file of an export can be had, in place of its path. */
  offerDownloads(addressOf: (operationId: string) => string): void;
  clock: Clock;
  /** Whether the server process with this id, as it stands in tags, lives. */
  livenessOf(instance: string): Promise<Liveness>;
  tools: readonly Tool[];
  /** An MCP server for one connection, session or request. */
  createServer(callerOf: CallerOf, era: Era): Server;
  /** Whose calls those over stdio are. */
  stdioCaller: CallerOf;
  newId(length: number): string;
  redact(text: string): string;
  /** Loads the driver where there is a connection string, and has it read the whole of it. @throws LeashError bad_argument */
  load(): Promise<void>;
}

const newId = (length: number) => encodeId(randomBytes(length), length);

/** What a server offers besides the product's own; for tests that bring tools of theirs. */
export interface Extension {
  tools: readonly Tool[];
  tasks: readonly TaskSource[];
}

/** @throws LeashError bad_argument when the connection string cannot be read */
export function wire(config: Config, version: string, plainLog: Log, extension: Extension = { tools: [], tasks: [] }): Wired {
  const instance = newId(idLengths.instance);
  const clock = systemClock();
  const redact = createRedactor([]);
  const log = redactedLog(plainLog, redact);
  const allowWrites = allowsWrites(config);
  const policy: PolicySettings = { allowWrites, allowJs: config.allowJs, allowInternal: config.allowInternal, extraStages: config.allowStage };
  // An embedded database ends with the process, and nobody will ask for its records after that.
  const store = createStore(config.demo ? { ...config, store: 'memory' } : config, clock, log);
  const livenessOf = createLivenessOf({ store, here: readMachine(), probe: probeProcess });
  let placeOf: Exports['placeOf'] = config.http ? () => ({}) : (_operationId, file) => ({ path: exports.pathOf(file) });
  const exports = createExportFiles(
    {
      stateFolder: config.stateFolder ?? defaultStateFolder(process.env),
      instance,
      maxBytes: config.exportBytes,
      maxTotalBytes: config.exportStoreBytes,
      maxRetentionMs: config.maxRetentionMs,
      keepDocuments: config.keepResults,
      endsWithProcess: config.demo || config.store === 'memory',
      placeOf: (operationId, file) => placeOf(operationId, file),
    },
    { store, livenessOf, clock, log },
  );
  const self = describeInstance(instance, clock.iso());
  // Of the whole process: what runs on one deployment counts for the others as well.
  const admission = createAdmission({ maxOperations: config.maxOperations, maxQueued: config.maxQueued });
  const engineOn = (deployment: Deployment) => {
    const collections = rememberCollections(deployment, clock);
    return createLeash({
      deployment,
      store,
      clock,
      log,
      instance,
      self,
      livenessOf,
      sweepMode: config.sweep,
      newOperationId: () => newId(idLengths.operation),
      admission,
      limits: { deadlineGraceMs: config.deadlineGraceMs, keepMs: config.retentionMs },
      checkPolicy: (request) => checkViews(collections, policy, request.namespaces),
    });
  };
  const { table: connections, main, load } = wireConnections(config, { instance, clock, log, redact, engineOn, newConnectionId: () => newId(idLengths.connection) });
  const leash = createFleet({ connections, store, clock, admission });
  // The operating system's user and host, not the process: a resumed client finds what its last server left.
  const caller = { principal: `${userInfo().username}@${hostname()}`, session: newId(idLengths.session), causeOfClose: 'client_cancelled' as const };
  const tools = [...selectTools(productTools, { ...config, allowWrites }), ...extension.tools];
  const tasks = [...extension.tasks, createOperationTasks(leash, config, exports)];
  const info = { name: 'mongo-leash', title: 'MongoDB on a leash', version };
  return {
    instance,
    leash,
    deployment: main,
    store,
    exports,
    offerDownloads(addressOf) { placeOf = (operationId) => ({ download: addressOf(operationId) }); },
    clock,
    livenessOf,
    redact,
    load,
    tools,
    createServer: (callerOf, era) => createMcpServer({ leash, connections, exports, store, describeDeployment: (who) => describeConnections(connections, who), limits: config, policy, tools, tasks, info, log, redact, callerOf }, era),
    stdioCaller: () => caller,
    newId,
  };
}

/** No line of the log repeats a secret of a connection string, whoever writes it. */
function redactedLog(log: Log, redact: Redactor): Log {
  const clean = (fields: object) => {
    const copy: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(fields) as [string, unknown][]) copy[name] = typeof value === 'string' ? redact(value) : value;
    return copy;
  };
  return {
    debug: (fields, message) => { log.debug(clean(fields), message); },
    info: (fields, message) => { log.info(clean(fields), message); },
    warn: (fields, message) => { log.warn(clean(fields), message); },
    error: (fields, message) => { log.error(clean(fields), message); },
  };
}
