/** Bounds the load on the database: so many operations at once, then a queue that is fair between principals, then `busy`. */

import { LeashError } from '../domain/errors.js';

export interface AdmissionLimits {
  /** Operations at once. */
  maxOperations: number;
  /** Operations that may wait for a place. */
  maxQueued: number;
}

export interface Admission {
  /**
   * Waits for a place; the answer gives it back (once, further calls do nothing).
   * @throws LeashError busy when the queue is full; the signal's reason when it aborts while waiting
   */
  enter(principal: string, signal: AbortSignal): Promise<() => void>;
  /** How many run and how many wait. */
  load(): { running: number; queued: number };
}

interface Waiter {
  admit(): void;
}

export function createAdmission({ maxOperations, maxQueued }: AdmissionLimits): Admission {
  let running = 0;
  // A Map keeps insertion order: the principal served last goes to the end, so that no one starves.
  const queues = new Map<string, Waiter[]>();
  const queued = () => [...queues.values()].reduce((sum, queue) => sum + queue.length, 0);

  function leave(): void {
    running -= 1;
    const next = queues.entries().next();
    if (next.done === true) return;
    const [principal, queue] = next.value;
    queues.delete(principal);
    const waiter = queue.shift();
    if (queue.length > 0) queues.set(principal, queue);
    waiter?.admit();
  }

  function place(): () => void {
    running += 1;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      leave();
    };
  }

  function wait(principal: string, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const waiter: Waiter = {
        admit() {
          signal.removeEventListener('abort', giveUp);
          resolve(place());
        },
      };
      const queue = queues.get(principal) ?? [];
      queue.push(waiter);
      queues.set(principal, queue);
      function giveUp(): void {
        queue.splice(queue.indexOf(waiter), 1);
        if (queue.length === 0) queues.delete(principal);
        reject(signal.reason as Error);
      }
      signal.addEventListener('abort', giveUp, { once: true });
    });
  }

  return {
    async enter(principal, signal) {
      signal.throwIfAborted();
      if (running < maxOperations) return place();
      const waiting = queued();
      if (waiting >= maxQueued) {
        throw new LeashError('busy', `${running} operations run and ${waiting} wait for a place: the limit is reached.`);
      }
      return await wait(principal, signal);
    },
    load: () => ({ running, queued: queued() }),
  };
}
