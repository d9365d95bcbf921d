/** What a person at a terminal sees: top with its keys, the question before a kill, colours, and a terminal given back as it was. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Agent, type AgentOperation, createAgent } from '../support/agents.js';
import { type Cli, createCli } from '../support/cli.js';
import { type TestMongo, eventually, running, startMongo, tagged } from '../support/mongo.js';
import { isAlive as isProcessThere } from '../support/processes.js';
import { type TerminalWindow, hasTmux, openTerminal } from '../support/tmux.js';

let mongo: TestMongo;
let cli: Cli;
let agent: Agent;
const opened: TerminalWindow[] = [];

beforeAll(async () => {
  mongo = await startMongo();
  await mongo.client.db('app').collection('things').insertMany([{ a: 1 }]);
  cli = createCli(mongo.uri);
  agent = await createAgent(mongo.uri);
});

afterAll(async () => {
  await agent?.close();
  await mongo?.stop();
  cli?.end();
});

afterEach(async () => {
  for (const terminal of opened.splice(0)) terminal.end();
  for (const { opid } of await tagged(mongo.client)) await mongo.client.db('admin').command({ killOp: 1, op: opid });
});

function open(args: string[], { env = {}, ...size }: { env?: Record<string, string>; columns?: number; rows?: number } = {}): TerminalWindow {
  const terminal = openTerminal(args, { env: { ...cli.env(), ...env }, ...size });
  opened.push(terminal);
  return terminal;
}

const shows = (terminal: TerminalWindow, text: string | RegExp, withinMs?: number) =>
  eventually(`the screen shows ${String(text)}, and not only\n${terminal.screen().join('\n')}`, () => terminal.screen().some((line) => (typeof text === 'string' ? line.includes(text) : text.test(line))), withinMs);
const selected = (terminal: TerminalWindow) => terminal.screen().find((line) => line.startsWith('> ')) ?? '';
const isThere = async ({ comment }: AgentOperation) => (await running(mongo.client, comment)).length > 0;

/** Starts the program, remembers how the terminal was before, and waits until it is taken over. */
async function openTop(options?: Parameters<typeof open>[1]): Promise<{ terminal: TerminalWindow; expectGivenBack(code: number | null): Promise<void> }> {
  const terminal = open(['top'], options);
  const before = terminal.settings();
  await eventually('top has the screen', () => terminal.isTakenOver());
  await shows(terminal, /mongo-leash top: \d+ tagged/);
  expect(terminal.settings()).toMatch(/-icanon/);
  return {
    terminal,
    async expectGivenBack(code) {
      if (code !== null) await shows(terminal, `ended with ${code}`);
      await eventually('the shell has the screen', () => !terminal.isTakenOver());
      expect(terminal.says('cursor_flag')).toBe('1');
      expect(terminal.says('wrap_flag')).toBe('1');
      // While a shell reads a line it has settings of its own: these two it leaves as they were.
      for (const setting of ['isig', 'opost']) expect(terminal.settings().includes(` ${setting}`)).toBe(before.includes(` ${setting}`));
      terminal.press('echo', 'Space', 'typed', 'Enter');
      await shows(terminal, /^(# )?typed *$/);
    },
  };
}

describe.skipIf(!hasTmux)('top', () => {
  test('shows what runs, the longest first, and follows it', async () => {
    const first = await agent.start(mongo.client);
    const { terminal, expectGivenBack } = await openTop();
    await shows(terminal, first.id);
    const second = await agent.start(mongo.client);
    await shows(terminal, second.id);
    const rows = terminal.screen().filter((line) => line.includes('app.things'));
    expect(rows.map((line) => [first.id, second.id].find((id) => line.includes(id)))).toEqual([first.id, second.id]);
    await mongo.client.db('admin').command({ killOp: 1, op: (await running(mongo.client, first.comment))[0]?.['opid'] });
    await eventually('the first one is gone from the screen', () => !terminal.screen().some((line) => line.includes(first.id)));
    terminal.press('q');
    await expectGivenBack(0);
  });

  test('a key and a second key kill the selected one, and no other', async () => {
    const [one, two, three] = [await agent.start(mongo.client), await agent.start(mongo.client), await agent.start(mongo.client)];
    const { terminal, expectGivenBack } = await openTop();
    await shows(terminal, three.id);
    terminal.press('j');
    await eventually('the second is selected', () => selected(terminal).includes(two.id));
    terminal.press('Down');
    await eventually('the third is selected', () => selected(terminal).includes(three.id));
    terminal.press('Down', 'k');
    await eventually('the second is selected again', () => selected(terminal).includes(two.id));
    terminal.press('x');
    await shows(terminal, `kill ${two.id}`);
    terminal.press('n');
    await eventually('the question is gone', () => !terminal.screen().some((line) => line.includes('y to kill')));
    terminal.press('y');
    expect(await isThere(two)).toBe(true);
    terminal.press('x');
    await shows(terminal, `kill ${two.id}`);
    terminal.press('y');
    await shows(terminal, new RegExp(`${two.id}: stopped after`));
    expect(await two.ended).toBe(11601);
    expect([await isThere(one), await isThere(three)]).toEqual([true, true]);
    terminal.press('q');
    await expectGivenBack(0);
  });

  test.each([
    ['Ctrl-C', (terminal: TerminalWindow) => { terminal.press('C-c'); }, 0],
    ['SIGTERM', (terminal: TerminalWindow) => { process.kill(terminal.pid() ?? 0, 'SIGTERM'); }, 143],
    ['SIGHUP', (terminal: TerminalWindow) => { process.kill(terminal.pid() ?? 0, 'SIGHUP'); }, 129],
  ] as const)('gives the terminal back on %s', async (_name, end, code) => {
    const { terminal, expectGivenBack } = await openTop();
    end(terminal);
    await expectGivenBack(code);
  });

  test('gives the terminal back and says why when it fails itself', async () => {
    const failing = `setTimeout(() => { throw new Error('made to fail') }, 2500)`;
    const { terminal, expectGivenBack } = await openTop({ env: { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(failing)}` } });
    await expectGivenBack(1);
    expect(terminal.screen().join('\n')).toContain('made to fail');
  });

  test('can be put to sleep and woken up', async () => {
    const { terminal, expectGivenBack } = await openTop();
    terminal.press('C-z');
    await eventually('the shell has the screen', () => !terminal.isTakenOver());
    terminal.press('fg', 'Enter');
    await eventually('top has the screen again', () => terminal.isTakenOver());
    await shows(terminal, /mongo-leash top: \d+ tagged/);
    terminal.press('q');
    // The shell took the stop for the end, and has told its code already.
    await expectGivenBack(null);
  });

  test('fits a screen of any size, and follows a change of it', async () => {
    const operation = await agent.start(mongo.client);
    const { terminal, expectGivenBack } = await openTop({ columns: 200, rows: 30 });
    await shows(terminal, operation.id);
    for (const [columns, rows] of [[40, 8], [70, 3], [180, 40]] as const) {
      terminal.resize(columns, rows);
      await eventually(`a frame fits ${columns} by ${rows}`, () => {
        const screen = terminal.screen();
        return (screen[0] ?? '').startsWith('mongo-leash top') && (screen[rows - 1] ?? '').startsWith('up/down');
      });
    }
    terminal.press('q');
    await expectGivenBack(0);
  });

  test('says it when the database goes silent, goes on when it is back, and can be left meanwhile', async () => {
    const operation = await agent.start(mongo.client);
    const { terminal, expectGivenBack } = await openTop();
    await shows(terminal, operation.id);
    mongo.freeze(mongo.hosts[0] ?? '');
    try {
      await shows(terminal, /did not answer .*: what runs there is unknown/);
      expect(terminal.screen().join('\n')).toContain('on 0 of 1 nodes');
    } finally {
      mongo.thaw(mongo.hosts[0] ?? '');
    }
    await shows(terminal, operation.id, 20_000);
    mongo.freeze(mongo.hosts[0] ?? '');
    try {
      await shows(terminal, /did not answer/);
      terminal.press('q');
      await expectGivenBack(0);
    } finally {
      mongo.thaw(mongo.hosts[0] ?? '');
    }
  });

  test('ends with its terminal', async () => {
    const { terminal } = await openTop();
    const pid = terminal.pid() ?? 0;
    terminal.end();
    await eventually('its process is gone', () => !isProcessThere(pid));
  });

  test('needs a terminal, and says so otherwise', async () => {
    const { code, stderr, stdout } = await cli.run(['top']);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('top needs a terminal');
  });
});

describe.skipIf(!hasTmux)('kill at a terminal', () => {
  test('shows what it would kill and asks; anything but yes kills nothing', async () => {
    const operation = await agent.start(mongo.client);
    const terminal = open(['kill', operation.id]);
    await shows(terminal, 'Kill this operation? [y/N]');
    expect(terminal.screen().join('\n')).toContain(operation.id);
    terminal.press('Enter');
    await shows(terminal, 'ended with 8');
    expect(await isThere(operation)).toBe(true);
    const second = open(['kill', operation.id]);
    await shows(second, 'Kill this operation? [y/N]');
    second.press('C-d');
    await shows(second, 'ended with 8');
    const interrupted = open(['kill', operation.id]);
    await shows(interrupted, 'Kill this operation? [y/N]');
    interrupted.press('C-c');
    await shows(interrupted, 'ended with 8');
    expect(await isThere(operation)).toBe(true);
    const third = open(['kill', operation.id]);
    await shows(third, 'Kill this operation? [y/N]');
    third.press('y', 'Enter');
    await shows(third, 'ended with 0');
    expect(third.screen().join('\n')).toMatch(/stopped +after/);
    expect(await operation.ended).toBe(11601);
  });
});

describe.skipIf(!hasTmux)('colours', () => {
  test('are on a terminal, unless NO_COLOR is set, and an evil comment has no effect on it', async () => {
    await agent.start(mongo.client, { tag: { own: 'a\u001b[31mred\u001b]0;title\u0007' } });
    const coloured = open(['ps']);
    const plain = open(['ps'], { env: { NO_COLOR: '1' } });
    await Promise.all([coloured, plain].map((terminal) => shows(terminal, 'ended with 0')));
    expect(coloured.colours()).toMatch(/\u001b\[2m.*OPERATION/);
    expect(coloured.colours()).not.toMatch(/\u001b\[31m/);
    expect(plain.colours()).not.toContain('\u001b[');
    expect(coloured.says('pane_title')).not.toContain('title');
  });
});
