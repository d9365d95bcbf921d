/** Durations as people type them, and as tables show them. */

import { InvalidArgumentError } from 'commander';

const unitMs: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** `30s`, `5m`, `1.5h`, `250ms` in milliseconds. @throws InvalidArgumentError */
export function parseDuration(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim());
  if (match === null) throw new InvalidArgumentError('It must be a number with a unit, such as 30s, 5m or 1h.');
  return Number(match[1]) * (unitMs[match[2] ?? ''] ?? 0);
}

/** Milliseconds as a short text: `0.4s`, `32s`, `5m03s`, `2h10m`; with a minus when negative. */
export function showDuration(ms: number): string {
  if (ms < 0) return `-${showDuration(-ms)}`;
  const seconds = ms / 1_000;
  if (seconds < 10) return `${seconds.toFixed(1)}s`;
  if (seconds < 100) return `${Math.round(seconds)}s`;
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0');
  if (seconds < 6_000) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`;
  return `${Math.floor(seconds / 3_600)}h${two((seconds % 3_600) / 60)}m`;
}
