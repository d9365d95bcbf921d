/** Chance that can be played again: the same seed gives the same choices. */

export interface Random {
  /** At least 0 and below 1. */
  next(): number;
  /** A whole number from `min` to `max`, both included. */
  int(min: number, max: number): number;
  chance(probability: number): boolean;
  pick<T>(of: readonly T[]): T;
  /** Picks by weight. */
  weighted<T>(of: readonly (readonly [weight: number, value: T])[]): T;
}

/** mulberry32: small, and even enough for tests. */
export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const pick = <T>(of: readonly T[]): T => of[Math.floor(next() * of.length)] as T;
  return {
    next,
    pick,
    int: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (probability) => next() < probability,
    weighted(of) {
      const total = of.reduce((sum, [weight]) => sum + weight, 0);
      let left = next() * total;
      for (const [weight, value] of of) {
        left -= weight;
        if (left < 0) return value;
      }
      return (of.at(-1) as (typeof of)[number])[1];
    },
  };
}
