/** The real program as a real process that serves over HTTP, and the ways to talk to it. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as LegacyTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { eventually } from './mongo.js';
import { programPath } from './server.js';

export interface HttpTestServer {
  /** The MCP endpoint, and the same server's other paths. */
  url: URL;
  at(path: string): URL;
  process: ChildProcess;
  /** Lines of stderr as they came. */
  stderr: string[];
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<{ code: number | null; elapsedMs: number }>;
  exited: Promise<number | null>;
}

export interface HttpTestServerOptions {
  uri?: string | undefined;
  args?: string[];
  env?: Record<string, string>;
  /** Where its records are; a fresh folder of its own, removed after it, when none is named. */
  stateFolder?: string;
  /** For node itself, before the program. */
  nodeArgs?: string[];
}

/** Starts `mongo-leash serve --http` on a free port. */
export async function startHttpServer({ uri, args = [], env = {}, stateFolder, nodeArgs = [] }: HttpTestServerOptions = {}): Promise<HttpTestServer> {
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(MONGO_LEASH|MDB_MCP)_/.test(name)));
  const folder = stateFolder ?? mkdtempSync(join(tmpdir(), 'mongo-leash-state-'));
  const child = spawn(process.execPath, [...nodeArgs, programPath, 'serve', '--http', '--port', '0', ...args], {
    env: { ...inherited, MONGO_LEASH_STATE_FOLDER: folder, ...(uri === undefined ? {} : { MONGO_LEASH_URI: uri }), ...env },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const stderr: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => stderr.push(line));
  const exited = new Promise<number | null>((resolve) => { child.on('exit', (code) => { resolve(code); }); });
  if (stateFolder === undefined) void exited.then(() => { rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }); });
  const address = await eventually('it listens', () => {
    if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}: ${stderr.join('\n')}`);
    return stderr.map((line) => /"address":"([^"]+)"/.exec(line)?.[1]).find((found) => found !== undefined);
  }, 20_000);
  const url = new URL(address);
  return {
    url,
    at: (path) => new URL(path, url),
    process: child,
    stderr,
    exited,
    async stop() {
      const startedAt = performance.now();
      child.kill('SIGTERM');
      return { code: await exited, elapsedMs: performance.now() - startedAt };
    },
  };
}

export interface HttpClient {
  version: string | undefined;
  /** The id of the session, of the 2025 era only. */
  sessionId(): string | undefined;
  call(name: string, args?: Record<string, unknown>, options?: { signal?: AbortSignal }): Promise<any>;
  /** Any request; the answer as it came. */
  request(method: string, params?: Record<string, unknown>, options?: { signal?: AbortSignal }): Promise<any>;
  /** DELETE of the session. */
  endSession(): Promise<void>;
  close(): Promise<void>;
}

const info = { name: 'test', version: '1.0.0' };
/** Takes every answer as it is. */
const anything: any = { parse: (value: unknown) => value, safeParse: (data: unknown) => ({ success: true, data }), safeParseAsync: async (data: unknown) => ({ success: true, data }), parseAsync: async (data: unknown) => data };
const headersFor = (token: string | undefined) => (token === undefined ? {} : { requestInit: { headers: { Authorization: `Bearer ${token}` } } });

/** The 1.x client, of the 2025 era. */
export async function connectLegacy(url: URL, token?: string): Promise<HttpClient> {
  const client = new LegacyClient(info);
  const transport = new LegacyTransport(url, headersFor(token));
  await client.connect(transport);
  return {
    version: transport.protocolVersion,
    sessionId: () => transport.sessionId,
    call: async (name, args = {}, options) => (await client.callTool({ name, arguments: args }, undefined, { timeout: 120_000, ...options })).structuredContent,
    request: (method, params = {}, options) => client.request({ method, params }, anything, { timeout: 120_000, ...options }),
    endSession: () => transport.terminateSession(),
    close: () => client.close(),
  };
}

/** The 2.x client, of 2026-07-28, without the extension for Tasks. */
export async function connectModern(url: URL, token?: string): Promise<HttpClient> {
  const client = new ModernClient(info, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  await client.connect(new ModernTransport(url, headersFor(token)));
  return {
    version: client.getNegotiatedProtocolVersion(),
    sessionId: () => undefined,
    call: async (name, args = {}, options) => (await client.callTool({ name, arguments: args }, { timeout: 120_000, ...options })).structuredContent,
    request: (method, params = {}, options) => client.request({ method, params } as never, anything, { timeout: 120_000, ...options }),
    endSession: () => Promise.resolve(),
    close: () => client.close(),
  };
}

const tasksExtension = 'io.modelcontextprotocol/tasks';

/** A request of 2026-07-28 by hand: what its client would send, with the extension for Tasks unless told otherwise. */
export function modernRequest(id: string | number, method: string, params: Record<string, unknown> = {}, { tasks = true, token, name }: { tasks?: boolean; token?: string | undefined; name?: string } = {}): RequestInit {
  const named = name ?? params['name'] ?? params['taskId'] ?? params['uri'];
  return {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      'MCP-Protocol-Version': '2026-07-28',
      'Mcp-Method': method,
      ...(typeof named === 'string' ? { 'Mcp-Name': named } : {}),
      ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id,
      method,
      params: {
        ...params,
        _meta: {
          'io.modelcontextprotocol/protocolVersion': '2026-07-28',
          'io.modelcontextprotocol/clientInfo': info,
          'io.modelcontextprotocol/clientCapabilities': tasks ? { extensions: { [tasksExtension]: {} } } : {},
        },
      },
    }),
  };
}

/** Sends it and reads the JSON-RPC answer, whether it comes as JSON or as a stream. */
export async function ask(url: URL, init: RequestInit): Promise<any> {
  const response = await fetch(url, init);
  const text = await response.text();
  if (response.headers.get('content-type')?.includes('text/event-stream') !== true) return text === '' ? null : JSON.parse(text);
  const messages = text.split('\n').filter((line) => line.startsWith('data: ') && line.length > 6).map((line) => JSON.parse(line.slice(6)));
  return messages.find((message) => message.method === undefined);
}
