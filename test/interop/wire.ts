/** What a client really sends, written down on its way to the server: over stdio by a process in between, over HTTP by a forwarder. */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { type IncomingMessage, type ServerResponse, createServer, request as forward } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { programPath } from '../support/server.js';

/** One thing that a client did: a JSON-RPC message, an HTTP method without one, or the end of a stream or of stdin. */
export interface Sent {
  /** `tools/call`, `notifications/cancelled`, `DELETE`, `GET`, `end` (of stdin), `SIGINT`, `cut POST` (a request whose answer the client did not wait for) … */
  what: string;
  /** Of a JSON-RPC message; of `cut POST` the request's. */
  message?: any;
}

export interface Wire {
  sent(): Sent[];
  /** How often the client did this. */
  count(what: string): number;
}

export interface StdioWire extends Wire {
  /** The command line that a client starts in place of the server's. */
  command: [string, ...string[]];
  dispose(): void;
}

export interface HttpWire extends Wire {
  /** The MCP endpoint that a client is given in place of the server's. */
  url: URL;
  close(): Promise<void>;
}

const tapPath = fileURLToPath(new URL('stdio-tap.mjs', import.meta.url));

const counted = (sent: () => Sent[]): Wire => ({ sent, count: (what) => sent().filter((each) => each.what === what).length });

export function tapStdio(args: string[] = []): StdioWire {
  const folder = mkdtempSync(join(tmpdir(), 'mongo-leash-tap-'));
  const record = join(folder, 'lines.jsonl');
  const sent = () => {
    if (!existsSync(record)) return [];
    // What stands behind the last line's end is being written just now.
    const lines = readFileSync(record, 'utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line) as { from: string; event?: string; message?: any });
    return lines.filter(({ from }) => from === 'client').map(({ event, message }) => ({ what: event ?? message.method ?? 'answer', ...(message === undefined ? {} : { message }) }));
  };
  return { ...counted(sent), command: [process.execPath, tapPath, record, process.execPath, programPath, ...args], dispose: () => { rmSync(folder, { recursive: true, force: true }); } };
}

export async function tapHttp(target: URL): Promise<HttpWire> {
  const all: Sent[] = [];

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const messages = body.length === 0 ? [] : [JSON.parse(body.toString('utf8'))].flat();
    for (const message of messages) all.push({ what: message.method ?? 'answer', message });
    if (messages.length === 0) all.push({ what: String(incoming.method) });
    let answered = false;
    const onward = forward(new URL(incoming.url ?? '/', target), { method: incoming.method, headers: { ...incoming.headers, host: target.host }, agent: false }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders();
      let text = '';
      answer.on('data', (chunk: Buffer) => {
        text += chunk.toString('latin1');
        answered ||= messages.some(({ id }) => id !== undefined && answers(text, id));
      });
      answer.pipe(outgoing);
      answer.on('error', () => outgoing.destroy());
    });
    onward.on('error', () => outgoing.destroy());
    outgoing.on('close', () => {
      // Some close a stream as soon as they have read the answer in it, and do not wait for its end.
      if (outgoing.writableFinished || answered) return;
      all.push({ what: `cut ${incoming.method}`, ...(messages.length === 0 ? {} : { message: messages[0] }) });
      onward.destroy();
    });
    onward.end(body);
  }

  const server = createServer((incoming, outgoing) => { pass(incoming, outgoing).catch(() => outgoing.destroy()); });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    ...counted(() => [...all]),
    url: new URL(target.pathname, `http://127.0.0.1:${(server.address() as AddressInfo).port}`),
    async close() {
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** Whether the stream so far has the whole line that answers this request. */
function answers(text: string, id: string | number): boolean {
  return text.split('\n').slice(0, -1).some((line) => {
    if (!line.startsWith('data: {')) return false;
    const message = JSON.parse(line.slice('data: '.length)) as { id?: unknown; method?: unknown };
    return message.id === id && message.method === undefined;
  });
}
