/** Whose connection is whose: one that a principal has opened is not there for any other. */
import { describe, expect, it } from 'vitest';
import { type ConnectionsDeps, createConnections } from '../../src/core/connections.js';
import type { Engine } from '../../src/core/leash.js';
import type { Deployment } from '../../src/core/ports.js';
import { createRedactor } from '../../src/domain/redact.js';
import { LeashError } from '../../src/domain/errors.js';
import { systemClock } from '../../src/core/clock.js';

const callerOf = (principal: string, admin = false) => ({ principal, admin, session: 's', requestId: 1, signal: new AbortController().signal });
const anna = callerOf('anna');
const ben = callerOf('ben');

function table(configured: string[] = []) {
  let closed = 0;
  const unused = () => { throw new Error('not used here'); };
  const deployment = (): Deployment => ({ ready: async () => undefined, nodes: () => ['n:1'], look: async (node) => ({ ok: true, node, startedAt: 0, endedAt: 0, process: { id: null, me: null }, hits: [] }), survey: unused, hiddenMembers: unused, setName: () => null, kill: unused, killSessions: unused, execute: unused, collectionInfo: unused, close: async () => { closed += 1; } });
  const engine = { disconnect: async () => ({ allProven: true, operations: [], killsSentAfterMs: 0, elapsedMs: 0 }), sweep: { start: () => undefined, stop: () => undefined } } as unknown as Engine;
  let ids = 0;
  const deps: ConnectionsDeps = {
    configured: configured.map((id) => ({ id, source: 'named' as const, description: '', deployment })),
    unconfigured: deployment(),
    openFree: () => ({ description: '', deployment: deployment() }),
    engineOn: () => engine,
    newConnectionId: () => `id${(ids += 1)}`,
    clock: systemClock(),
    redact: createRedactor([]),
  };
  return { connections: createConnections(deps), closed: () => closed };
}

const codeOf = async (act: () => unknown): Promise<string> => {
  try {
    await act();
    return 'none';
  } catch (error) {
    return error instanceof LeashError ? error.code : String(error);
  }
};

describe('a connection that a principal has opened', () => {
  it('is listed, used and closed by that principal alone', async () => {
    const { connections, closed } = table(['shared']);
    const { connectionId } = await connections.connect({ connectionString: 'mongodb://h/' }, anna);
    const names = async (caller: typeof anna) => (await connections.list(caller)).map((each) => each.connectionId);
    expect(await names(anna)).toEqual(['shared', connectionId]);
    expect(await names(ben)).toEqual(['shared']);
    expect(connections.resolve(connectionId, anna).id).toBe(connectionId);
    expect(await codeOf(() => connections.resolve(connectionId, ben))).toBe('not_found');
    expect(await codeOf(() => connections.disconnect(connectionId, ben, 0))).toBe('not_found');
    expect(await codeOf(() => connections.connect({ name: connectionId }, ben))).toBe('not_found');
    expect(closed()).toBe(0);
    // For the one there are two to choose from, for the other there is one.
    expect(await codeOf(() => connections.resolve(undefined, anna))).toBe('bad_argument');
    expect(connections.resolve(undefined, ben).id).toBe('shared');
    expect(await connections.disconnect(connectionId, anna, 0)).toMatchObject({ outcome: 'removed' });
    expect(closed()).toBe(1);
    expect(await names(anna)).toEqual(['shared']);
  });

  it('is not made after the server has begun to end', async () => {
    const { connections } = table();
    connections.refuseWork();
    expect(await codeOf(() => connections.connect({ connectionString: 'mongodb://h/' }, anna))).toBe('shutting_down');
  });
});

it('a connection string that came as the name is not repeated with its password', async () => {
  const { connections } = table();
  expect(await connections.connect({ connectionString: 'mongodb://h/', name: 'mongodb://anna:secret@h/' }, anna)).toMatchObject({ name: 'mongodb://<credentials>@h/' });
});
