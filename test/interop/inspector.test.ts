/** The MCP Inspector's command line: one process for each call, which ends with its answer or by a Ctrl-C. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { installOutside } from '../../scripts/outside.mjs';
import { productTools } from '../../src/mcp/tools/all.js';
import { sleeping } from '../support/checked.js';
import { eventually, tagged } from '../support/mongo.js';
import { type InteropClient, type Target, connectSdk1, connectSdk2 } from './clients.js';
import { type Ground, few, goneWithinMs, long, openWire, sessionGraceMs, startGround } from './suite.js';
import type { Wire } from './wire.js';

const { folder = '', unavailable } = await installOutside(['@modelcontextprotocol/inspector@2.12.0']);
const program = join(folder, 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');

const modern = '2026-07-28';

interface Cli {
  process: ChildProcess;
  ended: Promise<{ code: number | null; stdout: string; stderr: string }>;
}

describe.skipIf(unavailable !== undefined)(`inspector --cli${unavailable === undefined ? '' : ` (skipped: ${unavailable})`}`, () => {
  let ground: Ground;
  let home: string;
  /** Whose call is never cancelled. */
  let bystander: InteropClient;
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'mongo-leash-inspector-'));
    ground = await startGround();
    bystander = await connectSdk1({ url: ground.http.url });
  });
  afterAll(async () => {
    await bystander.close();
    await ground.stop();
    rmSync(home, { recursive: true, force: true });
  });

  describe.each([
    { transport: 'stdio', era: 'legacy', version: '2025-11-25', leavesBy: 'end' },
    { transport: 'stdio', era: 'modern', version: modern, leavesBy: 'end' },
    { transport: 'http', era: 'legacy', version: '2025-11-25', leavesBy: 'cut POST' },
    { transport: 'http', era: 'modern', version: modern, leavesBy: 'cut POST' },
  ] as const)('$era over $transport', ({ transport, era, version, leavesBy }) => {
    let target: Target;
    let wire: Wire;
    let closeWire: () => Promise<void>;
    beforeEach(async () => { ({ target, wire, close: closeWire } = await openWire(ground, transport)); });
    afterEach(async () => {
      await closeWire();
      await eventually('nothing of it is left', async () => (await tagged(ground.mongo.client)).length === 0);
    });

    function start(args: string[]): Cli {
      const server = 'url' in target ? { type: 'streamable-http', url: target.url.href } : { type: 'stdio', command: target.command[0], args: target.command.slice(1), env: target.env };
      const config = join(home, 'config.json');
      writeFileSync(config, JSON.stringify({ mcpServers: { ours: { ...server, protocolEra: era} } }));
      const child = spawn(process.execPath, [program, '--cli', '--config', config, '--server', 'ours', '--format', 'json', '--quiet', ...args], { env: { ...process.env, HOME: home }, stdio: ['ignore', 'pipe', 'pipe'] });
      let stdout = '';
      let stderr = '';
      child.stdout.on('data', (chunk) => { stdout += String(chunk); });
      child.stderr.on('data', (chunk) => { stderr += String(chunk); });
      return { process: child, ended: new Promise((resolve) => { child.on('close', (code) => { resolve({ code, stdout, stderr }); }); }) };
    }
    const run = (args: object) => start(['--method', 'tools/call', '--tool-name', 'run', '--tool-args-json', JSON.stringify(args)]);

    it(`speaks ${version}, lists the tools, and runs a query`, async () => {
      const listed = await start(['--method', 'tools/list']).ended;
      expect(listed, listed.stderr).toMatchObject({ code: 0 });
      expect(JSON.parse(listed.stdout).result.tools.map(({ name }: { name: string }) => name)).toEqual(productTools.map(({ name }) => name));
      const answered = await run({ ...few, pipeline: [{ $count: 'n' }] }).ended;
      expect(answered, answered.stderr).toMatchObject({ code: 0 });
      expect(JSON.parse(answered.stdout)).toMatchObject({ result: { structuredContent: { outcome: 'succeeded', documents: [{ n: 2 }] } } });
      const call = wire.sent().find(({ what }) => what === 'tools/call');
      expect(call?.message.params._meta?.['io.modelcontextprotocol/protocolVersion']).toBe(version === modern ? modern : undefined);
    });

    it(`a Ctrl-C is ${leavesBy} to the server: the operation is gone, and the call of another client is left alone`, async () => {
      const [other, ended] = [long(ground), long(ground)];
      const otherCall = bystander.call('run', other.args);
      // It is looked at in the end, and must not be alone until then.
      otherCall.catch(() => undefined);
      const otherId = await other.shown();
      const cli = run(ended.args);
      await ended.shown();
      cli.process.kill('SIGINT');
      await cli.ended;
      // 2025-11-25 over HTTP: a cut stream is no cancel, and the session is waited for.
      await ended.gone(transport === 'http' && era === 'legacy' ? 2 * sessionGraceMs + goneWithinMs : goneWithinMs);
      expect([wire.count('notifications/cancelled'), wire.count('DELETE'), wire.count(leavesBy)]).toEqual([0, 0, 1]);
      expect(await other.rows()).toHaveLength(1);
      expect(await bystander.call('kill', { id: otherId })).toMatchObject({ verdict: 'stopped' });
      expect(await otherCall).toMatchObject({ operationId: otherId, cause: 'kill_tool' });
    });

    // Only this version has Tasks in the Inspector.
    if (era !== 'modern') return;

    it('a call that is handed over is polled as a native task to its end', async () => {
      const answered = await run({ ...few, pipeline: sleeping(750), waitMs: 100 }).ended;
      expect(answered, answered.stderr).toMatchObject({ code: 0 });
      expect(JSON.parse(answered.stdout)).toMatchObject({ result: { structuredContent: { outcome: 'succeeded', returned: 2 } } });
      expect(wire.count('tasks/get')).toBeGreaterThan(0);
    });

    it(`a Ctrl-C of the one who polls a task ${transport === 'http' ? 'is nothing to the server, and another client stops it by its id' : 'ends the server, and its operation with it'}`, async () => {
      const task = long(ground, { waitMs: 100 });
      const cli = run(task.args);
      const id = await task.shown();
      await eventually('it polls', () => wire.count('tasks/get') > 0);
      cli.process.kill('SIGINT');
      await cli.ended;
      expect(wire.count('tasks/cancel')).toBe(0);
      if (transport === 'stdio') return await task.gone();
      expect(await task.rows()).toHaveLength(1);
      const another = await connectSdk2({ pin: modern })({ url: ground.http.url });
      expect(await another.call('kill', { id })).toMatchObject({ verdict: 'stopped' });
      await another.close();
      expect(await task.rows()).toEqual([]);
    });
  });
});
