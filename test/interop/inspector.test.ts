/** The MCP Inspector's command line: one process for each call, which ends by its own time limit or by a Ctrl-C. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { installOutside } from '../../scripts/outside.mjs';
import { eventually, tagged } from '../support/mongo.js';
import { type InteropClient, type Target, connectSdk1 } from './clients.js';
import { type Ground, few, long, openWire, sessionGraceMs, startGround } from './suite.js';
import type { Wire } from './wire.js';

const { folder = '', unavailable } = await installOutside(['@modelcontextprotocol/inspector@2.12.0']);
const program = join(folder, 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');

/** Long enough for the database to be seen at work, in milliseconds. */
const requestTimeoutMs = 3_000;
const modern = '2026-07-28';

interface Cli {
  process: ChildProcess;
  ended: Promise<{ code: number | null; signal: string | null; stdout: string; stderr: string }>;
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
    { transport: 'stdio', era: 'legacy', version: '2025-11-25', timeoutBy: 'notifications/cancelled', leavesBy: 'end' },
    { transport: 'stdio', era: 'modern', version: modern, timeoutBy: 'notifications/cancelled', leavesBy: 'end' },
    { transport: 'http', era: 'legacy', version: '2025-11-25', timeoutBy: 'notifications/cancelled', leavesBy: 'cut POST' },
    { transport: 'http', era: 'modern', version: modern, timeoutBy: 'cut POST', leavesBy: 'cut POST' },
  ] as const)('$era over $transport', ({ transport, era, version, timeoutBy, leavesBy }) => {
    let target: Target;
    let wire: Wire;
    let closeWire: () => Promise<void>;
    beforeEach(async () => { ({ target, wire, close: closeWire } = await openWire(ground, transport)); });
    afterEach(async () => {
      await closeWire();
      await eventually('nothing of it is left', async () => (await tagged(ground.mongo.client)).length === 0);
    });

    function start(args: string[], settings: object = {}): Cli {
      const server = 'url' in target ? { type: 'streamable-http', url: target.url.href } : { type: 'stdio', command: target.command[0], args: target.command.slice(1), env: target.env };
      const config = join(home, 'config.json');
      writeFileSync(config, JSON.stringify({ mcpServers: { ours: { ...server, protocolEra: era, ...settings } } }));
      const child = spawn(process.execPath, [program, '--cli', '--config', config, '--server', 'ours', '--format', 'json', '--quiet', ...args], { env: { ...process.env, HOME: home }, stdio: ['ignore', 'pipe', 'pipe'] });
      let stdout = '';
      let stderr = '';
      child.stdout.on('data', (chunk) => { stdout += String(chunk); });
      child.stderr.on('data', (chunk) => { stderr += String(chunk); });
      return { process: child, ended: new Promise((resolve) => { child.on('close', (code, signal) => { resolve({ code, signal, stdout, stderr }); }); }) };
    }
    const run = (args: object, settings?: object) => start(['--method', 'tools/call', '--tool-name', 'run', '--tool-args-json', JSON.stringify(args)], settings);

    it(`speaks ${version}, lists the tools, and runs a query`, async () => {
      const listed = await start(['--method', 'tools/list']).ended;
      expect(listed, listed.stderr).toMatchObject({ code: 0 });
      expect(JSON.parse(listed.stdout).tools.map(({ name }: { name: string }) => name)).toEqual(['run', 'status', 'kill', 'operations', 'result']);
      const answered = await run({ ...few, pipeline: [{ $count: 'n' }] }).ended;
      expect(answered, answered.stderr).toMatchObject({ code: 0 });
      expect(JSON.parse(answered.stdout)).toMatchObject({ structuredContent: { outcome: 'succeeded', documents: [{ n: 2 }] } });
      const call = wire.sent().find(({ what }) => what === 'tools/call');
      expect(call?.message.params._meta?.['io.modelcontextprotocol/protocolVersion']).toBe(version === modern ? modern : undefined);
    });

    it.each([
      ['its own time limit', timeoutBy, () => undefined],
      ['a Ctrl-C', leavesBy, (cli: Cli) => { cli.process.kill('SIGINT'); }],
    ] as const)('a call that ends by %s is gone from the database, by %s, and the call of another client is left alone', async (_how, sign, end) => {
      const [other, ended] = [long(ground), long(ground)];
      const otherCall = bystander.call('run', other.args);
      otherCall.catch(() => undefined);
      const otherId = await other.shown();
      const cli = run(ended.args, { requestTimeout: requestTimeoutMs });
      await ended.shown();
      end(cli);
      expect((await cli.ended).code).not.toBe(0);
      await ended.gone(2 * sessionGraceMs + 2_000);
      console.log(wire.sent().map(({ what }) => what).join(' '));
      expect(wire.count(sign)).toBeGreaterThan(0);
      expect(await other.rows()).toHaveLength(1);
      expect(await bystander.call('kill', { id: otherId })).toMatchObject({ verdict: 'stopped' });
      expect(await otherCall).toMatchObject({ operationId: otherId, cause: 'kill_tool' });
    });
  });
});
