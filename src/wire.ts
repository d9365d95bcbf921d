/** The only place that joins the parts: configuration in, a running engine and its MCP servers out. */

import { randomBytes } from 'node:crypto';
import { hostname, userInfo } from 'node:os';
import type { Server } from '@modelcontextprotocol/server';
import type { Config } from './config/options.js';
import { systemClock } from './core/clock.js';
import { type Leash, createLeash } from './core/leash.js';
import { createLivenessOf } from './core/liveness.js';
import type { Clock, Deployment, Liveness, Log, Store } from './core/ports.js';
import { checkViews, rememberCollections } from './core/view-policy.js';
import { LeashError } from './domain/errors.js';
import { encodeId, idLengths } from './domain/ids.js';
import type { PolicySettings } from './domain/policy/pipeline-policy.js';
import { createRedactor } from './domain/redact.js';
import { type CallerOf, type Era, createMcpServer, productTools } from './mcp/server.js';
import { createOperationTasks } from './mcp/tasks/operations.js';
import type { TaskSource } from './mcp/tasks/source.js';
import type { Tool } from './mcp/tool.js';
import { parseConnectionString } from './mongo/connection-string.js';
import { lazyDeployment } from './mongo/lazy.js';
import { createStore } from './store/create.js';
import { describeInstance, probeProcess, readMachine } from './store/machine.js';

export interface Wired {
  instance: string;
  leash: Leash;
  deployment: Deployment;
  store: Store;
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
export function wire(config: Config, version: string, log: Log, extension: Extension = { tools: [], tasks: [] }): Wired {
  const instance = newId(idLengths.instance);
  const clock = systemClock();
  const redact = createRedactor([config.uri, config.controlUri].filter((uri) => uri !== undefined));
  const controlConnectionString = config.controlUri === undefined ? undefined : parseConnectionString(config.controlUri, 'controlUri');
  const lazy = config.uri === undefined ? null : lazyDeployment({ connectionString: parseConnectionString(config.uri), controlConnectionString, instance, maxOperations: config.maxOperations }, clock, log);
  const deployment = lazy ?? unconfigured();
  const policy: PolicySettings = { allowWrites: config.allowWrites, allowJs: config.allowJs, allowInternal: config.allowInternal, extraStages: config.allowStage };
  // An embedded database ends with the process, and nobody will ask for its records after that.
  const store = createStore(config.demo ? { ...config, store: 'memory' } : config, clock, log);
  const collections = rememberCollections(deployment, clock);
  const livenessOf = createLivenessOf({ store, here: readMachine(), probe: probeProcess });
  const leash = createLeash({
    deployment,
    store,
    clock,
    log,
    instance,
    self: describeInstance(instance, clock.iso()),
    livenessOf,
    sweepMode: config.sweep,
    newOperationId: () => newId(idLengths.operation),
    limits: { maxOperations: config.maxOperations, maxQueued: config.maxQueued, deadlineGraceMs: config.deadlineGraceMs, keepMs: config.retentionMs },
    checkPolicy: (request) => checkViews(collections, policy, request.namespaces),
  });
  // The operating system's user and host, not the process: a resumed client finds what its last server left.
  const caller = { principal: `${userInfo().username}@${hostname()}`, session: newId(idLengths.session), causeOfClose: 'client_cancelled' as const };
  const tools = [...productTools, ...extension.tools];
  const tasks = [...extension.tasks, createOperationTasks(leash, config)];
  const info = { name: 'mongo-leash', title: 'MongoDB on a leash', version };
  return {
    instance,
    leash,
    deployment,
    store,
    clock,
    livenessOf,
    redact,
    load: async () => { await lazy?.load(); },
    tools,
    createServer: (callerOf, era) => createMcpServer({ leash, limits: config, policy, tools, tasks, info, log, redact, callerOf }, era),
    stdioCaller: () => caller,
    newId,
  };
}

/** Stands in while there is no connection string: every call says how to set one. */
function unconfigured(): Deployment {
  const refuse = () => {
    throw new LeashError('not_configured', 'This server has no connection string.', {
      next: 'Put MONGO_LEASH_URI into the "env" of this server in the client\'s configuration (or start it with --demo) and start it again.',
    });
  };
  return {
    ready: () => Promise.resolve().then(refuse),
    nodes: () => [],
    hiddenMembers: () => ({ nodes: [], unknownBecause: null }),
    setName: () => null,
    look: refuse,
    survey: refuse,
    kill: refuse,
    killSessions: refuse,
    execute: refuse,
    collectionInfo: refuse,
    close: () => Promise.resolve(),
  };
}
