/** The four ways to native Tasks, spoken by hand to the real program: two protocol versions, each over stdio and HTTP. Every task that comes back is held against the schemas of the Tasks extension's own package. */

import { CancelTaskResultV1Schema, CreateTaskResultV1Schema, GetTaskResultV1Schema, ListTasksResultV1Schema } from '@modelcontextprotocol/ext-tasks/core/v1';
import { CancelTaskResultV2Schema, CreateTaskResultV2Schema, GetTaskResultV2Schema, UpdateTaskResultV2Schema } from '@modelcontextprotocol/ext-tasks/core/v2';
import { expect } from 'vitest';
import { type HttpTestServer, type HttpTestServerOptions, ask, modernRequest, startHttpServer } from './http-server.js';
import { type RawClient, modernParams, openModernRaw, openRaw } from './raw-client.js';
import { type TestServerOptions, startServer } from './server.js';

export type Era = '2025' | '2026';

export interface AskOptions {
  /** The id of the request; a fresh one when left out. */
  id?: string | number;
  /** 2026: whether the request declares the extension. */
  tasks?: boolean;
}

/** A task as `tasks/get` and its kind show it; `ttl` and `pollInterval` of either version. */
export interface ShownTask {
  taskId: string;
  status: string;
  statusMessage: string;
  ttl: number | null;
  /** 2026: what stands in the task at its end. */
  result?: any;
  /** Everything as it came. */
  raw: any;
}

export interface TaskLane {
  name: string;
  era: Era;
  transport: 'stdio' | 'http';
  /** Any request; the JSON-RPC message as it came, with `result` or `error`. Not answered: undefined over HTTP, and nothing over stdio. */
  ask(method: string, params?: Record<string, unknown>, options?: AskOptions): Promise<any>;
  /** `notifications/cancelled` for a request of this lane. */
  cancelRequest(id: string | number): Promise<void>;
  /** The whole result of a plain call of a tool. */
  callRaw(name: string, args?: Record<string, unknown>): Promise<any>;
  /** Its structured answer. */
  call(name: string, args?: Record<string, unknown>): Promise<any>;
  /** `run` as a task from the beginning. */
  create(args: Record<string, unknown>, ttl?: number): Promise<ShownTask>;
  get(taskId: string): Promise<ShownTask>;
  /** The message that answers `tasks/cancel`, checked when it is a result. */
  cancel(taskId: string): Promise<any>;
  /** The code of the error that answers a request, and its message. */
  refusal(method: string, params: Record<string, unknown>, options?: AskOptions): Promise<{ code: number; message: string; data?: any }>;
  /** What the plain call would have been answered: `tasks/result` of 2025, the inlined result of 2026. */
  resultOf(taskId: string): Promise<any>;
  /** Lines of the server's log. */
  stderr: string[];
}

type Speech = Pick<TaskLane, 'ask' | 'cancelRequest' | 'stderr'>;

export interface Lanes {
  all: TaskLane[];
  of(era: Era): TaskLane[];
  named(name: `${'stdio' | 'http'} ${Era}`): TaskLane;
  http: HttpTestServer;
  stop(): Promise<void>;
}

/** Holds it against the schema, which drops what it does not know: so nothing else stands in it. */
function checked<T>(schema: { parse(value: unknown): T }, value: any): any {
  expect(schema.parse(value)).toEqual(value);
  return value;
}

let lastId = 0;
const nextId = () => `task-test-${(lastId += 1)}`;

function createLane(transport: TaskLane['transport'], era: Era, speech: Speech): TaskLane {
  const { ask: send } = speech;
  const shown = (raw: any): ShownTask => ({ taskId: raw.taskId, status: raw.status, statusMessage: raw.statusMessage, ttl: era === '2025' ? raw.ttl : raw.ttlMs, ...(raw.result === undefined ? {} : { result: raw.result }), raw });
  const name = `${transport} ${era}`;

  async function resultFrom(method: string, params: Record<string, unknown>, options?: AskOptions): Promise<any> {
    const message = await send(method, params, options);
    if (message?.result === undefined) throw new Error(`${name}: ${method} was answered ${JSON.stringify(message)}`);
    return message.result;
  }

  const lane: TaskLane = {
    ...speech,
    name,
    era,
    transport,
    callRaw: (tool, args = {}) => resultFrom('tools/call', { name: tool, arguments: args }, { tasks: false }),
    call: async (tool, args) => (await lane.callRaw(tool, args)).structuredContent,
    async create(args, ttl) {
      if (era === '2025') return shown(checked(CreateTaskResultV1Schema, await resultFrom('tools/call', { name: 'run', arguments: args, task: ttl === undefined ? {} : { ttl } })).task);
      return shown(checked(CreateTaskResultV2Schema, await resultFrom('tools/call', { name: 'run', arguments: { waitMs: 0, ...args } })));
    },
    async get(taskId) {
      return shown(checked<unknown>(era === '2025' ? GetTaskResultV1Schema : GetTaskResultV2Schema, await resultFrom('tasks/get', { taskId })));
    },
    async cancel(taskId) {
      const message = await send('tasks/cancel', { taskId });
      if (message.result !== undefined) checked<unknown>(era === '2025' ? CancelTaskResultV1Schema : CancelTaskResultV2Schema, message.result);
      return message;
    },
    async refusal(method, params, options) {
      const message = await send(method, params, options);
      expect(message, `${name}: ${method} is refused`).toMatchObject({ error: { code: expect.any(Number), message: expect.any(String) } });
      expect(message).not.toHaveProperty('result');
      return message.error;
    },
    async resultOf(taskId) {
      if (era === '2026') return (await lane.get(taskId)).result;
      return await resultFrom('tasks/result', { taskId });
    },
  };
  return lane;
}

