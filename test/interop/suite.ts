/** What holds with every client that others wrote: it lists, runs, cancels and leaves, and an independent connection says what became of that. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { productTools } from '../../src/mcp/tools/all.js';
import { sleeping } from '../support/checked.js';
import { type HttpTestServer, startHttpServer } from '../support/http-server.js';
import { type TestMongo, eventually, startMongo, tagged } from '../support/mongo.js';
import type { Connect, InteropClient, Target } from './clients.js';
import { type Wire, tapHttp, tapStdio } from './wire.js';

export interface Lane {
  title: string;
  transport: 'stdio' | 'http';
  /** The protocol version that our server is spoken to in. */
  version: string;
  /** The one that the client is told of, where something that translates stands between. */
  versionOfClient?: string;
  /** What this client does when a call is cancelled, as it is on the wire; null: nothing that means a cancel in that version. */
  cancelsBy: 'notifications/cancelled' | 'cut POST' | null;
  /** What this client sends when it leaves: the end of stdin, DELETE, or over HTTP nothing but the end of its connections. */
  leavesBy: 'end' | 'DELETE' | 'nothing';
  connect: Connect;
}

/** What a server of these tests is started with: JavaScript that sleeps, and sessions that are given up soon. */
const serverArgs = ['--allow-js'];
export const sessionGraceMs = 1_000;
/** The time limit that a client is given for a call: long enough for the database to be seen at work. In milliseconds. */
const clientTimeoutMs = 2_500;
/** How soon a cancelled operation is gone from the database, in milliseconds. */
export const goneWithinMs = 2_000;

export interface Ground {
  mongo: TestMongo;
  http: HttpTestServer;
  /** For a server over stdio. */
  env: Record<string, string>;
  stop(): Promise<void>;
}

