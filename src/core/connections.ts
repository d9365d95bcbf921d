/** The deployments that this process talks to, each by a connection with an id: those of the configuration, and those that callers have opened. */

import { LeashError, messageOf } from '../domain/errors.js';
import { pause } from './clock.js';
import type { Engine } from './leash.js';
import type { Clock, Deployment } from './ports.js';
import type { Caller } from './request.js';
import type { ShutdownReport } from './shutdown.js';

export type ConnectionSource = 'preconfigured' | 'named' | 'explicit';
export type ConnectionState = 'connected' | 'connecting' | 'disconnected' | 'errored';

export interface Connection {
  readonly id: string;
  readonly name: string;
  readonly source: ConnectionSource;
  /** Whose it is; null for one of the configuration, which is everybody's. */
  readonly principal: string | null;
  readonly description: string;
  readonly createdAt: string;
  lastUsedAt: string;
  state: ConnectionState;
  /** Why it could not be reached the last time; null when it could. */
  lastError: string | null;
  /** null until it is first used, and after a disconnect. */
  opened: { deployment: Deployment; engine: Engine } | null;
  /** What tools have learnt of its deployment. */
  memory: Map<string, unknown>;
}

/** What list-connections shows. Times are ISO 8601 UTC. */
export type ConnectionView = Pick<Connection, 'name' | 'source' | 'state' | 'description' | 'createdAt' | 'lastUsedAt'> & { connectionId: string; lastError?: string };

export interface Disconnected {
  /** `removed`: its id means nothing any more. `disconnected`: it is of the configuration, and opens again when it is used. */
  outcome: 'removed' | 'disconnected' | 'still_connected';
  operations: ShutdownReport['operations'];
}

/** Connections as the tools use them. */
export interface Connections {
  /** The caller's own, and those of the configuration; each that was reached is asked whether it still answers. */
  list(caller: Caller): Promise<ConnectionView[]>;
  /** Opens one by a connection string, or one of the configuration by its name. @throws LeashError that says why it cannot be reached */
  connect(request: { connectionString?: string | undefined; name?: string | undefined }, caller: Caller): Promise<ConnectionView>;
  /** Kills what runs there, proves it for up to so many milliseconds, and closes it only when all is proven. @throws LeashError */
  disconnect(connectionId: string, caller: Caller, budgetMs: number): Promise<Disconnected>;
  /** What tools have learnt of its deployment, until it is closed. @throws LeashError as {@link ConnectionTable.resolve} */
  memory(connectionId: string | undefined, caller: Caller): Map<string, unknown>;
}

/** The same as the fleet uses them. */
export interface ConnectionTable extends Connections {
  /** The one that is meant. @throws LeashError bad_argument where there are several, not_found where there is none of that id */
  resolve(connectionId: string | undefined, caller: Caller): Connection;
  /** Opens it where that is not done yet; nothing is sent. */
  engine(connection: Connection): Engine;
  visible(caller: Pick<Caller, 'principal' | 'admin'>): Connection[];
  opened(): { id: string; deployment: Deployment; engine: Engine }[];
  /** From now on each that is opened sweeps what dead processes left. */
  startSweeps(): void;
  /** From now on nothing is opened. */
  refuseWork(): void;
}

export interface ConnectionsDeps {
  /** Those of the configuration, the preconfigured one first. */
  configured: readonly { id: string; source: 'preconfigured' | 'named'; description: string; deployment(): Deployment }[];
  /** Stands in while there is none: says how to get one. */
  unconfigured: Deployment;
  /** For a connection string of a caller; null where callers may not bring one. @throws LeashError bad_argument */
  openFree: ((connectionString: string) => { description: string; deployment: Deployment }) | null;
  engineOn(deployment: Deployment): Engine;
  newConnectionId(): string;
  clock: Clock;
  redact(text: string): string;
}

/** The id of the connection of the start. */
export const preconfiguredId = 'preconfigured';

/** Connections by connect at once: each holds sockets to every node of its deployment. */
const maxExplicit = 10;
/** How long one may take to say that it still answers, in milliseconds. */
const answerMs = 1_500;

