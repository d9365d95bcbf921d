/**
 * A tunnel to one member of a replica set whose name in the set cannot be resolved from here, as with a port-forward
 * into a cluster: only the name in the server's answers is changed on the way, to one of the same length.
 */

import { type AddressInfo, type Socket, connect, createServer } from 'node:net';

export interface RenamingTunnel {
  /** `host:port` of the tunnel's own end. */
  host: string;
  /** The member's name as its answers have it: a name that never resolves (RFC 6761). */
  memberName: string;
  close(): Promise<void>;
}

/** @param member `127.0.0.1:port` of a mongod, which is its name in the set */
export async function startRenamingTunnel(member: string): Promise<RenamingTunnel> {
  const [address = '', port] = member.split(':');
  const memberName = `${'m'.repeat(address.length - '.invalid'.length)}.invalid:${port}`;
  const sockets = new Set<Socket>();
  const server = createServer((client) => {
    const upstream = connect({ host: address, port: Number(port) });
    let held = Buffer.alloc(0);
    for (const [one, other] of [[client, upstream], [upstream, client]] as const) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => { sockets.delete(one); other.destroy(); });
    }
    client.pipe(upstream);
    upstream.on('data', (chunk) => {
      held = Buffer.concat([held, chunk]);
      // Whole messages only, so that no name is cut in two: each begins with its length.
      while (held.length >= 4 && held.length >= held.readInt32LE(0)) {
        const length = held.readInt32LE(0);
        client.write(Buffer.from(held.subarray(0, length).toString('latin1').replaceAll(member, memberName), 'latin1'));
        held = held.subarray(length);
      }
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    memberName,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => { server.close(resolve); });
    },
  };
}