/** A mongod, and a server over HTTP on it. */
export async function startGround(): Promise<Ground> {
  const mongo = await startMongo();
  await mongo.client.db('app').collection('few').insertMany([{}, {}]);
  const http = await startHttpServer({ uri: mongo.uri, args: [...serverArgs, '--session-grace-ms', String(sessionGraceMs)] });
  const stateFolder = mkdtempSync(join(tmpdir(), 'mongo-leash-state-'));
  return {
    mongo,
    http,
    env: { MONGO_LEASH_URI: mongo.uri, MONGO_LEASH_STATE_FOLDER: stateFolder },
    async stop() {
      await http.stop();
      await mongo.stop();
      rmSync(stateFolder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
    },
  };
}

/** A server that writes down what its client sends: over stdio one of its own, over HTTP the ground's. */
export async function openWire(ground: Ground, transport: Lane['transport']): Promise<{ target: Target; wire: Wire; close(): Promise<void> }> {
  if (transport === 'http') {
    const wire = await tapHttp(ground.http.url);
    return { wire, target: { url: wire.url }, close: wire.close };
  }
  const wire = tapStdio(serverArgs);
  return { wire, target: { command: wire.command, env: ground.env }, close: async () => { wire.dispose(); } };
}

export const few = { database: 'app', collection: 'few' };
let comments = 0;

export interface Long {
  /** Arguments of `run` for half a minute of work that is told apart from all others by its comment. */
  args: Record<string, unknown>;
  /** How the database shows it. */
  rows(): Promise<any[]>;
  /** Resolves with its operation id when the database shows it. */
  shown(): Promise<string>;
  /** Resolves when the database shows it no more. */
  gone(withinMs?: number): Promise<void>;
}

export function long({ mongo }: Pick<Ground, 'mongo'>, args: Record<string, unknown> = {}): Long {
  const comment = `interop-${(comments += 1)}`;
  const rows = async () => (await tagged(mongo.client)).filter((row) => commentOf(row).endsWith(` ${comment}`));
  return {
    // Not the same twice: the same would not be started again.
    args: { ...few, pipeline: sleeping(30_000 + comments), waitMs: 60_000, comment, ...args },
    rows,
    shown: async () => commentOf(await eventually('the database shows it', async () => (await rows())[0])).split('.')[3] ?? '',
    gone: async (withinMs = goneWithinMs) => { await eventually('it is gone from the database', async () => (await rows()).length === 0, withinMs); },
  };
}

function commentOf(row: any): string {
  return String(row.command?.comment ?? row.cursor?.originatingCommand?.comment);
}

/** The tests of one client over one transport. */
export function describeLane(lane: Lane, ground: () => Ground): void {
  describe(`${lane.title}, over ${lane.transport}`, () => {
    let client: InteropClient;
    let wire: Wire;
    let closeWire: () => Promise<void>;
    let before: number;

    // One connection for all, as people have it: what a call leaves behind is there for the next one.
    beforeAll(async () => {
      const opened = await openWire(ground(), lane.transport);
      ({ wire, close: closeWire } = opened);
      client = await lane.connect(opened.target);
    });
    beforeEach(() => { before = wire.sent().length; });
    /** How often the client has done this in the test. */
    const did = (what: string) => wire.sent().slice(before).filter((sent) => sent.what === what).length;
    afterEach(async () => { await eventually('nothing of it is left', async () => (await tagged(ground().mongo.client)).length === 0); });
    afterAll(async () => {
      await client.close();
      await closeWire();
    });

    it(`agrees on ${lane.version}, lists the tools, and runs a query`, async () => {
      expect(await client.version()).toBe(lane.versionOfClient ?? lane.version);
      expect(await client.tools()).toEqual(productTools.map(({ name }) => name));
      expect(await client.call('run', { ...few, pipeline: [{ $count: 'n' }] })).toMatchObject({ outcome: 'succeeded', documents: [{ n: 2 }] });
      expect(await client.call('run', { ...few, pipeline: [{ $out: 'x' }] })).toMatchObject({ error: { code: 'refused_by_policy' } });
      expect(did('notifications/cancelled') + did('cut POST')).toBe(0);
      const spoken = wire.sent().filter(({ what }) => what === 'tools/call').map(({ message }) => message.params._meta?.['io.modelcontextprotocol/protocolVersion'] ?? '2025-11-25');
      expect(spoken).toEqual([lane.version, lane.version]);
    });

    if (lane.cancelsBy === null) describeUnheard();
    else describeCancels(lane.cancelsBy);

    it(`leaves by ${lane.leavesBy === 'nothing' ? 'nothing but the end of its connections' : lane.leavesBy}, and what it had handed over ${keepsRunning(lane) ? 'goes on' : 'is gone'}`, async () => {
      const handedOver = long(ground(), { waitMs: 0 });
      expect(await client.call('run', handedOver.args)).toMatchObject({ wait: 'detached' });
      const id = await handedOver.shown();
      await client.close();
      expect([did('end'), did('DELETE')]).toEqual([lane.leavesBy === 'end' ? 1 : 0, lane.leavesBy === 'DELETE' ? 1 : 0]);
      if (!keepsRunning(lane)) return await handedOver.gone(lane.leavesBy === 'nothing' ? 2 * sessionGraceMs + goneWithinMs : goneWithinMs);
      expect(await handedOver.rows()).toHaveLength(1);
      const next = await lane.connect({ url: ground().http.url });
      expect(await next.call('kill', { id })).toMatchObject({ verdict: 'stopped' });
      await handedOver.gone();
      await next.close();
    });

    function describeCancels(cancelsBy: NonNullable<Lane['cancelsBy']>): void {
      it(`takes a call back by ${cancelsBy}: that operation is gone, and another one of the same client is left alone`, async () => {
        const [other, cancelled] = [long(ground()), long(ground())];
        const otherCall = client.call('run', other.args);
        // It is looked at in the end, and must not be alone until then.
        otherCall.catch(() => undefined);
        const abort = new AbortController();
        const call = client.call('run', cancelled.args, { signal: abort.signal });
        const rejected = expect(call).rejects.toThrow();
        const [otherId, id] = await Promise.all([other.shown(), cancelled.shown()]);
        abort.abort('the user stopped it');
        await rejected;
        await cancelled.gone();
        expect(await other.rows()).toHaveLength(1);
        expect(await client.call('status', { id, waitMs: 5_000 })).toMatchObject({ wait: 'cancelled', outcome: 'killed', verdict: 'stopped', cause: cancelsBy === 'cut POST' ? 'stream_closed' : 'client_cancelled' });
        expect([did('notifications/cancelled'), did('cut POST')]).toEqual(cancelsBy === 'cut POST' ? [0, 1] : [1, 0]);
        // Not the cancel, but this, ends the other one.
        expect(await client.call('kill', { id: otherId })).toMatchObject({ verdict: 'stopped' });
        expect(await otherCall).toMatchObject({ operationId: otherId, outcome: 'killed', cause: 'kill_tool' });
        expect(await other.rows()).toEqual([]);
      });

      it('gives up a call by its own time limit, and the operation is gone', async () => {
        const tooLong = long(ground());
        const rejected = expect(client.call('run', tooLong.args, { timeoutMs: clientTimeoutMs })).rejects.toThrow();
        const id = await tooLong.shown();
        await rejected;
        await tooLong.gone();
        expect(await client.call('status', { id, waitMs: 5_000 })).toMatchObject({ outcome: 'killed', verdict: 'stopped' });
        expect(did(cancelsBy)).toBe(1);
      });
    }

    function describeUnheard(): void {
      it('cannot take a call back: its operation works on, status says so, and kill stops it', async () => {
        const unheard = long(ground());
        const abort = new AbortController();
        const rejected = expect(client.call('run', unheard.args, { signal: abort.signal })).rejects.toThrow();
        const id = await unheard.shown();
        abort.abort('the user stopped it');
        await rejected;
        await eventually('the client has sent what it takes for a cancel', () => did('notifications/cancelled') === 1);
        expect(await client.call('status', { id })).toMatchObject({ outcome: null, server: 'running' });
        expect(await unheard.rows()).toHaveLength(1);
        expect(did('cut POST')).toBe(0);
        expect(await client.call('kill', { id })).toMatchObject({ verdict: 'stopped' });
        expect(await unheard.rows()).toEqual([]);
      });
    }
  });
}

/** 2026-07-28 over HTTP has no sessions: what was handed over belongs to whoever comes with its id. */
function keepsRunning({ transport, version }: Lane): boolean {
  return transport === 'http' && version === '2026-07-28';
}
