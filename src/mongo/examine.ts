/** Asks one node what it is and what this user may do there: by trying what harms nobody, and by the list of its privileges. */

import { type Document, type MongoClient, MongoServerError } from 'mongodb';
import type { Clock, NodeFindings } from '../core/ports.js';

interface Privilege {
  resource: { db?: string; collection?: string; cluster?: boolean; anyResource?: boolean };
  actions: string[];
}

const writeActions = ['insert', 'update', 'remove', 'createCollection', 'dropCollection'];
/** Databases whose content is the server's own: nearly every administrator may write there somewhere. */
const internalDatabases: ReadonlySet<string> = new Set(['admin', 'config', 'local']);

/** @param client connected directly to the node @throws the driver's error when the node does not answer */
export async function examineNode(client: MongoClient, clock: Pick<Clock, 'now' | 'iso'>): Promise<NodeFindings> {
  const admin = client.db('admin');
  const canLook = (allUsers: boolean) => succeeds(admin.command({ aggregate: 1, pipeline: [{ $currentOp: { allUsers, idleCursors: true } }, { $match: { appName: 'none' } }], cursor: {} }));
  // The first command opens the connection, which would be taken for the time of a round trip.
  await admin.command({ ping: 1 });
  const { hello, clockDifferenceMs } = await greet(client, clock);
  const build = await admin.command({ buildInfo: 1 });
  const status = await admin.command({ connectionStatus: 1, showPrivileges: true });
  const { authenticatedUsers, authenticatedUserPrivileges: privileges } = status['authInfo'] as { authenticatedUsers: { user: string; db: string }[]; authenticatedUserPrivileges: Privilege[] };
  const user = authenticatedUsers[0];
  const lookAt = clock.now();
  const seeOwn = await canLook(false);
  const lookMs = clock.now() - lookAt;
  const seeAll = await canLook(true);
  const authEnabled = user !== undefined || !seeAll;
  const may = (...actions: string[]) => !authEnabled || actions.every((action) => privileges.some((privilege) => allowsOnCluster(privilege, action)));
  return {
    version: String(build['version'] as string),
    role: roleOf(hello),
    setName: typeof hello['setName'] === 'string' ? hello['setName'] : null,
    user: user === undefined ? null : `${user.user}@${user.db}`,
    authEnabled,
    seeOwn,
    seeAll,
    killOthers: may('killop'),
    killSessions: may('killAnySession'),
    killCursors: may('killAnyCursor'),
    canWrite: !authEnabled || privileges.some(allowsWrites),
    seeHidden: may('replSetGetConfig'),
    connections: await connectionsOfNode(client),
    clockDifferenceMs,
    lookMs: Math.round(lookMs * 10) / 10,
  };
}

async function greet(client: MongoClient, clock: Pick<Clock, 'now' | 'iso'>): Promise<{ hello: Document; clockDifferenceMs: number | null }> {
  const askedAt = clock.now();
  const hello = await client.db('admin').command({ hello: 1 });
  const middle = (askedAt + clock.now()) / 2;
  const localTime: unknown = hello['localTime'];
  return { hello, clockDifferenceMs: localTime instanceof Date ? Math.round(localTime.getTime() - Date.parse(clock.iso(middle))) : null };
}

/** Connections under these application names: all of them, or this user's own where it may see no others. */
export async function countConnections(client: MongoClient, appNames: readonly string[]): Promise<number> {
  const ask = (allUsers: boolean) => client.db('admin').aggregate([{ $currentOp: { allUsers, idleConnections: true } }, { $match: { appName: { $in: appNames } } }, { $group: { _id: '$connectionId' } }, { $count: 'n' }]).toArray();
  const rows = await ask(true).catch((error: unknown) => {
    if (error instanceof MongoServerError) return ask(false);
    throw error;
  });
  return Number((rows[0] as { n?: unknown } | undefined)?.n ?? 0);
}

async function connectionsOfNode(client: MongoClient): Promise<NodeFindings['connections']> {
  const sections = { repl: 0, metrics: 0, locks: 0, wiredTiger: 0, tcmalloc: 0, opLatencies: 0, sharding: 0 };
  const reply = await client.db('admin').command({ serverStatus: 1, ...sections }).catch(() => null);
  const { current, available } = (reply?.['connections'] ?? {}) as { current?: unknown; available?: unknown };
  return current === undefined || available === undefined ? null : { current: Number(current), available: Number(available) };
}

function roleOf(hello: Document): string {
  if (hello['msg'] === 'isdbgrid') return 'mongos';
  if (hello['setName'] === undefined) return 'standalone';
  if (hello['arbiterOnly'] === true) return 'arbiter';
  const role = hello['isWritablePrimary'] === true ? 'primary' : hello['secondary'] === true ? 'secondary' : 'other';
  return hello['hidden'] === true ? `hidden ${role}` : role;
}

function allowsOnCluster({ resource, actions }: Privilege, action: string): boolean {
  return (resource.cluster === true || resource.anyResource === true) && actions.includes(action);
}

function allowsWrites({ resource, actions }: Privilege): boolean {
  const ofServer = internalDatabases.has(resource.db ?? '') || (resource.collection ?? '').startsWith('system.');
  return !ofServer && resource.cluster !== true && writeActions.some((action) => actions.includes(action));
}

async function succeeds(command: Promise<unknown>): Promise<boolean> {
  try {
    await command;
    return true;
  } catch (error) {
    if (error instanceof MongoServerError) return false;
    throw error;
  }
}
