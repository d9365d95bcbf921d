/** How the tests run: real mongods and real processes, on machines with two cores. */
import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 2,
    fileParallelism: true,
    retry: 0,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
