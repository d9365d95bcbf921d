/**
 * A tunnel to one member of a replica set whose name in the set cannot be resolved from here, as with a port-forward
 * into a cluster: only the name in the server's answers is changed on the way, to one of the same length.
 */

import { type RewritingTunnel, startRewritingTunnel } from './rewriting-tunnel.js';

export interface RenamingTunnel extends RewritingTunnel {
  /** The member's name as its answers have it: a name that never resolves (RFC 6761). */
  memberName: string;
}

/** @param member `127.0.0.1:port` of a mongod, which is its name in the set */
export async function startRenamingTunnel(member: string): Promise<RenamingTunnel> {
  const [address = '', port] = member.split(':');
  const memberName = `${'m'.repeat(address.length - '.invalid'.length)}.invalid:${port}`;
  const tunnel = await startRewritingTunnel(member, (message) => message.replaceAll(member, memberName));
  return { ...tunnel, memberName };
}
