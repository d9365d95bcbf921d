/** Says to whoever keeps the server running whether its process lives, and whether its database answers. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Clock, Deployment } from '../core/ports.js';
import { rejection } from './rejection.js';

export interface Health {
  process(): Response;
  /** 200 when a node answers, 503 when none does in time. */
  database(): Promise<Response>;
}

/** How long the database may take to answer, and how long its answer serves all who ask, in milliseconds. */
const answerMs = 3_000;
const keptMs = 1_000;

export function createHealth(deployment: Pick<Deployment, 'ready' | 'nodes' | 'look'>, clock: Clock): Health {
  let asked: { at: number; answer: Promise<boolean> } | null = null;

  async function answers(): Promise<boolean> {
    await deployment.ready();
    const looks = await Promise.all(deployment.nodes().map((node) => deployment.look(node)));
    return looks.some(({ ok }) => ok);
  }

  async function inTime(): Promise<boolean> {
    const timer = new AbortController();
    const late = delay(answerMs, false, { signal: timer.signal }).catch(() => false);
    const answer = await Promise.race([answers().catch(() => false), late]);
    timer.abort();
    return answer;
  }

  return {
    process: () => Response.json({ alive: true }),
    async database() {
      if (asked === null || clock.now() - asked.at > keptMs) asked = { at: clock.now(), answer: inTime() };
      return (await asked.answer) ? Response.json({ ready: true }) : rejection(503, 'The database does not answer.');
    },
  };
}