export function createConnections(deps: ConnectionsDeps): ConnectionTable {
  const { clock, redact } = deps;
  const table = new Map<string, Connection>();
  const opening = new Map<string, () => Deployment>();
  let dialling = 0;
  let sweeping = false;
  let closing = false;

  function add(id: string, of: Pick<Connection, 'name' | 'source' | 'principal' | 'description'>, deployment: () => Deployment): Connection {
    const now = clock.iso();
    const connection: Connection = { id, ...of, createdAt: now, lastUsedAt: now, state: 'disconnected', lastError: null, opened: null, memory: new Map() };
    opening.set(id, deployment);
    return connection;
  }

  const unconfigured = add(preconfiguredId, { name: preconfiguredId, source: 'preconfigured', principal: null, description: '' }, () => deps.unconfigured);
  for (const { id, source, description, deployment } of deps.configured) table.set(id, add(id, { name: id, source, principal: null, description }, deployment));

  function open(connection: Connection): NonNullable<Connection['opened']> {
    if (connection.opened !== null) return connection.opened;
    const found = opening.get(connection.id);
    if (found === undefined) throw notThere(connection.id);
    const deployment = watched(connection, found());
    connection.opened = { deployment, engine: deps.engineOn(deployment) };
    if (sweeping && connection.source !== 'explicit') connection.opened.engine.sweep.start();
    return connection.opened;
  }

  const visible: ConnectionTable['visible'] = ({ principal, admin }) => [...table.values()].filter((each) => each.principal === null || each.principal === principal || admin === true);

  function find(id: string, caller: Caller, path = 'connectionId'): Connection {
    const found = visible(caller).find((each) => each.id === id);
    if (found === undefined) throw notThere(id, path);
    return found;
  }

  const resolve: ConnectionTable['resolve'] = (id, caller) => {
    const [first, ...others] = visible(caller);
    if (id !== undefined) return find(id, caller);
    if (others.length === 0) return first ?? unconfigured;
    throw new LeashError('bad_argument', `There are several connections: ${[first, ...others].map((each) => each?.id).join(', ')}.`, { path: 'connectionId', next: 'Say which one with connectionId; list-connections tells of each.' });
  };

  async function connectNew(connectionString: string, name: string | undefined, caller: Caller): Promise<Connection> {
    const { openFree } = deps;
    if (openFree === null) {
      throw new LeashError('refused_by_policy', 'This server opens only the connections of its own configuration: over HTTP a connection string of the caller would let it reach what only this machine can.', {
        path: 'connectionString',
        next: `Use one of these as connectionId: ${[...table.keys()].join(', ') || 'there is none'}. The operator adds others with --connections.`,
      });
    }
    if (name !== undefined && table.has(name)) throw new LeashError('bad_argument', `connectionName: ${name} is the id of another connection.`, { path: 'connectionName' });
    if ([...table.values()].filter(({ source }) => source === 'explicit').length + dialling >= maxExplicit) throw new LeashError('busy', `${maxExplicit} connections are open: the limit is reached.`, { next: 'End one with disconnect, then call again.' });
    const { description, deployment } = openFree(connectionString);
    const id = deps.newConnectionId();
    const connection = add(id, { name: redact(name ?? id), source: 'explicit', principal: caller.principal, description }, () => deployment);
    dialling += 1;
    try {
      await dial(connection, caller);
      table.set(id, connection);
      if (sweeping) open(connection).engine.sweep.start();
      return connection;
    } catch (error) {
      opening.delete(id);
      await deployment.close();
      throw error;
    } finally {
      dialling -= 1;
    }
  }

  async function dial(connection: Connection, { signal }: Caller): Promise<void> {
    const { deployment } = open(connection);
    const aborted = new Promise<never>((_resolve, reject) => {
      const giveUp = () => { reject(new LeashError('killed', 'The call was cancelled before the connection was made.', { database: 'Nothing was sent to the database.' })); };
      if (signal.aborted) giveUp();
      else signal.addEventListener('abort', giveUp, { once: true });
    });
    aborted.catch(() => undefined);
    await Promise.race([deployment.ready(), aborted]);
    if (closing) throw new LeashError('shutting_down', 'This server is shutting down.');
  }

  async function viewOf(connection: Connection): Promise<ConnectionView> {
    if (connection.state === 'connected' && connection.opened !== null) await askWhetherThere(connection, connection.opened.deployment);
    const { id, name, source, state, description, lastError, createdAt, lastUsedAt } = connection;
    return { connectionId: id, name, source, state, description, ...(lastError === null ? {} : { lastError: redact(lastError) }), createdAt, lastUsedAt };
  }

  /** The driver keeps a connection that has been lost, and makes it again: what it is now, only a look tells. */
  async function askWhetherThere(connection: Connection, deployment: Deployment): Promise<void> {
    const looks = Promise.all(deployment.nodes().map((node) => deployment.look(node)));
    let reasons: string[] | null = null;
    await pause(clock, answerMs, looks.then((all) => { reasons = all.some(({ ok }) => ok) ? [] : all.flatMap((look) => (look.ok ? [] : [`${look.node}: ${look.reason}`])); }));
    const silent: string[] = reasons ?? [`no answer within ${answerMs} ms`];
    connection.lastError = silent.length === 0 ? null : silent.join(', ');
    connection.state = silent.length === 0 ? 'connected' : 'errored';
  }

  return {
    resolve,
    visible,
    engine: (connection) => open(connection).engine,
    opened: () => [unconfigured, ...table.values()].flatMap(({ id, opened }) => (opened === null ? [] : [{ id, ...opened }])),
    memory: (id, caller) => resolve(id, caller).memory,
    list: async (caller) => await Promise.all(visible(caller).map(viewOf)),

    async connect({ connectionString, name }, caller) {
      if (closing) throw new LeashError('shutting_down', 'This server is shutting down.');
      if (connectionString !== undefined) return await viewOf(await connectNew(connectionString, name, caller));
      if (name === undefined) throw new LeashError('bad_argument', 'connect needs a connectionString, or the connectionName of a connection of the configuration.');
      const connection = find(name, caller, 'connectionName');
      await dial(connection, caller);
      return await viewOf(connection);
    },

    async disconnect(id, caller, budgetMs) {
      const connection = find(id, caller);
      if (connection.principal === null && deps.openFree === null && caller.admin !== true) {
        throw new LeashError('refused_by_policy', `The connection ${id} is of the configuration and serves others too, so it is not closed for one of them.`, { next: 'Stop your own operations with kill; operations lists them.' });
      }
      const { opened } = connection;
      const report = opened === null ? { allProven: true, operations: [] } : await opened.engine.disconnect(budgetMs);
      if (!report.allProven) return { outcome: 'still_connected', operations: report.operations };
      await opened?.deployment.close();
      connection.opened = null;
      connection.state = 'disconnected';
      connection.lastError = null;
      connection.memory.clear();
      if (connection.source !== 'explicit') return { outcome: 'disconnected', operations: report.operations };
      table.delete(id);
      opening.delete(id);
      return { outcome: 'removed', operations: report.operations };
    },

    startSweeps() {
      sweeping = true;
      for (const { opened } of table.values()) opened?.engine.sweep.start();
    },
    refuseWork() {
      closing = true;
    },
  };
}

/** Keeps in mind how the last attempt to reach it ended. */
function watched(connection: Connection, deployment: Deployment): Deployment {
  return {
    ...deployment,
    async ready() {
      if (connection.state !== 'connected') connection.state = 'connecting';
      try {
        await deployment.ready();
        connection.state = 'connected';
        connection.lastError = null;
      } catch (error) {
        connection.state = 'errored';
        connection.lastError = messageOf(error);
        throw error;
      }
    },
  };
}

/** Others' connections are not there, in the same way as ones that do not exist. */
function notThere(id: string, path = 'connectionId'): LeashError {
  return new LeashError('not_found', `There is no connection ${JSON.stringify(id.slice(0, 80))}.`, { path, database: 'Nothing was sent to the database.', next: 'list-connections shows those that there are.' });
}
