/** Keeps one principal from taking the whole server: so many requests in a minute, and cancels and kills always pass. */

import { RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { rejection } from './rejection.js';

export interface RateLimit {
  /**
   * Counts requests that come together.
   * @param key the principal, or the remote address where nobody is authenticated
   * @param exempt counted, and never refused: what stops an operation
   * @param requests how many: a batch is no way around the limit
   * @returns the 429 to answer with, or undefined
   */
  count(key: string, exempt?: boolean, requests?: number): Promise<Response | undefined>;
}

const windowSeconds = 60;

export function createRateLimit(maxRequestsPerMinute: number): RateLimit {
  const limiter = new RateLimiterMemory({ points: maxRequestsPerMinute, duration: windowSeconds });
  return {
    async count(key, exempt = false, requests = 1) {
      if (exempt) {
        await limiter.penalty(key, requests);
        return undefined;
      }
      try {
        await limiter.consume(key, requests);
        return undefined;
      } catch (refused) {
        if (!(refused instanceof RateLimiterRes)) throw refused;
        const seconds = Math.max(1, Math.ceil(refused.msBeforeNext / 1_000));
        return rejection(429, `More than ${maxRequestsPerMinute} requests in a minute. Try again in ${seconds} s; cancels and kills are taken all the same.`, { 'Retry-After': String(seconds) });
      }
    },
  };
}
