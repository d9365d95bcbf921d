/** The database as the core sees it: one data client, and a control connection to each node. */

import type { MongoClient } from 'mongodb';
import type { ConnectionString } from 'mongodb-connection-string-url';
import type { Clock, ExaminedDeployment, HiddenMembers, KillReply, Log, Look, Survey } from '../core/ports.js';
import { pause } from '../core/clock.js';
import { LeashError, messageOf } from '../domain/errors.js';
import { type ClientSettings, controlAppName, controlTimeoutMs, createControlClient, createDataClient, dataAppName, dataBearingNodes, directString, setNameOf } from './clients.js';
import { createControl } from './control.js';
import { describeCollection } from './describe.js';
import { toLeashError } from './errors.js';
import { countConnections, examineNode } from './examine.js';
import { listenForSent, startExecution } from './execute.js';
import { type NodeControl, createNodeControl } from './node-control.js';

export type DeploymentSettings = ClientSettings;

/** A little longer than the driver's own limit on a command to a node that is silent. */
const boundMs = controlTimeoutMs + 1_000;
/** How long the first call waits for control connections to nodes that may be down. */
const warmUpMs = 2_000;
/** How long the first call waits to be told of hidden members. */
const hiddenMembersMs = 1_000;

/** @throws the driver's error when it refuses an option of the connection string; LeashError bad_argument for that of the control credentials */
export function createDeployment(settings: DeploymentSettings, clock: Clock, log: Log): ExaminedDeployment {
  const data: MongoClient = createDataClient(settings);
  if (settings.controlConnectionString !== undefined) checkControl(settings.controlConnectionString, settings.instance, data);
  const listeners = listenForSent(data);
  const controls = new Map<string, NodeControl>();
  let listed: string[] = [];
  let hidden: HiddenMembers = { nodes: [], unknownBecause: null };
  let discovered = false;
  let setName: string | null = null;
  let connecting: Promise<void> | null = null;
  let connected = false;
  let closed = false;

  data.on('topologyDescriptionChanged', (event) => {
    if (closed) return;
    const before = listed.join();
    listed = dataBearingNodes(event.newDescription);
    discovered = event.newDescription.type.startsWith('ReplicaSet');
    setName = setNameOf(event.newDescription) ?? setName;
    if (!connected) return;
    for (const node of listed) void warm(node);
    if (listed.join() !== before) void findHidden();
  });

  const nodes = () => [...listed, ...hidden.nodes.filter((node) => !listed.includes(node))];

  function control(node: string): NodeControl {
    let found = controls.get(node);
    if (found === undefined) {
      const open = (connectionString: ConnectionString) => createControl(createControlClient(connectionString, settings.instance, node, data), node, clock);
      const { controlConnectionString: privileged } = settings;
      found = createNodeControl(open(settings.connectionString), privileged === undefined ? null : open(privileged));
      controls.set(node, found);
    }
    return found;
  }

  /**
   * What a control connection has not answered within the bound is no answer, and the connection is not used again.
   * (Measured: a command that is written while its mongod dies may never settle in the driver, whatever its time limits.)
   */
  async function bounded<T>(node: string, ask: (control: NodeControl) => Promise<T>, silent: (startedAt: number, reason: string) => T): Promise<T> {
    const asked = control(node);
    const startedAt = clock.now();
    const answer = await within(boundMs, ask(asked));
    if (answer !== null) return answer.value;
    if (controls.get(node) === asked) controls.delete(node);
    asked.close().catch(() => undefined);
    return silent(startedAt, `no answer within ${boundMs} ms`);
  }

  /** null when the time is over first; what the promise does after that is nobody's business any more. */
  async function within<T>(ms: number, promise: Promise<T>): Promise<{ value: T } | null> {
    let settled: { value: T } | null = null;
    const watched = promise.then((value) => { settled = { value }; });
    await pause(clock, ms, watched);
    // Rethrows what the promise was rejected with.
    if (settled === null) await Promise.race([watched, Promise.resolve()]);
    return settled;
  }

  const silentLook = (node: string) => (startedAt: number, reason: string) => ({ ok: false as const, node, startedAt, endedAt: clock.now(), reason });
  const silentKill = (_startedAt: number, error: string): KillReply => ({ refused: false, error });

  /** Never rejects: why there is no control connection to the node, or null. */
  async function warm(node: string): Promise<LeashError | null> {
    if (closed) return null;
    try {
      await control(node).warm();
      return null;
    } catch (error) {
      const why = toLeashError(error);
      log.debug({ node, error: why.message }, 'no control connection to a node');
      return why;
    }
  }

  /** The data user's credentials have been taken by then. @throws LeashError authentication_failed when no node takes those for control */
  async function warmAll(): Promise<void> {
    const results: (LeashError | null)[] = [];
    await pause(clock, warmUpMs, Promise.all(listed.map(async (node) => { results.push(await warm(node)); })));
    const refusal = results.find((why) => why?.code === 'authentication_failed');
    if (refusal === undefined || refusal === null || results.includes(null)) return;
    throw new LeashError('authentication_failed', `With the control credentials (MONGO_LEASH_CONTROL_URI): ${refusal.message}`, { cause: refusal });
  }

  /** Never rejects. With directConnection, one node alone is meant. */
  async function findHidden(): Promise<void> {
    if (!discovered || closed) return;
    try {
      hidden = { nodes: await Promise.any(listed.map((node) => control(node).hiddenMembers())), unknownBecause: null };
      await Promise.all(hidden.nodes.map(warm));
    } catch (error) {
      const [first] = error instanceof AggregateError ? (error.errors as unknown[]) : [error];
      hidden = { ...hidden, unknownBecause: first instanceof Error ? first.message : String(first) };
    }
  }

  async function connect(): Promise<void> {
    try {
      await data.connect();
      // Credentials are checked when a connection is opened, which connect() alone may leave for later.
      await data.db('admin').command({ ping: 1 }, settings.readPreference === undefined ? {} : { readPreference: settings.readPreference });
    } catch (error) {
      throw toLeashError(error);
    }
    await warmAll();
    connected = true;
    await pause(clock, hiddenMembersMs, findHidden());
    log.info({ nodes: nodes() }, 'connected');
  }

  async function withClient<T>(connectionString: ConnectionString, node: string, ask: (client: MongoClient) => Promise<T>): Promise<T> {
    const client = createControlClient(connectionString, settings.instance, node, data);
    try {
      return await ask(client);
    } catch (error) {
      throw toLeashError(error);
    } finally {
      await client.close();
    }
  }

  return {
    async ready() {
      if (connected) return;
      connecting ??= connect().finally(() => {
        connecting = null;
      });
      await connecting;
    },
    nodes,
    hiddenMembers: () => hidden,
    setName: () => setName,
    look: (node) => bounded<Look>(node, (at) => at.look(), silentLook(node)),
    survey: (node) => bounded<Survey>(node, (at) => at.survey(), silentLook(node)),
    kill: (node, sighting, origin) => bounded(node, (at) => at.kill(sighting, origin), silentKill),
    killSessions: (node, sessions) => bounded(node, (at) => at.killSessions(sessions), silentKill),
    execute: (request, events) => startExecution(data, listeners, request, events),
    async collectionInfo(ns) {
      try {
        const info = await within(boundMs, describeCollection(data, ns));
        if (info !== null) return info.value;
      } catch (error) {
        throw toLeashError(error);
      }
      throw new LeashError('unreachable', `The database did not say within ${boundMs} ms what ${ns.db}.${ns.coll} is.`);
    },
    async examine(node, credentials) {
      const connectionString = credentials === 'data' ? settings.connectionString : settings.controlConnectionString;
      if (connectionString === undefined) throw new LeashError('bad_argument', 'There are no control credentials.');
      return await withClient(connectionString, node, (client) => examineNode(client, clock));
    },
    connectionsOf: (instance, node) =>
      withClient(settings.controlConnectionString ?? settings.connectionString, node, (client) => countConnections(client, [`${dataAppName}${instance}`, `${controlAppName}${instance}`])).catch(() => null),
    alone: (node, connections, instance) =>
      createDeployment({ ...settings, connectionString: directString(settings.connectionString, node, data), readPreference: undefined, instance, maxOperations: connections - 1 }, clock, log),
    async close() {
      closed = true;
      await Promise.all([data.close(), ...[...controls.values()].map((each) => each.close())]).catch(() => undefined);
    },
  };
}

/** By a client that is never connected: the options of the control credentials are read now, not at the first look. */
function checkControl(connectionString: ConnectionString, instance: string, data: MongoClient): void {
  try {
    createControlClient(connectionString, instance, 'localhost:27017', data);
  } catch (error) {
    throw new LeashError('bad_argument', `The connection string cannot be used: ${messageOf(error)}.`, { path: 'controlUri', next: 'Correct its options.', cause: error });
  }
}
