/** Tries what a kill takes on one node: harmless operations of its own hold every data connection, are seen beside them, and are killed. */

import { type Verdict, isFinal } from '../domain/words.js';
import { pause } from './clock.js';
import type { Leash } from './leash.js';
import type { Clock, Deployment } from './ports.js';
import type { Caller, RunRequest } from './run.js';

export interface Trial {
  /** How long one look took while every data connection was taken; null when none could be made. */
  lookMs: number | null;
  /** The worst of all kills; null when the operations could not be run. */
  verdict: Verdict | null;
  /** From the request to the verdict, of the slowest kill. */
  killMs: number | null;
  reason: string;
}

export interface TrialDeps {
  leash: Leash;
  /** The same node alone, on which the leash works. */
  deployment: Deployment;
  clock: Clock;
  /** As many as the data client has. */
  connections: number;
  /** Called once while the operations hold every data connection. */
  whileFull(): Promise<void>;
}

/** Bounds on the server, for a trial that is cut off: nothing of it runs longer. */
const maxTimeMS = 5_000;
const startMs = 4_000;
const lookPauseMs = 20;
const verifyMs = 10_000;

/** A thousand times a thousand times a thousand numbers out of nothing: needs no data and no memory, and can be interrupted anywhere. */
const countForLong = [
  { $currentOp: { allUsers: false } },
  { $limit: 1 },
  ...['i', 'j', 'k'].flatMap((name) => [{ $project: { [name]: { $range: [0, 1_000] } } }, { $unwind: `$${name}` }]),
  { $count: 'n' },
];

/** Never leaves an operation behind that it could kill. @throws LeashError when the node cannot be reached */
export async function tryKill({ leash, deployment, clock, connections, whileFull }: TrialDeps): Promise<Trial> {
  await deployment.ready();
  const [node = ''] = deployment.nodes();
  const answers = await Promise.all(Array.from({ length: connections }, (_, i) => leash.run(request(i), caller(i))));
  const early = answers.find(({ record }) => record.outcome !== null);
  const lookMs = early === undefined ? await lookUntilAllSeen(answers.map(({ record }) => record.operationId)) : null;
  if (lookMs !== null) await whileFull();
  const kills = await Promise.all(answers.map(async ({ record }, i) => await leash.kill({ operationId: record.operationId }, caller(i), verifyMs)));
  if (early !== undefined) return { lookMs, verdict: null, killMs: null, reason: early.record.error?.message ?? early.record.reason };
  const worst = kills.find(({ verdict }) => verdict === null || !isFinal(verdict)) ?? kills.find(({ verdict }) => verdict !== 'stopped') ?? kills[0];
  return {
    lookMs,
    verdict: worst?.verdict ?? null,
    killMs: Math.max(...kills.map(({ record }) => record.kill?.elapsedMs ?? record.elapsedMs)),
    reason: worst?.record.reason ?? '',
  };

  async function lookUntilAllSeen(ids: readonly string[]): Promise<number | null> {
    const until = clock.now() + startMs;
    while (clock.now() < until) {
      const look = await deployment.look(node);
      const seen = look.ok ? new Set(look.hits.map(({ tag }) => tag.operationId)) : new Set();
      if (ids.every((id) => seen.has(id))) return Math.round((look.endedAt - look.startedAt) * 10) / 10;
      await pause(clock, lookPauseMs);
    }
    return null;
  }
}

function caller(requestId: number): Caller {
  return { principal: 'mongo-leash doctor', session: '000000', requestId, signal: new AbortController().signal };
}

function request(i: number): RunRequest {
  const on = { db: 'admin', coll: null };
  return {
    tool: 'doctor',
    on,
    namespaces: [],
    writes: null,
    execute: { command: { kind: 'aggregate', on, pipeline: countForLong, writes: false }, maxTimeMS, limit: 1, maxResultBytes: 1_000 },
    ownComment: 'mongo-leash doctor',
    waitMs: 0,
    asTask: 'never',
    answerAs: { canonical: false, responseBytes: 1_000 },
    digest: `doctor ${i}`,
    startAnother: true,
    notes: [],
  };
}
