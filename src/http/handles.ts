/**
 * Follows the handles of tasks to their clients. One that did not arrive is of no use to anyone: nobody could stop what goes on
 * under it. A connection that breaks around that moment does not tell whether the client had read the handle; a request does.
 */

import type { Clock, Log } from '../core/ports.js';
import { messageOf } from '../domain/errors.js';
import type { Exchange } from './exchange.js';

export interface Handle {
  operationId: string;
  /** Whether its client was told to ask for it from time to time. */
  isTask: boolean;
  exchange: Pick<Exchange, 'over' | 'chunksWritten' | 'looksFirst'>;
  /** Ends what goes on under it. */
  kill(): Promise<unknown>;
}

export interface Handles {
  /** Called before the handle is written. */
  follow(handle: Handle): void;
  /** What a client sends: whoever names a handle has it. */
  heard(body: unknown): void;
}

export interface HandlesDeps {
  clock: Pick<Clock, 'after'>;
  /** How long a client that has a task's handle may take to ask for it, in milliseconds. */
  graceMs: number;
  log: Log;
  redact(text: string): string;
}

export function createHandles({ clock, graceMs, log, redact }: HandlesDeps): Handles {
  /** Those whose delivery is not known yet. */
  const open = new Set<string>();

  async function end({ operationId, kill }: Handle): Promise<void> {
    if (!open.delete(operationId)) return;
    try {
      await kill();
    } catch (error) {
      log.warn({ operationId, error: redact(messageOf(error)) }, 'an operation whose handle did not arrive could not be killed');
    }
  }

  return {
    follow(handle) {
      const { operationId, isTask, exchange } = handle;
      const before = exchange.chunksWritten();
      exchange.looksFirst = true;
      open.add(operationId);
      void exchange.over.then((delivery) => {
        const wasWritten = exchange.chunksWritten() > before;
        if (delivery !== 'sent' && !wasWritten) return end(handle);
        // Without a task nothing says when its client will come back: it counts as delivered.
        if (delivery === 'sent' || !isTask) open.delete(operationId);
        else clock.after(graceMs, () => void end(handle), { background: true });
      });
    },
    heard(body) {
      if (open.size === 0) return;
      const text = JSON.stringify(body) ?? '';
      for (const operationId of open) if (text.includes(operationId)) open.delete(operationId);
    },
  };
}
