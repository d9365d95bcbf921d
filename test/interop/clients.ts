/** Clients that others wrote, each behind the same few functions, connected over stdio or HTTP. */

import { Client as ModernClient, StreamableHTTPClientTransport as ModernHttpTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport as ModernStdioTransport } from '@modelcontextprotocol/client/stdio';
import { Client as LegacyClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as LegacyStdioTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as LegacyHttpTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { Transport as LegacyTransport } from '@modelcontextprotocol/sdk/shared/transport.js';

/** What a client is told to connect to. */
export type Target = { command: [string, ...string[]]; env: Record<string, string> } | { url: URL };

export interface CallOptions {
  signal?: AbortSignal;
  /** The client's own time limit for the call, in milliseconds. */
  timeoutMs?: number;
}

export interface InteropClient {
  /** The protocol version that was agreed on. */
  version(): Promise<string | undefined>;
  /** The names of the tools. */
  tools(): Promise<string[]>;
  /** The structured answer. Rejects when it was cancelled or timed out by the client. */
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<any>;
  close(): Promise<void>;
}

export type Connect = (target: Target) => Promise<InteropClient>;

const info = { name: 'interop', version: '1.0.0' };
const patientMs = 60_000;

const stdioOf = ({ command: [command, ...args], env }: Extract<Target, { command: unknown }>) => ({ command, args, env, stderr: 'ignore' as const });

/** `@modelcontextprotocol/sdk` 1.x. */
export const connectSdk1: Connect = async (target) => {
  const client = new LegacyClient(info);
  const transport: LegacyTransport = 'url' in target ? (new LegacyHttpTransport(target.url)) : new LegacyStdioTransport(stdioOf(target));
  let version: string | undefined;
  const setProtocolVersion = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (negotiated) => {
    version = negotiated;
    setProtocolVersion?.(negotiated);
  };
  await client.connect(transport);
  return {
    version: async () => version,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}, { signal, timeoutMs = patientMs } = {}) =>
      (await client.callTool({ name, arguments: args }, undefined, { timeout: timeoutMs, ...(signal === undefined ? {} : { signal }) })).structuredContent,
    close: () => client.close(),
  };
};

/** `@modelcontextprotocol/client` 2.x. */
export const connectSdk2 = (mode: 'legacy' | 'auto' | { pin: string }): Connect => async (target) => {
  const client = new ModernClient(info, { versionNegotiation: { mode } });
  await client.connect('url' in target ? new ModernHttpTransport(target.url) : new ModernStdioTransport(stdioOf(target)));
  return {
    version: async () => client.getNegotiatedProtocolVersion(),
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}, { signal, timeoutMs = patientMs } = {}) =>
      (await client.callTool({ name, arguments: args }, { timeout: timeoutMs, ...(signal === undefined ? {} : { signal }) })).structuredContent,
    close: () => client.close(),
  };
};
