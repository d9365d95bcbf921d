/** The small pieces of the commands: durations, exit codes, the role, text in columns, known limits. */

import { describe, expect, test } from 'vitest';
import { exitCodeFor as doctorCode } from '../../src/cli/doctor.js';
import { parseDuration, showDuration } from '../../src/cli/duration.js';
import { exitCodeFor } from '../../src/cli/kill-report.js';
import { knownLimits } from '../../src/cli/known-limits.js';
import { table } from '../../src/cli/output.js';
import { hasPassword, lacksPassword, userOf, withPassword } from '../../src/cli/password.js';
import { createRoleLine, grantRoleLine } from '../../src/cli/role.js';
import { clean, fit, width } from '../../src/cli/text.js';

describe('durations', () => {
  test('are read with a unit and shown short', () => {
    expect(['250ms', '30s', '5m', '1.5h', '2d'].map(parseDuration)).toEqual([250, 30_000, 300_000, 5_400_000, 172_800_000]);
    for (const wrong of ['5', '', '-1s', '1 s', 's', '1e3s', '5 minutes']) expect(() => parseDuration(wrong)).toThrow(/unit/);
    expect([0, 400, 9_949, 32_000, 99_400, 303_000, 7_800_000, -400].map(showDuration)).toEqual(['0.0s', '0.4s', '9.9s', '32s', '99s', '5m03s', '2h10m', '-0.4s']);
  });
});

describe('exit codes', () => {
  test('the worst of several verdicts tells', () => {
    expect(exitCodeFor(['stopped', 'ended_first', 'never_sent'])).toBe(0);
    expect(exitCodeFor(['stopped', 'not_found'])).toBe(5);
    expect(exitCodeFor(['not_found', 'gone'])).toBe(6);
    expect(exitCodeFor(['unknown', 'stopped'])).toBe(6);
    expect(exitCodeFor(['gone', 'refused', 'not_found'])).toBe(4);
    expect(exitCodeFor(['refused', 'still_running'])).toBe(3);
    expect(exitCodeFor(['pending'])).toBe(3);
  });

  test('a kill that failed comes before a silent node, and that before a missing privilege', () => {
    const node = (own: boolean, missing: 'killop'[]) => ({ node: 'a', answered: true, kills: { own }, missing }) as unknown as Parameters<typeof doctorCode>[0][number];
    const silent = { node: 'b', answered: false, reason: '' } as const;
    expect(doctorCode([node(true, [])])).toBe(0);
    expect(doctorCode([node(true, ['killop'])])).toBe(4);
    expect(doctorCode([node(true, ['killop']), silent])).toBe(6);
    expect(doctorCode([node(false, []), silent])).toBe(3);
  });
});

describe('the role', () => {
  test('stands as one line each, whatever the user is called', () => {
    expect(createRoleLine()).toBe(`db.getSiblingDB('admin').createRole({role: 'mongoLeashControl', privileges: [{resource: {cluster: true}, actions: ['inprog', 'killop', 'killAnyCursor', 'killAnySession', 'replSetGetConfig']}], roles: []})`);
    expect(grantRoleLine(`o'br\\ien@x@app`)).toBe(`db.getSiblingDB('app').grantRolesToUser('o\\'br\\\\ien@x', [{role: 'mongoLeashControl', db: 'admin'}])`);
    expect(grantRoleLine('a\n\u009bb@admin')).toContain(String.raw`'a\u000a\u009bb'`);
  });
});

describe('text', () => {
  test('is cleaned of what a terminal obeys, and counted as wide as it is', () => {
    expect(clean('a\u001b[2J\u0007\u009b\u202eb\ud800')).toBe('a?[2J???b\ufffd');
    expect(width('é世🙂e\u0301')).toBe(6);
    expect(fit('世界', 3)).toBe('世 ');
    expect(fit('abc', 5)).toBe('abc  ');
  });

  test('columns of a table stand under each other', () => {
    expect(table(['A', 'B'], [['世界', 'x'], ['a', 'y']])).toEqual(['A     B', '世界  x', 'a     y']);
  });
});

describe('passwords', () => {
  test('are missed only where a user is named and the mechanism has one', () => {
    expect(['mongodb://h/', 'mongodb://u:p@h/', 'mongodb://u:@h/', 'mongodb://u@h/?authMechanism=MONGODB-X509', 'mongodb://h/?x=a@b'].map(lacksPassword)).toEqual([false, false, false, false, false]);
    expect(['mongodb://u@h/', 'mongodb+srv://u%40x@h/'].map(lacksPassword)).toEqual([true, true]);
    expect([hasPassword('mongodb://u@h/'), hasPassword('mongodb://u:p@h/')]).toEqual([false, true]);
    expect(withPassword('mongodb://u%40x@h:1,i:2/?a=b', `p@ss:/%$&'"`)).toBe(`mongodb://u%40x:${encodeURIComponent(`p@ss:/%$&'"`)}@h:1,i:2/?a=b`);
    expect(userOf('mongodb://u%40x\u001b@h/')).toBe('u@x?');
  });
});

describe('known limits', () => {
  const of = (hosts: string[], versions: string[] = ['8.0.0'], roles: string[] = ['primary']) => knownLimits({ hosts, versions, roles }).join('\n');

  test('are told by the name of the service, the version and the role, and nowhere else', () => {
    expect(of(['localhost:27017'])).toBe('');
    expect(of(['cluster0.ab1cd.mongodb.net'])).toMatch(/Atlas: killOp is allowed only to the user who runs the operation/);
    expect(of(['x.cluster-y.eu-west-1.docdb.amazonaws.com:27017'])).toMatch(/DocumentDB/);
    expect(of(['a.mongocluster.cosmos.azure.com'])).toMatch(/Cosmos.*no killSessions/);
    expect(of(['mongodb.net.example.com'])).toBe('');
    expect(of(['h'], ['8.0.0'], ['mongos'])).toMatch(/inprog is needed even to see own operations/);
    expect(of(['h'], ['7.0.2'])).toMatch(/^7\.0\.2: before 8\.0 a single expression[^\n]*$/);
    expect(of(['h'], ['4.2.24', '4.2.24']).split('\n')).toHaveLength(3);
  });
});
