/** What others wrote is installed once, whole, and without running anything of it; a registry of the test's own serves it. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { installOutside } from '../../scripts/outside.mjs';

let dir: string;
let registry: Server;
let tarballs = 0;
let env: Record<string, string | undefined>;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mongo-leash-outside-'));
  const source = join(dir, 'source', 'package');
  await mkdir(source, { recursive: true });
  await writeFile(join(source, 'package.json'), JSON.stringify({ name: 'from-outside', version: '1.2.3', scripts: { postinstall: 'touch was-run' } }));
  const file = join(dir, 'from-outside.tgz');
  await promisify(execFile)('tar', ['-czf', file, '-C', join(dir, 'source'), 'package']);
  const tarball = await readFile(file);
  registry = createServer((request, response) => {
    const base = `http://127.0.0.1:${(registry.address() as AddressInfo).port}`;
    if (request.url === '/from-outside.tgz') {
      tarballs += 1;
      response.end(tarball);
    } else if (request.url === '/from-outside' || request.url === '/can-do-without') {
      const integrity = `sha512-${createHash('sha512').update(tarball).digest('base64')}`;
      const [name, optionalDependencies] = request.url === '/from-outside' ? ['from-outside', {}] : ['can-do-without', { 'from-outside': '1.2.3' }];
      const version = { name, version: '1.2.3', hasInstallScript: true, optionalDependencies, dist: { tarball: `${base}/from-outside.tgz`, integrity } };
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ name, 'dist-tags': { latest: '1.2.3' }, versions: { '1.2.3': version } }));
    } else response.writeHead(404).end('{}');
  });
  await new Promise<void>((resolve) => registry.listen(0, '127.0.0.1', resolve));
}, 30_000);

beforeEach(async () => {
  const cache = await mkdtemp(join(dir, 'cache-'));
  tarballs = 0;
  env = { ...process.env, MONGO_LEASH_CACHE: cache, npm_config_cache: join(cache, 'npm'), npm_config_registry: `http://127.0.0.1:${(registry.address() as AddressInfo).port}/` };
});

afterAll(async () => {
  registry.closeAllConnections();
  await new Promise((resolve) => registry.close(resolve));
  await rm(dir, { recursive: true, force: true });
});

const kept = async () => (await readdir(env['MONGO_LEASH_CACHE'] ?? '')).filter((name) => name !== 'npm');

test('is there after the first call, and stays for all others, also for one that comes at the same time', async () => {
  const both = await Promise.all([installOutside(['from-outside@1.2.3'], { env }), installOutside(['from-outside@1.2.3'], { env })]);
  const third = await installOutside(['from-outside@1.2.3'], { env });
  expect(new Set([...both, third].map(({ folder }) => folder)).size).toBe(1);
  expect(await readFile(join(third.folder ?? '', 'node_modules/from-outside/package.json'), 'utf8')).toContain('1.2.3');
  expect(tarballs).toBe(1);
}, 60_000);

test('has run no script of its own', async () => {
  const { folder } = await installOutside(['from-outside@1.2.3'], { env });
  expect(await readdir(join(folder ?? '', 'node_modules/from-outside'))).toEqual(['package.json']);
}, 60_000);

test('is kept apart with and without what it can do without', async () => {
  const modules = async (withoutOptional: boolean) => {
    const { folder } = await installOutside(['can-do-without@1.2.3'], { env, withoutOptional });
    return (await readdir(join(folder ?? '', 'node_modules'))).filter((name) => !name.startsWith('.')).sort();
  };
  expect(await modules(false)).toEqual(['can-do-without', 'from-outside']);
  expect(await modules(true)).toEqual(['can-do-without']);
  expect(await modules(false)).toEqual(['can-do-without', 'from-outside']);
}, 60_000);

test('says why when it cannot be installed, and leaves nothing behind', async () => {
  const missing = await installOutside(['not-there@1.0.0'], { env });
  expect(missing.unavailable).toMatch(/not-there@1\.0\.0: code E404/);
  const offline = await installOutside(['from-outside@1.2.3'], { env: { ...env, npm_config_registry: 'http://127.0.0.1:1/' } });
  expect(offline.unavailable).toMatch(/from-outside@1\.2\.3: code ECONNREFUSED/);
  expect(await kept()).toEqual([]);
}, 60_000);

test('is never of a version that may change', async () => {
  for (const packages of [['from-outside'], ['from-outside@latest'], ['from-outside@^1.2.3'], []]) {
    await expect(installOutside(packages, { env })).rejects.toThrow('exact version');
  }
});