/** All pages of `tasks/list`, of 2025. */
export async function listTasks(lane: TaskLane): Promise<{ tasks: any[]; pages: number }> {
  const tasks: any[] = [];
  let cursor: string | undefined;
  let pages = 0;
  do {
    const { result } = await lane.ask('tasks/list', cursor === undefined ? {} : { cursor });
    checked(ListTasksResultV1Schema, result);
    tasks.push(...result.tasks);
    pages += 1;
    cursor = result.nextCursor;
  } while (cursor !== undefined);
  return { tasks, pages };
}

/** `tasks/update` of 2026. */
export async function updateTask(lane: TaskLane, taskId: string): Promise<any> {
  const { result } = await lane.ask('tasks/update', { taskId, inputResponses: {} });
  return checked(UpdateTaskResultV2Schema, result);
}

export interface StdioLane extends TaskLane {
  server: Awaited<ReturnType<typeof startServer>>;
  raw: RawClient;
}

export async function openStdioLane(era: Era, options: TestServerOptions): Promise<StdioLane> {
  const server = await startServer({ ...options, raw: true });
  const raw = await (era === '2025' ? openRaw(server) : openModernRaw(server));
  const lane = createLane('stdio', era, {
    stderr: server.stderr,
    ask: async (method, params = {}, { id = nextId(), tasks = true } = {}) => {
      raw.request(id, method, era === '2025' ? params : modernParams(params, { tasks }));
      return await raw.answer(id, 60_000);
    },
    cancelRequest: async (id) => { raw.cancel(id); },
  });
  return { ...lane, server, raw };
}

/** A session of its own in 2025, a principal by its token in both. */
export async function openHttpLane(era: Era, { url, stderr }: Pick<HttpTestServer, 'url' | 'stderr'>, token?: string): Promise<TaskLane> {
  if (era === '2026') {
    return createLane('http', era, {
      stderr,
      ask: (method, params = {}, { id = nextId(), tasks = true } = {}) => ask(url, modernRequest(id, method, params, { tasks, token })),
      cancelRequest: () => Promise.reject(new Error('over HTTP 2026-07-28 cancels by closing the stream')),
    });
  }
  let session: string | null = null;
  const post = (message: object): RequestInit => ({
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2025-11-25',
      ...(session === null ? {} : { 'Mcp-Session-Id': session }),
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', ...message }),
  });
  const opening = await fetch(url, post({ id: nextId(), method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1.0.0' } } }));
  session = opening.headers.get('mcp-session-id');
  await opening.text();
  await (await fetch(url, post({ method: 'notifications/initialized' }))).text();
  return createLane('http', era, {
    stderr,
    ask: (method, params = {}, { id = nextId() } = {}) => ask(url, post({ id, method, params })),
    cancelRequest: async (id) => void (await (await fetch(url, post({ method: 'notifications/cancelled', params: { requestId: id } }))).text()),
  });
}

/** A server over stdio for each version, and one over HTTP for both. */
export async function startLanes(options: Pick<HttpTestServerOptions, 'uri' | 'args' | 'env'>): Promise<Lanes> {
  const [stdio2025, stdio2026, http] = await Promise.all([openStdioLane('2025', options), openStdioLane('2026', options), startHttpServer(options)]);
  const all: TaskLane[] = [stdio2025, stdio2026, await openHttpLane('2025', http), await openHttpLane('2026', http)];
  return {
    all,
    of: (era) => all.filter((lane) => lane.era === era),
    named: (name) => {
      const found = all.find((lane) => lane.name === name);
      if (found === undefined) throw new Error(`there is no ${name}`);
      return found;
    },
    http,
    async stop() {
      await Promise.all([stdio2025.server.close(), stdio2026.server.close(), http.stop()]);
    },
  };
}
