/** A TCP proxy between clients and a mongod: bad networks on demand, connection by connection. */

import { type AddressInfo, type Socket, connect, createServer } from 'node:net';
import { type Lane, type LaneInput, createLane } from './tcp-lane.js';

/** Who opened a connection, by the `appName` in its first bytes. */
export type WireKind = 'data' | 'control' | 'other';

/** `rst` and `fin` as TCP knows them; `silence` loses all bytes and keeps both sides open. */
export type Cut = 'rst' | 'fin' | 'silence';

/** One connection through the proxy. */
export interface Wire {
  readonly kind: WireKind;
  readonly toServer: Lane;
  readonly toClient: Lane;
  readonly open: boolean;
  /** Whether it was cut, in whatever way. */
  readonly wasCut: boolean;
  /** Whether the client sent this text over it, among its last bytes. */
  carried(text: string): boolean;
  /** Does not tell the one side when the other closes, as some balancers and tunnels do not. */
  keepCloseBack(): void;
  /** @param side which side is told; with `silence`, always both */
  cut(how: Cut, side?: 'client' | 'server' | 'both'): void;
}

export interface TcpProxy {
  /** `host:port` for clients. */
  readonly host: string;
  /** A connection string for clients: one node and no discovery, so that control goes through the proxy too. */
  readonly uri: string;
  wires(): readonly Wire[];
  /** Called with the client's bytes before they go on: a place to hold, delay or cut the wire that carries them. */
  onClientBytes(hook: (wire: Wire, text: string) => void): void;
  /** New connections go to another server from now on. */
  setUpstream(host: string): void;
  /** Cuts all connections and refuses new ones: a database that is down. */
  goDown(): void;
  comeUp(): void;
  close(): Promise<void>;
}

/** How much of what a client sent is remembered, for `carried`. */
const rememberedBytes = 64 * 1024;

/** @param upstream `host:port` of a mongod */
export async function startProxy(upstream: string): Promise<TcpProxy> {
  const wires: Wire[] = [];
  const sockets = new Set<Socket>();
  const hooks: ((wire: Wire, text: string) => void)[] = [];
  let target = upstream;
  let down = false;

  const server = createServer({ allowHalfOpen: true }, (client) => {
    if (down) return void client.resetAndDestroy();
    const [host = '', port = ''] = target.split(':');
    const upstreamSocket = connect({ host, port: Number(port), allowHalfOpen: true });
    for (const socket of [client, upstreamSocket]) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('close', () => sockets.delete(socket));
    }
    const { wire, onBytes } = joinSockets(client, upstreamSocket);
    wires.push(wire);
    onBytes((text) => { for (const hook of hooks) hook(wire, text); });
  });
  await new Promise<void>((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    host,
    uri: `mongodb://${host}/?directConnection=true`,
    wires: () => wires,
    onClientBytes: (hook) => void hooks.push(hook),
    setUpstream: (to) => void (target = to),
    goDown() {
      down = true;
      for (const socket of sockets) socket.resetAndDestroy();
    },
    comeUp: () => void (down = false),
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => { server.close(resolve); });
    },
  };
}

/** The fault that some servers answer with, played by the wire: once, the connection closes instead of a reply to what holds this text. */
export function closeInsteadOfReply(proxy: TcpProxy, part: string): { isDone(): boolean } {
  let done = false;
  proxy.onClientBytes((wire, text) => {
    if (!text.includes(part) || done) return;
    done = true;
    wire.toClient.hold();
    wire.cut('fin', 'client');
  });
  return { isDone: () => done };
}

function joinSockets(client: Socket, server: Socket): { wire: Wire; onBytes(hook: (text: string) => void): void } {
  const toServer = createLane(server);
  const toClient = createLane(client);
  let kind: WireKind | null = null;
  let closesKeptBack = false;
  let wasCut = false;
  let sent = '';
  let hook: (text: string) => void = () => undefined;

  const wire: Wire = {
    get kind() { return kind ?? 'other'; },
    toServer,
    toClient,
    get wasCut() { return wasCut; },
    get open() { return !client.destroyed && !server.destroyed; },
    carried: (text) => sent.includes(text),
    keepCloseBack: () => void (closesKeptBack = true),
    cut(how, side = 'both') {
      wasCut = true;
      if (how === 'silence') {
        closesKeptBack = true;
        toServer.swallow();
        toClient.swallow();
        return;
      }
      // The side that is not told stays open, and what it still says is lost.
      closesKeptBack = true;
      if (side !== 'server') end(client, how);
      else toClient.swallow();
      if (side !== 'client') end(server, how);
      else toServer.swallow();
    },
  };

  client.on('data', (chunk) => {
    const text = chunk.toString('latin1');
    kind ??= text.includes('mongo-leash-control/') ? 'control' : text.includes('mongo-leash/') ? 'data' : 'other';
    sent = (sent + text).slice(-rememberedBytes);
    hook(text);
    toServer.bytes(chunk);
  });
  server.on('data', (chunk) => { toClient.bytes(chunk); });
  passClose(client, server, toServer);
  passClose(server, client, toClient);

  function passClose(from: Socket, to: Socket, lane: LaneInput): void {
    let ended = false;
    from.on('end', () => {
      ended = true;
      if (!closesKeptBack) lane.end();
      // With the other side kept open, this one would wait for it for ever.
      else from.end();
    });
    from.on('error', () => undefined);
    from.on('close', () => {
      if (!ended && !closesKeptBack) to.resetAndDestroy();
    });
  }
  return { wire, onBytes: (use) => void (hook = use) };
}

function end(socket: Socket, how: 'rst' | 'fin'): void {
  if (how === 'rst') socket.resetAndDestroy();
  else socket.end(() => { socket.destroy(); });
}
