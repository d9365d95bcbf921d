/** Progress for a caller that asked for it: what the database reports, at most once a second. */

import { type LiveOperation, addLook, judgeLive, nodesOf } from './live.js';
import type { Clock, Deployment } from './ports.js';
import type { Caller } from './run.js';
import type { Watch } from './watch.js';

const intervalMs = 1_000;

/** Reports until the returned function is called; never after a cancel or the end. */
export function reportProgress(operation: LiveOperation, { progress, signal }: Pick<Caller, 'progress' | 'signal'>, deps: { watch: Watch; deployment: Pick<Deployment, 'nodes'>; clock: Clock }): () => void {
  if (progress === undefined) return () => undefined;
  const { watch, deployment, clock } = deps;
  let stopped = false;
  let cancelTimer: () => void = () => undefined;

  async function tell(report: NonNullable<Caller['progress']>): Promise<void> {
    if (operation.execution !== null) for (const look of await watch.look(nodesOf(operation, deployment.nodes()))) addLook(operation, look);
    if (stopped || signal.aborted || operation.record.outcome !== null) return;
    const judgement = judgeLive(operation);
    report(`${written(operation)}${judgement.server}: ${judgement.reason}`, Math.round((clock.now() - operation.startedAt) / 100) / 10);
  }

  function written({ sink }: LiveOperation): string {
    if (sink === null) return '';
    const { documents, bytes } = sink.report();
    return `${documents} documents, ${bytes} bytes written; `;
  }

  function next(report: NonNullable<Caller['progress']>): void {
    cancelTimer = clock.after(intervalMs, () => {
      void tell(report).finally(() => {
        if (!stopped) next(report);
      });
    });
  }

  next(progress);
  return () => {
    stopped = true;
    cancelTimer();
  };
}
