/** Which requests of a 2025-era session wait for their answer: a stream whose requests are all cancelled is ended, since nobody will. */

import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/server';

/** What of a session's transport is needed here. */
export interface StreamEnd {
  closeSSEStream(requestId: RequestId): void;
  send(message: JSONRPCMessage): Promise<void>;
}

export interface OpenCalls {
  /** The requests of one POST, which share a stream. @returns to be called when the POST was refused */
  began(ids: readonly RequestId[]): () => void;
  /** A message goes out; false when it is the end of a cancelled call for the transport's bookkeeping only. */
  sent(message: JSONRPCMessage): boolean;
  cancelled(id: RequestId, stream: StreamEnd): Promise<void>;
}

interface Call {
  /** Those of its POST that wait still. */
  waiting: Set<RequestId>;
  /** Those of its POST that were cancelled, and where to end their stream. */
  cancelled: RequestId[];
  stream: StreamEnd | null;
}

export function createOpenCalls(): OpenCalls {
  const calls = new Map<RequestId, Call>();
  /** Ids whose answer of the transport's own bookkeeping is on its way. */
  const settling = new Set<RequestId>();

  function settle(id: RequestId): Call | undefined {
    const call = calls.get(id);
    calls.delete(id);
    call?.waiting.delete(id);
    return call;
  }

  /** Ends the stream when nobody of its POST waits any more and someone was cancelled: the transport waits for all answers. */
  async function endStream({ waiting, cancelled, stream }: Call): Promise<void> {
    const [first] = cancelled;
    if (waiting.size > 0 || first === undefined || stream === null) return;
    stream.closeSSEStream(first);
    // The stream is gone, so this reaches nobody: it makes the transport forget the ids (measured: it keeps them for ever).
    for (const id of cancelled) {
      settling.add(id);
      await stream.send({ jsonrpc: '2.0', id, result: {} }).catch(() => undefined);
      settling.delete(id);
    }
  }

  return {
    began(ids) {
      const call: Call = { waiting: new Set(ids), cancelled: [], stream: null };
      const before = ids.map((id) => [id, calls.get(id)] as const);
      for (const id of ids) calls.set(id, call);
      return () => {
        for (const [id, open] of before) {
          if (open === undefined) calls.delete(id);
          else calls.set(id, open);
        }
      };
    },
    sent(message) {
      if ('method' in message || message.id === undefined) return true;
      if (settling.has(message.id)) return false;
      const call = settle(message.id);
      // The transport writes it as soon as it is stored, which is within this turn of the event loop.
      if (call !== undefined && call.stream !== null) setImmediate(() => void endStream(call));
      return true;
    },
    async cancelled(id, stream) {
      const call = settle(id);
      if (call === undefined) return;
      call.cancelled.push(id);
      call.stream = stream;
      await endStream(call);
    },
  };
}
