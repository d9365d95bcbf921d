/** The clients to the database: one for data, and per node a small direct one for control that never waits behind data. */

import { MongoClient, type MongoClientOptions, type TopologyDescription } from 'mongodb';
import type { ConnectionString } from 'mongodb-connection-string-url';

export interface ClientSettings {
  connectionString: ConnectionString;
  instance: string;
  /** Connections that data may hold at once. */
  maxOperations: number;
}

/** How long the choice of a server may take: a bounded wait, also when the names of members cannot be resolved. */
export const serverSelectionTimeoutMs = 8_000;
/** A control command that takes longer counts as no answer. */
export const controlTimeoutMs = 4_000;

/**
 * The client that carries tagged operations. Both retries are off: a retried command runs twice with one tag.
 */
export function createDataClient({ connectionString, instance, maxOperations }: ClientSettings): MongoClient {
  return new MongoClient(connectionString.toString(), {
    appName: `mongo-leash/${instance}`,
    retryReads: false,
    retryWrites: false,
    monitorCommands: true,
    maxPoolSize: maxOperations + 1,
    serverSelectionTimeoutMS: serverSelectionTimeoutMs,
    connectTimeoutMS: serverSelectionTimeoutMs,
  });
}

/** A direct client to one node, for looks and kills: two connections, one of them the monitor's. */
export function createControlClient({ connectionString, instance }: ClientSettings, node: string, data: MongoClient): MongoClient {
  const url = connectionString.clone();
  const isSrv = url.protocol === 'mongodb+srv:';
  const options = directOptions(data, isSrv);
  for (const name of ['replicaSet', 'srvMaxHosts', 'srvServiceName', 'loadBalanced', 'readPreference', 'readPreferenceTags', 'maxStalenessSeconds', 'directConnection', 'appName']) {
    url.searchParams.delete(name);
  }
  url.protocol = 'mongodb:';
  url.hosts = [node];
  return new MongoClient(url.toString(), {
    ...options,
    appName: `mongo-leash-control/${instance}`,
    directConnection: true,
    retryReads: false,
    retryWrites: false,
    monitorCommands: true,
    maxPoolSize: 1,
    serverMonitoringMode: 'poll',
    serverSelectionTimeoutMS: 2_000,
    connectTimeoutMS: controlTimeoutMs,
    socketTimeoutMS: controlTimeoutMs,
    waitQueueTimeoutMS: controlTimeoutMs,
    promoteLongs: false,
  });
}

/** What a mongodb+srv:// string adds by DNS (TLS, authSource) is lost with its scheme: it is taken from the data client. */
function directOptions(data: MongoClient, isSrv: boolean): MongoClientOptions {
  if (!isSrv) return {};
  const { tls, credentials } = data.options;
  return { tls, ...(credentials?.source === undefined ? {} : { authSource: credentials.source }) };
}

const dataBearing: ReadonlySet<string> = new Set(['Standalone', 'RSPrimary', 'RSSecondary', 'Mongos', 'LoadBalancer', 'RSOther', 'PossiblePrimary']);

/** The nodes of a topology that can run operations. */
export function dataBearingNodes(topology: TopologyDescription): string[] {
  return [...topology.servers.values()].filter((server) => dataBearing.has(server.type) || server.type === 'Unknown').map((server) => server.address);
}
