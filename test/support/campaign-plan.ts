/** What a campaign plays: lives made of chance, each a run, what is done to it, and what its wires do. Pure: a seed gives one plan. */

import { type Random, randomFrom } from './random.js';

export const lifeKinds = ['quick', 'scan', 'sleep', 'busy', 'lookup', 'batches', 'merge', 'out', 'limited', 'overdue', 'stubborn'] as const;
export type LifeKind = (typeof lifeKinds)[number];

export type Act =
  /** The caller's cancel. */
  | { at: number; do: 'cancel' }
  /** `count` kills at once, each waiting that long. */
  | { at: number; do: 'kill'; count: number; waitMs: number }
  | { at: number; do: 'status' }
  | { at: number; do: 'operations' }
  /** Another client of the database kills it, by what it sees. */
  | { at: number; do: 'stranger_kill' }
  /** Another process of ours kills it, by its tag. */
  | { at: number; do: 'foreign_kill' };

/** What the connection that carries it does. Times are from the moment that its first command passes. */
export type WireFault =
  | { kind: 'none' }
  | { kind: 'slow'; upMs: number; downMs: number }
  | { kind: 'hold_request'; command: 'aggregate' | 'getMore'; ms: number }
  | { kind: 'hold_reply'; ms: number }
  /** `client`: the server is not told. */
  | { kind: 'cut'; how: 'rst' | 'fin'; side: 'client' | 'both'; afterMs: number }
  | { kind: 'silence'; afterMs: number };

/** What the control connections do. Times are from the start of the wave. */
export type ControlFault = { at: number; kind: 'slow'; ms: number; forMs: number } | { at: number; kind: 'hold'; forMs: number } | { at: number; kind: 'cut' };

export interface Life {
  index: number;
  kind: LifeKind;
  /** When it starts, from the start of the wave. */
  startAt: number;
  /** How long its work takes by itself, where that can be chosen. */
  workMs: number;
  maxTimeMS: number;
  waitMs: number;
  fault: WireFault;
  /** Times are from its start: 0 is before anything is sent. */
  acts: Act[];
}

export interface Wave {
  seed: number;
  maxOperations: number;
  control: ControlFault[];
  lives: Life[];
}

export const deadlineGraceMs = 500;
const startsWithinMs = 1_500;

export function planWave(seed: number, lives: number): Wave {
  const random = randomFrom(seed);
  return {
    seed,
    maxOperations: random.pick([3, 10, 10]),
    // Half of the waves have control connections that work: there every kill has to be proven.
    control: random.chance(0.5) ? [] : Array.from({ length: random.int(1, 3) }, () => controlFault(random)),
    lives: Array.from({ length: lives }, (_, index) => life(random, index)),
  };
}

function life(random: Random, index: number): Life {
  const kind = random.pick(lifeKinds);
  const workMs = random.weighted([[2, random.int(20, 120)], [2, random.int(120, 600)], [3, random.int(2_000, 4_000)]]);
  return {
    index,
    kind,
    startAt: random.int(0, startsWithinMs),
    workMs,
    maxTimeMS: kind === 'limited' || kind === 'overdue' ? random.int(20, 500) : random.int(2_500, 4_000),
    waitMs: random.pick([0, 50, 6_000]),
    fault: wireFault(random),
    acts: acts(random, workMs),
  };
}

function acts(random: Random, workMs: number): Act[] {
  const list: Act[] = [];
  const moment = () => random.weighted([[1, 0], [2, random.int(0, 60)], [3, random.int(0, 800)], [4, Math.max(0, workMs + random.int(-30, 40))]]);
  const rounds = random.weighted([[2, 0], [5, 1], [3, 2], [1, 3]]);
  for (let i = 0; i < rounds; i += 1) {
    const at = moment();
    list.push(random.weighted<Act>([
      [4, { at, do: 'cancel' }],
      [6, { at, do: 'kill', count: random.pick([1, 1, 2, 3]), waitMs: random.pick([0, 100, 5_000, 5_000]) }],
      [1, { at, do: 'status' }],
      [1, { at, do: 'operations' }],
      [2, { at, do: 'stranger_kill' }],
      [2, { at, do: 'foreign_kill' }],
    ]));
  }
  return list.sort((a, b) => a.at - b.at);
}

function wireFault(random: Random): WireFault {
  return random.weighted<WireFault>([
    [8, { kind: 'none' }],
    [3, { kind: 'slow', upMs: random.int(0, 100), downMs: random.int(0, 200) }],
    [2, { kind: 'hold_request', command: random.pick(['aggregate', 'aggregate', 'getMore']), ms: random.int(50, 900) }],
    [2, { kind: 'hold_reply', ms: random.int(50, 900) }],
    [3, { kind: 'cut', how: random.pick(['rst', 'fin']), side: random.pick(['client', 'both']), afterMs: random.int(0, 600) }],
    [1, { kind: 'silence', afterMs: random.int(0, 600) }],
  ]);
}

function controlFault(random: Random): ControlFault {
  const at = random.int(0, 2_500);
  return random.weighted<ControlFault>([
    [2, { at, kind: 'slow', ms: random.int(5, 150), forMs: random.int(200, 1_500) }],
    [1, { at, kind: 'hold', forMs: random.int(50, 1_200) }],
    [2, { at, kind: 'cut' }],
  ]);
}
