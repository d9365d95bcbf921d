/** One look per node at a time serves all who ask: kills, status and progress share what the database is asked. */

import type { Deployment, Look } from './ports.js';

export interface Watch {
  /** A look at each node that begins after this call. Never rejects. */
  look(nodes: readonly string[]): Promise<Look[]>;
}

export function createWatch(deployment: Pick<Deployment, 'look'>): Watch {
  const running = new Map<string, Promise<Look>>();
  const next = new Map<string, Promise<Look>>();

  function begin(node: string): Promise<Look> {
    const look = deployment.look(node).finally(() => {
      running.delete(node);
    });
    running.set(node, look);
    return look;
  }

  function lookAt(node: string): Promise<Look> {
    // The one that runs began before this call, so it proves nothing to who asks now: all who ask meanwhile share the next.
    const waiting = next.get(node);
    if (waiting !== undefined) return waiting;
    const current = running.get(node);
    if (current === undefined) return begin(node);
    const following = current.then(() => {
      next.delete(node);
      return begin(node);
    });
    next.set(node, following);
    return following;
  }

  return { look: (nodes) => Promise.all(nodes.map(lookAt)) };
}
