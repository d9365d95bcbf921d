/** What others wrote in Python: whether it can be had is told with a reason, and nothing half-made stays. */

import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { installOutsidePython } from '../../scripts/outside-python.mjs';

let cache: string;
let env: Record<string, string | undefined>;
beforeAll(async () => {
  cache = await mkdtemp(join(tmpdir(), 'mongo-leash-outside-python-'));
  env = { ...process.env, MONGO_LEASH_CACHE: cache, PIP_INDEX_URL: 'http://127.0.0.1:1/simple', PIP_EXTRA_INDEX_URL: undefined };
});
afterAll(() => rm(cache, { recursive: true, force: true }));

test('is not there without Python, and says so', async () => {
  expect(await installOutsidePython(['from-outside==1.2.3'], { env, python: 'no-such-python' })).toEqual({ unavailable: 'there is no Python 3: no no-such-python on the PATH' });
});

test('says why when it cannot be installed, and leaves nothing behind', async () => {
  const { unavailable } = await installOutsidePython(['from-outside==1.2.3'], { env });
  expect(unavailable).toMatch(/^(there is no Python 3|pip could not install from-outside==1\.2\.3): ./);
  expect(await readdir(cache)).toEqual([]);
}, 60_000);

test('is never of a version that may change', async () => {
  for (const requirements of [['from-outside'], ['from-outside>=1.2.3'], ['from-outside==1.*'], []]) {
    await expect(installOutsidePython(requirements, { env })).rejects.toThrow('exact version');
  }
});
