/** A tunnel to a mongod that changes what it answers on the way: always to something of the same length. */

import { type AddressInfo, type Socket, connect, createServer } from 'node:net';

export interface RewritingTunnel {
  /** `host:port` of the tunnel's own end. */
  host: string;
  close(): Promise<void>;
}

/** @param rewrite gets each whole message of the mongod, a character a byte */
export async function startRewritingTunnel(member: string, rewrite: (message: string) => string): Promise<RewritingTunnel> {
  const [address = '', port] = member.split(':');
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
      // Whole messages only, so that nothing that is looked for is cut in two: each begins with its length.
      while (held.length >= 4 && held.length >= held.readInt32LE(0)) {
        const length = held.readInt32LE(0);
        client.write(Buffer.from(rewrite(held.subarray(0, length).toString('latin1')), 'latin1'));
        held = held.subarray(length);
      }
    });
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => { server.close(resolve); });
    },
  };
}
