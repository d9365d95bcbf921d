/** What `operations` shows of several connections: the store is read once, after all looks, and what is on record is shown whoever was asked. */
import { expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Connection, ConnectionTable } from '../../src/core/connections.js';
import { createFleet } from '../../src/core/fleet.js';
import type { Engine, OperationsList } from '../../src/core/leash.js';
import type { OperationRecord } from '../../src/domain/operation.js';

const record = (operationId: string, connectionId: string, outcome: 'succeeded' | null) => ({ operationId, connectionId, outcome, principal: 'me', createdAt: operationId }) as OperationRecord;
const caller = { principal: 'me', session: 's', requestId: 1, signal: new AbortController().signal };

it('reads the records once for all connections, after each has looked', async () => {
  const happened: string[] = [];
  const stored = [record('3', 'unused', 'succeeded'), record('2', 'b', 'succeeded'), record('1', 'a', null)];
  const engine = (id: string): Partial<Engine> => ({
    holds: () => null,
    listing: async () => {
      happened.push(`look ${id}`);
      return async (records): Promise<OperationsList> => {
        happened.push(`list ${id}`);
        return { running: [], ended: [], unseen: records.filter((each) => each.outcome === null && each.connectionId === id), silent: [], looked: [id], storeProblem: null };
      };
    },
  });
  const connections = ['a', 'b', 'unused'].map((id) => ({ id, opened: id === 'unused' ? null : { engine: engine(id) } }) as Connection);
  const fleet = createFleet({
    connections: { visible: () => connections, engine: ({ opened }: Connection) => opened?.engine } as unknown as ConnectionTable,
    store: { get: async () => null, problem: () => null, list: async (principal) => { happened.push('store'); return principal === 'me' ? stored : []; } },
    clock: systemClock(),
    admission: { load: () => ({ running: 0, queued: 0 }) },
  });
  const { ended, unseen, looked, silent } = await fleet.operations(caller);
  // One reading asks for the principal by its name, and by what stands in tags.
  expect(happened).toEqual(['look a', 'look b', 'store', 'store', 'list a', 'list b']);
  expect(ended.map(({ operationId }) => operationId)).toEqual(['3', '2']);
  expect(unseen.map(({ operationId }) => operationId)).toEqual(['1']);
  expect(looked).toEqual(['a', 'b']);
  expect(silent.map(({ node }) => node)).toEqual(['connection unused']);
});
