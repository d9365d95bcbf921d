/** How an expected difference is written down, and how one that was met is told for it. */

import type { Difference } from './compare.js';

export interface Expected {
  /** What the stock server does, and what ours does. */
  stock: string;
  ours: string;
  why: string;
  matches(difference: Difference): boolean;
}

export const inAnswer = (kind: Difference['kind'], path: RegExp, tools?: RegExp) => (each: Difference) => each.call !== null && each.kind === kind && path.test(each.path) && (tools?.test(each.tool) ?? true);
export const inList = (kind: Difference['kind'], path: RegExp) => (each: Difference) => each.call === null && each.kind === kind && path.test(each.path);
/** One answers and the other refuses. */
export const outcome = (who: 'stock' | 'ours', call: RegExp, tools: RegExp) => ({ kind, call: title, tool, [who]: said }: Difference) => kind === 'outcome' && tools.test(tool) && call.test(title ?? '') && String(said).startsWith('answered');
export const either = (...matchers: Expected['matches'][]) => (each: Difference) => matchers.some((matches) => matches(each));
export const onlyFor = (call: RegExp, matches: Expected['matches']) => (each: Difference) => call.test(each.call ?? '') && matches(each);
export const unwrapped = (value: unknown, key: string) => (typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined);
