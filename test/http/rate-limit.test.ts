/** So many requests in a minute for each principal, and none of those that stop something is refused. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createRateLimit } from '../../src/http/rate-limit.js';

beforeEach(() => { vi.useFakeTimers(); });
afterEach(() => { vi.useRealTimers(); });

it('the first requests of a minute pass, the next is answered with 429 and the time to wait, and after that time they pass again', async () => {
  const limit = createRateLimit(3);
  for (let i = 0; i < 3; i++) expect(await limit.count('token:alice')).toBeUndefined();
  vi.advanceTimersByTime(20_500);
  const refused = await limit.count('token:alice');
  expect(refused?.status).toBe(429);
  expect(refused?.headers.get('retry-after')).toBe('40');
  expect(await refused?.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32_000, message: expect.stringMatching(/More than 3 requests in a minute. Try again in 40 s/) } });
  vi.advanceTimersByTime(39_400);
  expect((await limit.count('token:alice'))?.headers.get('retry-after')).toBe('1');
  vi.advanceTimersByTime(200);
  expect(await limit.count('token:alice')).toBeUndefined();
});

it('one principal takes nothing from another', async () => {
  const limit = createRateLimit(1);
  expect(await limit.count('token:alice')).toBeUndefined();
  expect((await limit.count('token:alice'))?.status).toBe(429);
  expect(await limit.count('token:bob')).toBeUndefined();
});

it('what stops an operation is counted and never refused', async () => {
  const limit = createRateLimit(2);
  for (let i = 0; i < 50; i++) expect(await limit.count('token:alice', true)).toBeUndefined();
  expect((await limit.count('token:alice'))?.status).toBe(429);
  expect(await limit.count('token:alice', true)).toBeUndefined();
});
