/** How clients leave: Claude Code's three signals, and everything that reaches the server when `npx` stands between. */
import type { ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Busy, busyArgs, makeBusy, prepareBusy, reportOf, stderrLines, untilNoneIsLeft } from '../support/busy-server.js';
import { type InstalledPackage, installPackage } from '../support/installed-package.js';
import { type TestMongo, eventually, startMongo } from '../support/mongo.js';
import { isAlive } from '../support/processes.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let installed: InstalledPackage;
beforeAll(async () => {
  installed = installPackage();
  mongo = await startMongo();
  await prepareBusy(mongo.client);
});
afterAll(async () => {
  installed.remove();
  await mongo.stop();
});

/** Measured: SIGINT, SIGTERM 100 ms later, and SIGKILL 400 ms after the first. */
async function leaveAsClaudeCode(child: ChildProcess): Promise<void> {
  child.kill('SIGINT');
  await delay(100);
  child.kill('SIGTERM');
  await delay(300);
  child.kill('SIGKILL');
}

const starts: { name: string; start: () => Promise<TestServer> }[] = [
  { name: 'started directly', start: () => startServer({ uri: mongo.uri, args: busyArgs }) },
  { name: 'started through npx', start: () => startServer({ uri: mongo.uri, args: busyArgs, command: ['npx', '--no-install', 'mongo-leash'], cwd: installed.folder }) },
];

/** The server itself, also where npx was started: its log says who it is. */
const pidOf = (server: TestServer) => stderrLines(server)[0]?.['pid'] as number;

async function leftProven({ server, running, queued }: Busy): Promise<void> {
  const pid = pidOf(server);
  await eventually('the server has ended', () => !isAlive(pid), 5_000);
  await server.exited;
  const report = reportOf(server);
  expect(report).toMatchObject({ allProven: true });
  const verdicts = Object.fromEntries(report['operations'].map((each: any) => [each.operationId, each.verdict]));
  expect(verdicts).toEqual({ ...Object.fromEntries(running.map((id) => [id, 'stopped'])), ...Object.fromEntries(queued.map((id) => [id, 'never_sent'])) });
}

describe.each(starts)('$name', ({ start }) => {
  it("Claude Code's way of leaving leaves nothing on the database", async () => {
    const busy = await makeBusy(mongo, await start());
    const since = performance.now();
    const left = leaveAsClaudeCode(busy.server.process);
    expect(await untilNoneIsLeft(mongo.client, since, 2_000)).toBeLessThan(2_000);
    await left;
    await leftProven(busy);
  });

  it('the end of stdin leaves nothing on the database, and the exit code says that it is proven', async () => {
    const busy = await makeBusy(mongo, await start());
    const since = performance.now();
    busy.server.process.stdin?.end();
    expect(await untilNoneIsLeft(mongo.client, since, 2_000)).toBeLessThan(2_000);
    expect(await busy.server.exited).toEqual({ code: 0, signal: null });
    expect(performance.now() - since).toBeLessThan(5_000);
    expect(reportOf(busy.server)).toMatchObject({ shutdown: 'end of stdin' });
    await leftProven(busy);
  });

  it('a client whose end of stdout is gone when an answer is written leaves nothing on the database', async () => {
    const busy = await makeBusy(mongo, await start());
    const since = performance.now();
    busy.server.process.stdout?.destroy();
    busy.server.call('status', { id: busy.running[0] }).catch(() => undefined);
    expect(await untilNoneIsLeft(mongo.client, since, 2_000)).toBeLessThan(2_000);
    expect(await busy.server.exited).toEqual({ code: 0, signal: null });
    await leftProven(busy);
  });
});

describe('started through npx, which may pass no signal on', () => {
  it.each(['SIGTERM', 'SIGHUP', 'SIGKILL'] as const)('%s ends npx, the server sees at least the end of stdin, and nothing is left on the database', async (signal) => {
    const busy = await makeBusy(mongo, await (starts[1] as (typeof starts)[number]).start());
    const since = performance.now();
    busy.server.process.kill(signal);
    expect(await untilNoneIsLeft(mongo.client, since, 2_000)).toBeLessThan(2_000);
    await leftProven(busy);
  });

  it('the exit code of a start that was stopped comes through', async () => {
    const server = await startServer({ args: ['--no-such-option'], command: ['npx', '--no-install', 'mongo-leash'], cwd: installed.folder, raw: true });
    expect(await server.exited).toEqual({ code: 2, signal: null });
    expect(server.stderr.join('\n')).toContain('--no-such-option');
  });
});
