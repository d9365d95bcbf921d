/** The named connections of the configuration: JSON in the variable or in a file; what is wrong stops the start, and no secret is repeated. */
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readConnections } from '../../src/config/connections.js';
import { programPath } from '../support/server.js';

const folder = mkdtempSync(join(tmpdir(), 'mongo-leash-connections-'));
afterAll(() => { rmSync(folder, { recursive: true, force: true }); });

describe('named connections', () => {
  it('are read from the variable, or from the file that it names', () => {
    const json = '{"a": "mongodb://one/", "b.c-d": "mongodb://two/"}';
    const file = join(folder, 'connections.json');
    writeFileSync(file, json, { mode: 0o600 });
    for (const given of [json, file]) expect(readConnections(given)).toEqual({ byName: new Map([['a', 'mongodb://one/'], ['b.c-d', 'mongodb://two/']]), warnings: [] });
    expect(readConnections(undefined).byName.size).toBe(0);
    chmodSync(file, 0o644);
    expect(readConnections(file).warnings).toEqual([expect.stringContaining('chmod')]);
  });

  it.each([
    ['mongodb://user:hidden-secret@host/', /takes JSON/],
    ['{"a": "mongodb://user:hidden-secret@host/"', /must hold JSON/],
    ['{"preconfigured": "mongodb://user:hidden-secret@host/"}', /preconfigured is that of/],
    ['{"a b": "mongodb://user:hidden-secret@host/"}', /no name of a connection/],
    ['{"a": {"uri": "mongodb://user:hidden-secret@host/"}}', /what stands for a is no connection string/],
    [join(folder, 'missing.json'), /cannot be read \(ENOENT\)/],
  ])('that are wrong are refused: %s', (given, message) => {
    const read = () => readConnections(given);
    expect(read).toThrow(message);
    expect(read).not.toThrow(/hidden-secret/);
  });

  it.each([
    ['{"staging": "mongodb://user:hidden-secret@one@two/"}', /MONGO_LEASH_CONNECTIONS, staging: .*percent-encoded/],
    ['{"staging": "mongodb://user:hidden-secret@one/?nonsense=1"}', /MONGO_LEASH_CONNECTIONS, staging: .*nonsense/],
    ['[]', /MONGO_LEASH_CONNECTIONS/],
  ])('stop the start: %s', (given, message) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, [programPath], { encoding: 'utf8', input: '', env: { PATH: process.env['PATH'], HOME: folder, MONGO_LEASH_CONNECTIONS: given } });
    expect(stderr).toMatch(message);
    expect(stdout + stderr).not.toContain('hidden-secret');
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
  });
});
