/** Operations that another server process runs: its looks are ours, and how they ended is that process's to say. */

import type { OperationRecord } from '../domain/operation.js';
import { pause } from './clock.js';
import { type LiveOperation, addLook, judgeLive, nodesOf } from './live.js';
import type { Clock, Deployment, Liveness, Store } from './ports.js';
import type { Registry } from './registry.js';
import type { Watch } from './watch.js';

export interface Foreign {
  /** The end that a process has recorded; one that lives is given a moment to do so. null when there is none. */
  recordedEnd(of: Pick<OperationRecord, 'operationId' | 'instance'>): Promise<OperationRecord | null>;
  /** The same for one that is followed here and that the last look did not see; then it is followed no longer. */
  takeEnd(operation: LiveOperation): Promise<OperationRecord | null>;
  /** Looks until a look does not see it, the time is over, or the promise settles. */
  untilUnseen(operation: LiveOperation, waitMs: number, orUntil: Promise<unknown>): Promise<void>;
}

/** How long a process that lives may take to record an end that the database has shown, in milliseconds. */
const recordingMs = 1_500;
const askAgainMs = 50;
const lookAgainMs = 250;

export function createForeign(deps: { deployment: Pick<Deployment, 'nodes'>; store: Store; clock: Clock; registry: Registry; watch: Watch; livenessOf(instance: string): Promise<Liveness> }): Foreign {
  const { deployment, store, clock, registry, watch, livenessOf } = deps;

  async function recordedEnd({ operationId, instance }: Pick<OperationRecord, 'operationId' | 'instance'>): Promise<OperationRecord | null> {
    let until: number | null = null;
    for (;;) {
      const record = await store.get(operationId);
      if (record !== null && record.outcome !== null) return record;
      until ??= clock.now() + ((await livenessOf(instance)) === 'alive' ? recordingMs : 0);
      if (clock.now() >= until) return null;
      await pause(clock, askAgainMs);
    }
  }

  return {
    recordedEnd,
    async takeEnd(operation) {
      // The report of a kill from here says more.
      if (!operation.foreign || operation.killTask !== null || judgeLive(operation).server !== 'not_seen') return null;
      const record = await recordedEnd(operation.record);
      if (record === null) return null;
      registry.forget(operation);
      operation.concluded.resolve();
      return record;
    },
    async untilUnseen(operation, waitMs, orUntil) {
      const until = clock.now() + waitMs;
      let settled = false;
      void orUntil.then(() => { settled = true; });
      for (;;) {
        for (const look of await watch.look(nodesOf(operation, deployment.nodes()))) addLook(operation, look);
        const left = until - clock.now();
        if (judgeLive(operation).server === 'not_seen' || settled || left <= 0) return;
        await pause(clock, Math.min(lookAgainMs, left), orUntil);
      }
    },
  };
}
