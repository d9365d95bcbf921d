/** The command line itself: what it takes, what it refuses, what it says, and what it does not load. */

import { afterAll, describe, expect, test } from 'vitest';
import { createCli } from '../support/cli.js';
import { programPath } from '../support/server.js';

const cli = createCli();
afterAll(() => { cli.end(); });

const commands = ['ps', 'kill', 'top', 'history', 'doctor'];

describe('the command line', () => {
  test('unknown words and options end it with 2 and are named', async () => {
    const cases: [string[], RegExp][] = [
      [['foo'], /"foo"/],
      [['serve', 'foo'], /"foo"/],
      [['ps', 'foo'], /too many arguments/],
      [['ps', '--nonsense'], /--nonsense/],
      [['kill', '--older-than', '5', '--yes'], /30s, 5m or 1h/],
      [['history', '--outcome', 'vanished'], /vanished/],
      [['--nonsense'], /--nonsense/],
    ];
    const results = await Promise.all(cases.map(([args]) => cli.run(args)));
    for (const [i, { code, stderr, stdout }] of results.entries()) {
      expect({ code, stdout }, cases[i]?.[0].join(' ')).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(cases[i]?.[1] ?? /^$/);
    }
  });

  test('the help of each command has examples that it would take, and its exit codes', async () => {
    for (const { stdout, code } of await Promise.all(commands.map((command) => cli.run([command, '--help'])))) {
      expect(code).toBe(0);
      expect(stdout).toMatch(/Examples:\n {2}(\w+=\S+ )?mongo-leash/);
      expect(stdout).toMatch(/Exit codes:\n {2}0 {2}/);
    }
    const { stdout } = await cli.run(['--help']);
    for (const command of ['serve', ...commands]) expect(stdout).toMatch(new RegExp(`^ {2}${command} `, 'm'));
  });

  test('without a connection string each command says how to give one', async () => {
    for (const { code, stderr } of await Promise.all(['ps', 'doctor', 'kill'].map((command) => cli.run([command, ...(command === 'kill' ? ['--orphans'] : [])])))) {
      expect(code).toBe(7);
      expect(stderr).toMatch(/Set MONGO_LEASH_URI, or give --uri/);
    }
  });

  test('a secret on the command line is warned of and never repeated', async () => {
    const results = await Promise.all([
      cli.run(['ps', '--uri', 'mongodb://dba:s3cr3tpw@127.0.0.1:1/?serverSelectionTimeoutMS=1&bogusOption=1']),
      cli.run(['ps', '--uri', 'mongodb://dba:s3cr3tpw@127.0.0.1:1/', '--bogus']),
      cli.run(['ps', 'mongodb://dba:s3cr3tpw@127.0.0.1:1/']),
      cli.run(['mongodb://dba:s3cr3tpw@127.0.0.1:1/']),
      cli.run(['ps', '--control-uri', 'mongodb://dba:s3cr3t%pw@127.0.0.1:1/'], { uri: 'mongodb://127.0.0.1:1/' }),
    ]);
    for (const { code, stdout, stderr } of results) {
      expect(code).toBe(2);
      expect(stdout + stderr).not.toContain('s3cr3t');
    }
    expect(results[0]?.stderr).toMatch(/--uri is visible to other users/);
  });

  test('serve takes the control credentials too', async () => {
    const { code, stderr } = await cli.run(['serve'], { uri: 'mongodb://127.0.0.1:1/', env: { MONGO_LEASH_CONTROL_URI: 'nonsense' } });
    expect(code).toBe(2);
    expect(stderr).toMatch(/does not begin with mongodb:/);
    expect((await cli.run(['serve', '--help'])).stdout).toContain('MONGO_LEASH_CONTROL_URI');
  });

  test('a command for a terminal loads no MCP', async () => {
    const hook = `export async function resolve(specifier, context, next) { const found = await next(specifier, context); if (/modelcontextprotocol|\\/mcp\\//.test(found.url)) process._rawDebug('LOADED ' + found.url); return found; }`;
    const register = `import { register } from 'node:module'; register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hook)}`)});`;
    const node = ['--import', `data:text/javascript,${encodeURIComponent(register)}`];
    const [ps, history, serve] = await Promise.all([
      cli.run(['ps'], { node, uri: 'mongodb://127.0.0.1:1/?noSuchOption=1' }),
      cli.run(['history'], { node }),
      cli.run(['serve'], { node }),
    ]);
    expect([ps.code, history.code]).toEqual([2, 0]);
    for (const { stderr } of [ps, history]) expect(stderr).not.toContain('LOADED');
    // The hook works: the server does load it.
    expect(serve.stderr).toContain('LOADED');
    expect(programPath).toMatch(/dist/);
  });

  test('a reader of the output that goes away is no error', async () => {
    const { spawnSync } = await import('node:child_process');
    const { stderr } = spawnSync('sh', ['-c', `"${process.execPath}" "${programPath}" history --json | true`], { env: cli.env(), encoding: 'utf8' });
    expect(stderr).not.toMatch(/EPIPE|Error/);
  });
});
