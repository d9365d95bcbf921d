/** A check that sees nothing passes as well as one that works: each rule is shown a tree that breaks it. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { checkImports } from '../../scripts/check-imports.mjs';

let srcDir: string;

beforeEach(async () => {
  srcDir = await mkdtemp(join(tmpdir(), 'check-imports-'));
});

afterEach(() => rm(srcDir, { recursive: true, force: true }));

/** Checks a source tree given as file name -> text. */
const check = async (files: Record<string, string>): Promise<string[]> => {
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(srcDir, name)), { recursive: true });
    await writeFile(join(srcDir, name), text);
  }
  return checkImports(srcDir);
};

test('this project keeps the rules', async () => {
  expect(await checkImports(join(import.meta.dirname, '../../src'))).toEqual([]);
});

test('a tree that keeps the rules has no violation', async () => {
  const files = {
    'domain/a.ts': "import { Long } from 'bson';\nexport const a = Long;\n",
    'core/b.ts': "import { createHash } from 'node:crypto';\nimport { a } from '../domain/a.js';\n",
    'mongo/c.ts': "import { MongoClient } from 'mongodb';\nimport { b } from '../core/b.js';\n",
    'mcp/d.ts': "import { b } from '../core/b.js';\n",
    'http/e.ts': "import { d } from '../mcp/d.js';\n",
    'config/f.ts': "import { z } from 'zod';\n",
    'cli/g.ts': "import { f } from '../config/f.js';\nimport { wire } from '../wire.js';\n",
    'wire.ts': "import { c } from './mongo/c.js';\nimport { d } from './mcp/d.js';\n",
    'main.ts': "import { g } from './cli/g.js';\nimport { wire } from './wire.js';\n",
  };
  expect(await check(files)).toEqual([]);
});

describe('an import against the direction is named with its file and line', () => {
  test.each([
    ['domain/a.ts', "import { b } from '../core/b.js';", 'domain may not import core'],
    ['domain/a.ts', "import type { B } from '../core/b.js';", 'domain may not import core'],
    ['domain/a.ts', "import { hostname } from 'node:os';", 'domain may not import node:os'],
    ['core/a.ts', "export { b } from '../mongo/b.js';", 'core may not import mongo'],
    ['core/a.ts', "import { MongoClient } from 'mongodb';", 'core may not import mongodb'],
    ['core/a.ts', "import { readFile } from 'node:fs/promises';", 'core may not import node:fs/promises'],
    ['store/a.ts', "const b = await import('../mongo/b.js');", 'store may not import mongo'],
    ['mcp/a.ts', "import { b } from '../cli/b.js';", 'mcp may not import cli'],
    ['mcp/a.ts', "import { b } from '../config/b.js';", 'mcp may not import config'],
    ['mongo/a.ts', "export type B = import('../wire.js').B;", 'mongo may not import wire.ts'],
    ['config/a.ts', "import { b } from '../domain/b.js';", 'config may not import domain'],
    ['config/a.ts', "import { b } from '@scope/package/part';", 'config may not import @scope/package'],
    ['main.ts', "import { b } from './mongo/b.js';", 'main.ts may not import mongo'],
    ['cli/a.ts', "import b from '../../package.json';", 'leaves src'],
    ['extra/a.ts', '', 'no rule says what extra may import'],
  ])('%s: %s', async (file, line, problem) => {
    expect(await check({ [file]: `\n${line}\n` })).toEqual([
      expect.stringContaining(line === '' ? `src/${file}:1: ${problem}` : `src/${file}:2: ${problem}`),
    ]);
  });
});

test('a circle of imports is a violation, and one that only types close is none', async () => {
  const files = {
    'domain/a.ts': "import { b } from './b.js';\n",
    'domain/b.ts': "import { c } from './c.js';\n",
  };
  expect(await check({ ...files, 'domain/c.ts': "import type { A } from './a.js';\n" })).toEqual([]);
  expect(await check({ ...files, 'domain/c.ts': "import { a } from './a.js';\n" })).toEqual([
    'src/domain/a.ts:1: circular import: domain/a.ts -> domain/b.ts -> domain/c.ts -> domain/a.ts',
  ]);
});

test('a file of 300 lines passes, and one of 301 does not', async () => {
  expect(await check({ 'domain/a.ts': '\n'.repeat(300) })).toEqual([]);
  expect(await check({ 'domain/a.ts': '\n'.repeat(301) })).toEqual(['src/domain/a.ts:301: 301 lines, and 300 are allowed']);
});
