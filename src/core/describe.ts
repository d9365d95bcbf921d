/** What the deployments are that a caller can reach, and what this server's user may do there: without users, hosts of strings, or anything secret. */

import { messageOf } from '../domain/errors.js';
import type { ConnectionTable } from './connections.js';
import type { Deployment } from './ports.js';
import type { Caller } from './request.js';

export interface DescribedNode {
  node: string;
  role?: string;
  version?: string;
  /** What the user of the connection may do there. */
  user?: { seesOthersOperations: boolean; killsOthersOperations: boolean; canWrite: boolean };
  /** Why the node could not be asked. */
  problem?: string;
}

export interface DescribedConnection {
  connectionId: string;
  /** The replica set's name. */
  set?: string;
  nodes?: DescribedNode[];
  /** Members of the replica set that only its configuration names, as far as this user may know of them. */
  hiddenMembers?: string[];
  /** Why it could not be reached. */
  problem?: string;
}

/** Asks each connection of the caller, and opens it where that is not done yet. Never rejects. */
export async function describeConnections(connections: Pick<ConnectionTable, 'visible' | 'engine'>, caller: Caller): Promise<DescribedConnection[]> {
  return await Promise.all(connections.visible(caller).map(async (connection) => {
    const { id: connectionId } = connection;
    try {
      connections.engine(connection);
      const deployment = connection.opened?.deployment;
      if (deployment === undefined) return { connectionId, problem: 'it has just been closed' };
      await deployment.ready();
      const set = deployment.setName();
      const hidden = deployment.hiddenMembers().nodes;
      const nodes = await Promise.all(deployment.nodes().map((node) => describeNode(deployment, node)));
      return { connectionId, ...(set === null ? {} : { set }), nodes, ...(hidden.length === 0 ? {} : { hiddenMembers: hidden }) };
    } catch (error) {
      return { connectionId, problem: messageOf(error) };
    }
  }));
}

async function describeNode(deployment: Deployment, node: string): Promise<DescribedNode> {
  if (deployment.examine === undefined) return { node };
  try {
    const { role, version, seeAll, killOthers, canWrite } = await deployment.examine(node, 'data');
    return { node, role, version, user: { seesOthersOperations: seeAll, killsOthersOperations: killOthers, canWrite } };
  } catch (error) {
    return { node, problem: messageOf(error) };
  }
}
