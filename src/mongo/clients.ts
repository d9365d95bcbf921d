/** The clients to the database: one for data, and per node a small direct one for control that never waits behind data. */

import { MongoClient, type TopologyDescription } from 'mongodb';
import type { ConnectionString } from 'mongodb-connection-string-url';
import type { ReadPreference } from '../core/ports.js';

export interface ClientSettings {
  connectionString: ConnectionString;
  /** Other credentials for looks and kills, on the same deployment. */
  controlConnectionString?: ConnectionString | undefined;
  instance: string;
  /** Connections that data may hold at once. */
  maxOperations: number;
  /** Which node is enough to begin with; the connection string's own word, or the primary, when it is left out. */
  readPreference?: ReadPreference | undefined;
}

/** Begin the application names of data and of control connections; the instance follows. */
export const dataAppName = 'mongo-leash/';
export const controlAppName = 'mongo-leash-control/';

/** How long the choice of a server may take: a bounded wait, also when the names of members cannot be resolved. */
export const serverSelectionTimeoutMs = 8_000;
/** A control command that takes longer counts as no answer. */
export const controlTimeoutMs = 4_000;

/**
 * The client that carries tagged operations. Both retries are off: a retried command runs twice with one tag.
 * @throws the driver's error when it refuses an option of the connection string
 */
export function createDataClient({ connectionString, instance, maxOperations, readPreference }: ClientSettings): MongoClient {
  return new MongoClient(connectionString.toString(), {
    ...(readPreference === undefined ? {} : { readPreference }),
    appName: `${dataAppName}${instance}`,
    retryReads: false,
    retryWrites: false,
    monitorCommands: true,
    maxPoolSize: maxOperations + 1,
    serverSelectionTimeoutMS: Math.min(ownSelectionTimeout(connectionString), serverSelectionTimeoutMs),
    connectTimeoutMS: serverSelectionTimeoutMs,
  });
}

/** What the connection string says itself, in milliseconds: less patience than ours is respected. */
function ownSelectionTimeout(connectionString: ConnectionString): number {
  return Number(connectionString.searchParams.get('serverSelectionTimeoutMS')) || serverSelectionTimeoutMs;
}

/** The connection string of one node of the deployment, for the same user. */
export function directString(connectionString: ConnectionString, node: string, data: MongoClient): ConnectionString {
  const url = connectionString.clone();
  for (const name of ['replicaSet', 'srvMaxHosts', 'srvServiceName', 'loadBalanced', 'readPreference', 'readPreferenceTags', 'maxStalenessSeconds', 'appName']) {
    url.searchParams.delete(name);
  }
  if (connectionString.protocol === 'mongodb+srv:') keepWhatDnsSaid(url, data);
  url.protocol = 'mongodb:';
  url.hosts = [node];
  url.searchParams.set('directConnection', 'true');
  return url;
}

/** What a mongodb+srv:// string adds by DNS (TLS, authSource) is lost with its scheme: it is taken from the data client. */
function keepWhatDnsSaid(url: ConnectionString, data: MongoClient): void {
  const { tls, credentials } = data.options;
  const says = (...names: string[]) => names.some((name) => url.searchParams.has(name));
  if (tls && !says('tls', 'ssl')) url.searchParams.set('tls', 'true');
  if (credentials?.source !== undefined && !says('authSource')) url.searchParams.set('authSource', credentials.source);
}

/** A direct client to one node, for looks and kills: two connections, one of them the monitor's. @throws as {@link createDataClient} */
export function createControlClient(connectionString: ConnectionString, instance: string, node: string, data: MongoClient): MongoClient {
  return new MongoClient(directString(connectionString, node, data).toString(), {
    appName: `${controlAppName}${instance}`,
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

const dataBearing: ReadonlySet<string> = new Set(['Standalone', 'RSPrimary', 'RSSecondary', 'Mongos', 'LoadBalancer', 'RSOther', 'PossiblePrimary']);

/** The nodes of a topology that can run operations. */
export function dataBearingNodes(topology: TopologyDescription): string[] {
  return [...topology.servers.values()].filter((server) => dataBearing.has(server.type) || server.type === 'Unknown').map((server) => server.address);
}

/** The replica set's name as a member says it, also over a direct connection to one of them. */
export function setNameOf(topology: TopologyDescription): string | null {
  return topology.setName ?? [...topology.servers.values()].find((server) => server.setName !== null)?.setName ?? null;
}
