/** The end of the process: kills go out at once, proof follows as time allows, and the report says what is proven. */

import { addFact } from '../domain/facts.js';
import type { KillReport } from '../domain/operation.js';
import { atDeadline } from '../domain/verdict.js';
import { type Verdict, isFinal } from '../domain/words.js';
import { pause } from './clock.js';
import type { Conclude } from './conclude.js';
import type { Killer } from './kill.js';
import { type LiveOperation, judgeLive } from './live.js';
import type { Clock, Deployment, Log } from './ports.js';
import type { Registry } from './registry.js';

export interface ShutdownReport {
  /** Whether every operation of this process is proven not to run any more. */
  allProven: boolean;
  operations: { operationId: string; database: string; collection: string | null; verdict: Verdict; reason: string; kill: KillReport | null }[];
  /** From the call until the first kills had been handed to the wire, and until the end. */
  killsSentAfterMs: number;
  elapsedMs: number;
}

export interface Shutdown {
  isClosing(): boolean;
  /** Refuses new work, kills, verifies for up to that many milliseconds. Safe to call again: there is one shutdown. */
  shutdown(budgetMs: number): Promise<ShutdownReport>;
  /** The same for the end of a connection: when not all is proven to have ended, it goes on, and may be ended again. */
  disconnect(budgetMs: number): Promise<ShutdownReport>;
}

export function createShutdown(deps: { deployment: Deployment; registry: Registry; killer: Killer; conclude: Conclude; clock: Clock; log: Log }): Shutdown {
  const { deployment, registry, killer, conclude, clock } = deps;
  let closing: Promise<ShutdownReport> | null = null;

  let disconnecting: Promise<ShutdownReport> | null = null;

  async function end(budgetMs: number, cause: 'shutdown' | 'disconnect'): Promise<ShutdownReport> {
    const startedAt = clock.now();
    const operations = registry.all().filter((operation) => !operation.foreign && operation.record.outcome === null);
    const sent = killSessionsPerNode(operations);
    const killsSentAfterMs = Math.round(clock.now() - startedAt);
    const tasks = operations.map((operation) => killer.kill(operation, cause).done);
    await pause(clock, budgetMs, Promise.all([...tasks, sent]));
    const reports = operations.map((operation) => {
      const judgement = conclude(operation);
      const { operationId, database, collection, kill } = operation.record;
      const verdict = atDeadline(judgement, operation.facts);
      // Nothing is pending any more in a last report.
      return { operationId, database, collection, verdict, reason: judgement.reason, kill: kill === null ? null : { ...kill, verdict } };
    });
    return {
      allProven: reports.every(({ verdict }) => isFinal(verdict)),
      operations: reports,
      killsSentAfterMs,
      elapsedMs: Math.round(clock.now() - startedAt),
    };
  }

  /** One command a node, without a look first: whoever ends this process may leave it only some hundred milliseconds. */
  async function killSessionsPerNode(operations: readonly LiveOperation[]): Promise<void> {
    const byNode = new Map<string, LiveOperation[]>();
    for (const operation of operations) {
      const { execution, record } = operation;
      if (execution === null || record.node === null || isFinal(judgeLive(operation).verdict)) continue;
      byNode.set(record.node, [...(byNode.get(record.node) ?? []), operation]);
    }
    await Promise.all([...byNode].map(async ([node, onNode]) => {
      const sessions = onNode.flatMap(({ execution }) => (execution === null ? [] : [execution.session]));
      const at = clock.iso();
      for (const operation of onNode) {
        operation.execution?.latch();
        operation.execution?.abandonSession();
        // No look came first, so this kill counts for the reply of the call itself, never for an absence.
        addFact(operation.facts, { kind: 'kill_sent', t: clock.now(), node, process: { id: null, me: null } });
      }
      const reply = await deployment.killSessions(node, sessions);
      for (const operation of onNode) {
        operation.killsSent.push({ at, node, method: 'killSessions', target: 'its session', ...(reply.error === undefined ? {} : { error: reply.error }) });
      }
    }));
  }

  return {
    isClosing: () => closing !== null || disconnecting !== null,
    shutdown: (budgetMs) => (closing ??= end(budgetMs, 'shutdown')),
    disconnect(budgetMs) {
      disconnecting ??= end(budgetMs, 'disconnect').then((report) => {
        if (!report.allProven) disconnecting = null;
        return report;
      });
      return disconnecting;
    },
  };
}
