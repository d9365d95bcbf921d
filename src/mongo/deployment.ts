/** The database as the core sees it: one data client, and a control connection to each node. */

import type { MongoClient } from 'mongodb';
import type { ConnectionString } from 'mongodb-connection-string-url';
import type { Clock, Deployment, KillReply, Log } from '../core/ports.js';
import { pause } from '../core/clock.js';
import { createControlClient, createDataClient, dataBearingNodes } from './clients.js';
import { type Control, createControl } from './control.js';
import { describeCollection } from './describe.js';
import { toLeashError } from './errors.js';
import { listenForSent, startAggregate } from './execute.js';

export interface DeploymentSettings {
  connectionString: ConnectionString;
  instance: string;
  maxOperations: number;
}

/** How long the first call waits for control connections to nodes that may be down. */
const warmUpMs = 2_000;

export function createDeployment(settings: DeploymentSettings, clock: Clock, log: Log): Deployment {
  const data: MongoClient = createDataClient(settings);
  const listeners = listenForSent(data);
  const controls = new Map<string, Control>();
  let nodes: string[] = [];
  let connecting: Promise<void> | null = null;
  let connected = false;
  let closed = false;

  data.on('topologyDescriptionChanged', (event) => {
    if (closed) return;
    nodes = dataBearingNodes(event.newDescription);
    if (connected) for (const node of nodes) void warm(node);
  });

  function control(node: string): Control {
    let found = controls.get(node);
    if (found === undefined) {
      found = createControl(createControlClient(settings, node, data), node, clock);
      controls.set(node, found);
    }
    return found;
  }

  function warm(node: string): Promise<void> {
    if (closed) return Promise.resolve();
    return control(node).warm().catch((error: unknown) => {
      log.debug({ node, error: toLeashError(error).message }, 'no control connection to a node');
    });
  }

  async function connect(): Promise<void> {
    try {
      await data.connect();
      // Credentials are checked when a connection is opened, which connect() alone may leave for later.
      await data.db('admin').command({ ping: 1 });
    } catch (error) {
      throw toLeashError(error);
    }
    connected = true;
    await pause(clock, warmUpMs, Promise.all(nodes.map(warm)));
    log.info({ nodes }, 'connected');
  }

  return {
    async ready() {
      if (connected) return;
      connecting ??= connect().finally(() => {
        connecting = null;
      });
      await connecting;
    },
    nodes: () => nodes,
    look: (node) => control(node).look(),
    kill: (node, sighting): Promise<KillReply> => control(node).kill(sighting),
    killSessions: (node, sessions) => control(node).killSessions(sessions),
    aggregate: (request, events) => startAggregate(data, listeners, request, events),
    async collectionInfo(ns) {
      try {
        return await describeCollection(data, ns);
      } catch (error) {
        throw toLeashError(error);
      }
    },
    async close() {
      closed = true;
      await Promise.all([data.close(), ...[...controls.values()].map((each) => each.close())]).catch(() => undefined);
    },
  };
}
