/** Joins the connections: those of the configuration, and those that callers open, each with a deployment and an engine. */

import { ConfigError } from './config/config-error.js';
import { readConnections } from './config/connections.js';
import { type Config, optionRows } from './config/options.js';
import { type ConnectionTable, type ConnectionsDeps, createConnections, preconfiguredId } from './core/connections.js';
import type { Clock, Deployment, Log } from './core/ports.js';
import { LeashError } from './domain/errors.js';
import type { Redactor } from './domain/redact.js';
import { describeConnection, parseConnectionString } from './mongo/connection-string.js';
import { type LazyDeployment, lazyDeployment } from './mongo/lazy.js';

/** What is asked of the deployment of the start, whatever has become of its connection meanwhile. */
export type MainDeployment = Pick<Deployment, 'ready' | 'nodes' | 'look'> & {
  /** Closes every connection. */
  close(): Promise<void>;
};

export interface WiredConnections {
  table: ConnectionTable;
  main: MainDeployment;
  /** Loads the driver, and has it read every connection string of the configuration. @throws LeashError bad_argument, ConfigError */
  load(): Promise<void>;
}

export interface ConnectionParts extends Pick<ConnectionsDeps, 'engineOn' | 'newConnectionId' | 'clock'> {
  instance: string;
  clock: Clock;
  log: Log;
  redact: Redactor;
}

/** Nothing is connected yet. @throws LeashError bad_argument, ConfigError when a connection string cannot be read */
export function wireConnections(config: Config, { instance, clock, log, redact, ...parts }: ConnectionParts): WiredConnections {
  const { maxOperations } = config;
  const { byName, warnings } = readConnections(config.connections);
  for (const warning of warnings) log.warn({}, warning);
  for (const uri of [config.uri, config.controlUri, ...byName.values()]) if (uri !== undefined) redact.learn(uri);
  const controlConnectionString = config.controlUri === undefined ? undefined : parseConnectionString(config.controlUri, 'controlUri');
  const checks: (() => Promise<void>)[] = [];

  /** A deployment is made anew whenever its connection is opened again; the first one is loaded ahead. */
  function configured(id: string, source: 'preconfigured' | 'named', uri: string): ConnectionsDeps['configured'][number] {
    const connectionString = parseConnectionString(uri);
    const make = () => lazyDeployment({ connectionString, controlConnectionString: source === 'preconfigured' ? controlConnectionString : undefined, instance, maxOperations }, clock, log);
    let first: LazyDeployment | null = make();
    checks.push(() => naming(id, source, async () => { await first?.load(); }));
    return {
      id,
      source,
      description: describeConnection(connectionString),
      deployment() {
        const deployment = first ?? make();
        first = null;
        return deployment;
      },
    };
  }

  /** The message of a named one says which it is. */
  function naming<T>(id: string, source: 'preconfigured' | 'named', act: () => T): T {
    const fail = (error: unknown): never => {
      if (source === 'named' && error instanceof LeashError) throw new ConfigError(`${optionRows.connections.env}, ${id}: ${redact(error.message)} ${error.next}`);
      throw error;
    };
    try {
      const done = act();
      return done instanceof Promise ? (done.catch(fail) as T) : done;
    } catch (error) {
      return fail(error);
    }
  }

  const table = createConnections({
    ...parts,
    clock,
    redact,
    configured: [
      ...(config.uri === undefined ? [] : [configured(preconfiguredId, 'preconfigured', config.uri)]),
      ...[...byName].map(([name, uri]) => naming(name, 'named', () => configured(name, 'named', uri))),
    ],
    unconfigured: unconfigured(),
    // Over HTTP a connection string of a caller would make this server a way to whatever it can reach.
    openFree: config.http ? null : (uri) => {
      redact.learn(uri);
      const connectionString = parseConnectionString(uri, 'connectionString');
      return { description: describeConnection(connectionString), deployment: lazyDeployment({ connectionString, instance, maxOperations }, clock, log) };
    },
  });

  const everyone = { principal: '', admin: true };
  function mainDeployment(): Deployment {
    const [first] = table.visible(everyone);
    if (first === undefined) return unconfigured();
    table.engine(first);
    if (first.opened === null) throw new Error('a connection that was opened has a deployment');
    return first.opened.deployment;
  }

  return {
    table,
    main: {
      ready: async () => { await mainDeployment().ready(); },
      nodes: () => mainDeployment().nodes(),
      look: (node) => mainDeployment().look(node),
      close: async () => { await Promise.all(table.opened().map(({ deployment }) => deployment.close())); },
    },
    async load() {
      await Promise.all(checks.map((check) => check()));
    },
  };
}

/** Stands in while there is no connection: every call says how to get one. */
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
