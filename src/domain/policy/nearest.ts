/** Finds the name that was probably meant, so that a misspelt stage costs one more call and not a guess. */

/**
 * The candidate nearest to `name`, upper and lower case aside: one edit (insert, delete, replace, swap of
 * neighbours) for names of up to eight characters, two for longer ones; null when none is that near.
 */
export function nearestName(name: string, candidates: Iterable<string>): string | null {
  const limit = name.length <= 8 ? 1 : 2;
  let best: string | null = null;
  let bestDistance = limit + 1;
  for (const candidate of candidates) {
    if (Math.abs(candidate.length - name.length) > limit) continue;
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase());
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance];
  }
  return best;
}

/** Optimal string alignment distance; three rows of the table are enough, the oldest for swaps. */
function editDistance(a: string, b: string): number {
  let older: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1);
      let least = Math.min(replaced, last[j]! + 1, row[j - 1]! + 1);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) least = Math.min(least, older[j - 2]! + 1);
      row.push(least);
    }
    [older, last] = [last, row];
  }
  return last[b.length]!;
}
