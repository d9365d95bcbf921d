/** Native Tasks by clients that others wrote: the Tasks extension's own package in both protocol versions, and the 1.x SDK's own. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CallToolResultSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually, tagged } from '../support/mongo.js';
import type { Target } from './clients.js';
import { type Ground, few, long, openWire, startGround } from './suite.js';
import { type TaskClient, connectTasks } from './task-sessions.js';
import type { Wire } from './wire.js';

let ground: Ground;
beforeAll(async () => { ground = await startGround(); });
afterAll(() => ground.stop());

let target: Target;
let wire: Wire;
let closeWire: () => Promise<void>;
async function open(transport: 'stdio' | 'http'): Promise<void> {
  ({ target, wire, close: closeWire } = await openWire(ground, transport));
}
async function close(): Promise<void> {
  await closeWire();
  await eventually('nothing of it is left', async () => (await tagged(ground.mongo.client)).length === 0);
}

const lanes = (['stdio', 'http'] as const).flatMap((transport) => (['2025-11-25', '2026-07-28'] as const).map((version) => ({ transport, version })));

describe.each(lanes)('@modelcontextprotocol/ext-tasks, $version over $transport', ({ transport, version }) => {
  let client: TaskClient;
  beforeEach(async () => {
    await open(transport);
    client = await connectTasks(target, version);
  });
  afterEach(async () => {
    await client.close();
    await close();
  });
  /** `run` as a task: 2025 asks for one, in 2026 a call that is handed over is one. */
  const start = (args: Record<string, unknown>) => client.session.callTool('run', { ...few, ...args, ...(version === '2026-07-28' ? { waitMs: 0 } : { waitMs: 60_000 }) }, { task: { preference: 'prefer' } });

  it('a task completes with the documents', async () => {
    const execution = await start({ pipeline: [{ $count: 'n' }] });
    const { outcome } = await execution.settle();
    expect(outcome).toMatchObject({ status: 'completed', result: { structuredContent: { outcome: 'succeeded', documents: [{ n: 2 }] } } });
  });

  it('a task that is cancelled is gone from the database, and another one works on', async () => {
    const [other, cancelled] = [long(ground), long(ground)];
    const otherExecution = await start(other.args);
    const execution = await start(cancelled.args);
    expect([otherExecution.kind, execution.kind]).toEqual(['task', 'task']);
    const [otherId, id] = await Promise.all([other.shown(), cancelled.shown()]);
    expect([otherExecution.handle?.taskId, execution.handle?.taskId]).toEqual([otherId, id]);
    await execution.cancel();
    expect(await execution.result()).toMatchObject({ status: 'cancelled' });
    await cancelled.gone();
    expect(wire.sent().filter(({ what }) => what === 'tasks/cancel').map(({ message }) => message.params.taskId)).toEqual([id]);
    expect(await other.rows()).toHaveLength(1);

    // A DBA ends the other one. That is no cancel: 2025 has failed, and 2026 has completed with an answer that says so.
    const [row] = await other.rows();
    await ground.mongo.client.db('admin').command({ killOp: 1, op: row.opid });
    const killed = await otherExecution.result();
    if (version === '2025-11-25') expect(killed).toMatchObject({ status: 'failed', error: { message: expect.stringContaining('killed') } });
    else expect(killed).toMatchObject({ status: 'completed', result: { isError: true, structuredContent: { outcome: 'killed', by: 'others' } } });
    expect(await other.rows()).toEqual([]);
  });

  it('a task that is let go of works on, and can be taken up again by what was kept of it', async () => {
    const kept = long(ground);
    const execution = await start(kept.args);
    if (execution.kind !== 'task') throw new Error('it is no task');
    const id = await kept.shown();
    const reference = execution.serializeReference();
    await execution.detach();
    expect(await kept.rows()).toHaveLength(1);
    const again = await client.session.resumeTask(reference);
    await again.cancel();
    await kept.gone();
    expect(wire.sent().filter(({ what }) => what === 'tasks/cancel').map(({ message }) => message.params.taskId)).toEqual([id]);
  });
});

describe.each(['stdio', 'http'] as const)('the tasks of @modelcontextprotocol/sdk 1.x over %s', (transport) => {
  let client: Client;
  beforeEach(async () => {
    await open(transport);
    client = new Client({ name: 'interop', version: '1.0.0' });
    const to = 'url' in target ? new StreamableHTTPClientTransport(target.url) : new StdioClientTransport({ command: target.command[0], args: target.command.slice(1), env: target.env, stderr: 'ignore' });
    await client.connect(to);
    await client.listTools();
  });
  afterEach(async () => {
    await client.close();
    await close();
  });
  const stream = (args: Record<string, unknown>) => client.experimental.tasks.callToolStream({ name: 'run', arguments: { ...few, ...args } }, CallToolResultSchema, { task: { ttl: 60_000 } });

  it('a task completes with the documents', async () => {
    const types: string[] = [];
    let last: any;
    for await (const message of stream({ pipeline: [{ $count: 'n' }] })) {
      types.push(message.type);
      last = message;
    }
    expect(types[0]).toBe('taskCreated');
    expect(last).toMatchObject({ type: 'result', result: { structuredContent: { outcome: 'succeeded', documents: [{ n: 2 }] } } });
  });

  it('a task that is cancelled is gone from the database when the answer comes', async () => {
    const cancelled = long(ground);
    const messages = stream(cancelled.args);
    const { value: created } = await messages.next();
    const taskId = (created as any).task.taskId as string;
    expect(await cancelled.shown()).toBe(taskId);
    expect(await client.experimental.tasks.cancelTask(taskId)).toMatchObject({ taskId, status: 'cancelled' });
    expect(await cancelled.rows()).toEqual([]);
    expect((await client.experimental.tasks.listTasks()).tasks).toEqual(expect.arrayContaining([expect.objectContaining({ taskId, status: 'cancelled' })]));
    expect(wire.count('tasks/cancel')).toBe(1);
    await messages.return?.(undefined);
  });
});
