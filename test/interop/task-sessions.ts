/** Native Tasks by the requester of the Tasks extension's own package, on the SDK's 2.x client, in both of its protocol versions. */

import { Client, type JSONRPCMessage, StreamableHTTPClientTransport, type Transport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { type JsonRpcResponse, type RawClientDispatch, type TaskEnabledSession, createTaskSessionFromClient, toolDeclarationFromMcpTool } from '@modelcontextprotocol/ext-tasks/client';
import type { Target } from './clients.js';

export interface TaskClient {
  session: TaskEnabledSession;
  close(): Promise<void>;
}

const info = { name: 'interop', version: '1.0.0' };
const modern = '2026-07-28';

export async function connectTasks(target: Target, version: '2025-11-25' | '2026-07-28'): Promise<TaskClient> {
  const client = new Client(info, { versionNegotiation: { mode: version === modern ? { pin: modern } : 'legacy' } });
  const transport = 'url' in target ? new StreamableHTTPClientTransport(target.url) : new StdioClientTransport({ command: target.command[0], args: target.command.slice(1), env: target.env, stderr: 'ignore' });
  await client.connect(transport);
  const { tools } = await client.listTools();
  const declared = new Map(tools.map((tool) => [tool.name, toolDeclarationFromMcpTool(tool)]));
  const options = { endpointId: 'interop', tools: { currentTool: (name: string) => declared.get(name) } };
  const raw = { rawDispatch: dispatchOver(transport), v2RequestFraming: { protocolVersion: modern, clientInfo: info, clientCapabilities: {} } };
  const session = createTaskSessionFromClient(client, version === modern ? { ...options, ...raw } : options);
  return {
    session,
    async close() {
      await session.close();
      await client.close();
    },
  };
}

/** The SDK's client refuses an answer that is a task: the package wants such requests to be sent beside it. */
function dispatchOver(transport: Transport): RawClientDispatch {
  const waiting = new Map<unknown, (response: JsonRpcResponse) => void>();
  const onward = transport.onmessage;
  transport.onmessage = (message, extra) => {
    const waiter = 'id' in message ? waiting.get(message.id) : undefined;
    if (waiter === undefined) return onward?.(message, extra);
    if ('result' in message) waiter({ kind: 'result', result: message.result as never });
    else if ('error' in message) waiter({ kind: 'error', error: message.error as never });
  };
  let sent = 0;
  return async (request, options) => {
    const id = `task-${(sent += 1)}`;
    const answered = new Promise<JsonRpcResponse>((resolve) => { waiting.set(id, resolve); });
    await transport.send({ jsonrpc: '2.0', id, ...(request as object) } as JSONRPCMessage, { headers: { ...options?.context?.headers } });
    return await answered.finally(() => waiting.delete(id));
  };
}
