/** HTTP as it goes over a socket of its own: event streams that are read as they come, and cut when a test wants it. */

import { Agent, type IncomingMessage, request } from 'node:http';

export interface StreamEvent {
  id: string | undefined;
  /** The JSON-RPC message; undefined in an event that only opens a stream. */
  message: any;
}

export interface RawStream {
  /** Settles when the headers have come; rejects when the connection breaks before. */
  response: Promise<{ status: number; headers: IncomingMessage['headers'] }>;
  /** What has come so far. */
  events: StreamEvent[];
  /** The bytes so far, of answers that are no streams. */
  text(): string;
  /** `ended`: the server has ended its answer; `cut`: the connection broke, or was cut here. */
  over: Promise<'ended' | 'cut'>;
  /** The answer to this request; rejects when the stream is over without one. */
  answer(id: string | number): Promise<any>;
  /** Whether an answer to this request has come. */
  has(id: string | number): boolean;
  /** The id of its first event; rejects when the stream is over without one. */
  firstEventId(): Promise<string>;
  /** Destroys the socket. */
  cut(): void;
}

/** Sends a request on a new connection. */
export function openStream(url: URL, { method, headers, body }: RequestInit): RawStream {
  const events: StreamEvent[] = [];
  let text = '';
  let parsed = 0;
  let changed: () => void = () => undefined;
  let change = new Promise<void>((resolve) => { changed = resolve; });
  let isOver = false;

  function read(): void {
    for (let end = text.indexOf('\n\n', parsed); end !== -1; end = text.indexOf('\n\n', parsed)) {
      const lines = text.slice(parsed, end).split('\n');
      parsed = end + 2;
      const id = lines.find((line) => line.startsWith('id: '))?.slice(4);
      const data = lines.find((line) => line.startsWith('data: '))?.slice(6);
      if (data !== undefined) events.push({ id, message: data === '' ? undefined : JSON.parse(data) });
    }
  }

  function tell(): void {
    changed();
    change = new Promise<void>((resolve) => { changed = resolve; });
  }

  async function until<T>(what: string, find: () => T | undefined): Promise<T> {
    for (;;) {
      const found = find();
      if (found !== undefined) return found;
      if (isOver) throw new Error(`the stream is over without ${what}: ${text}`);
      await change;
    }
  }

  // The connection is kept by whoever serves, as with most clients.
  const agent = new Agent({ keepAlive: true });
  const outgoing = request(url, { method: method ?? 'GET', headers: headers as Record<string, string>, agent });
  let end: (how: 'ended' | 'cut') => void = () => undefined;
  const over = new Promise<'ended' | 'cut'>((resolve) => {
    end = (how) => {
      isOver = true;
      agent.destroy();
      resolve(how);
      tell();
    };
  });
  const response = new Promise<{ status: number; headers: IncomingMessage['headers'] }>((resolve, reject) => {
    outgoing.on('error', (error) => {
      reject(error);
      end('cut');
    });
    outgoing.on('response', (incoming) => {
      resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers });
      incoming.setEncoding('utf8');
      incoming.on('data', (chunk: string) => {
        text += chunk;
        if (incoming.headers['content-type']?.includes('text/event-stream') === true) read();
        tell();
      });
      incoming.on('error', () => undefined);
      incoming.on('close', () => { end(incoming.complete ? 'ended' : 'cut'); });
    });
  });
  response.catch(() => undefined);
  outgoing.end(typeof body === 'string' ? body : undefined);

  const answerTo = (id: string | number) => events.find(({ message }) => message !== undefined && message.id === id && message.method === undefined)?.message;
  return {
    response,
    events,
    text: () => text,
    over,
    answer: (id) => until(`an answer to ${id}`, () => answerTo(id)),
    has: (id) => answerTo(id) !== undefined,
    firstEventId: () => until('an event id', () => events[0]?.id),
    cut: () => { outgoing.destroy(); },
  };
}
