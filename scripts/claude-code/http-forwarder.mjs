/** Stands between Claude Code and a server over HTTP, passes everything on, closed streams too, and keeps what passed and when. */
import { Buffer } from 'node:buffer';
import { Agent, createServer, request as httpRequest } from 'node:http';
import { now } from './clock.mjs';

/**
 * @param {number} port of the server, on 127.0.0.1
 * @returns {Promise<{ port: number, entries: object[], close(): Promise<void> }>} `entries` as the tee of stdio writes them
 */
export async function startForwarder(port) {
  const entries = [];
  const note = (entry) => { entries.push({ at: now(), ...entry }); };
  // A connection each: one that the server has closed meanwhile is never used again.
  const agent = new Agent({ keepAlive: false });
  const server = createServer((fromClient, toClient) => {
    const { method, url, headers } = fromClient;
    const onward = httpRequest({ host: '127.0.0.1', port, method, path: url, headers, agent });
    let name = `${method} ${url}`;
    let closed = false;
    const chunks = [];
    fromClient.on('data', (chunk) => {
      chunks.push(chunk);
      onward.write(chunk);
    });
    fromClient.on('end', () => {
      onward.end();
      const message = jsonOf(Buffer.concat(chunks).toString('utf8'));
      name = message?.id === undefined ? (message?.method ?? name) : `${message.method ?? 'answer'} ${message.id}`;
      note({ way: 'to server', http: `${method} ${url}`, headers: mcpHeaders(headers), message });
    });
    toClient.on('close', () => {
      if (closed) return;
      closed = true;
      note({ event: `client closed the stream of ${name}` });
      onward.destroy();
    });
    onward.on('response', (answer) => {
      toClient.writeHead(answer.statusCode, answer.headers);
      toClient.flushHeaders();
      const isStream = String(answer.headers['content-type']).startsWith('text/event-stream');
      let rest = '';
      const keep = (text) => { note({ way: 'to client', status: answer.statusCode, message: jsonOf(text) }); };
      answer.on('data', (chunk) => {
        toClient.write(chunk);
        rest += chunk.toString('utf8');
        if (!isStream) return;
        const events = rest.split(/\r?\n\r?\n/);
        rest = events.pop();
        for (const event of events) for (const [, data] of event.matchAll(/^data: ?(.+)$/gm)) keep(data);
      });
      answer.on('end', () => {
        if (!isStream) keep(rest);
        closed = true;
        toClient.end();
      });
      answer.on('error', () => toClient.destroy());
    });
    onward.on('error', (error) => {
      if (closed) return;
      closed = true;
      note({ event: `server closed the stream of ${name}: ${error.code ?? error.message}` });
      toClient.destroy();
    });
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return {
    port: server.address().port,
    entries,
    async close() {
      server.closeAllConnections();
      agent.destroy();
      await new Promise((resolve) => { server.close(resolve); });
    },
  };
}

const mcpHeaders = (headers) => Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith('mcp-') || name === 'last-event-id'));

function jsonOf(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
