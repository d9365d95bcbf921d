/** Which requests of a 2025-era session wait for their answer: a stream whose requests are all cancelled is ended, since nobody will. */

import type { JSONRPCMessage, RequestId } from '@modelcontextprotocol/server';

/** What of a session's transport is needed here. */
export interface StreamEnd {
  closeSSEStream(requestId: RequestId): void;
  send(message: JSONRPCMessage): Promise<void>;
}

export interface OpenCalls {
  /** The requests of one POST, which share a stream. */
  began(ids: readonly RequestId[]): void;
  /** A message goes out; false when it must not be kept for a resumption. */
  sent(message: JSONRPCMessage): boolean;
  cancelled(id: RequestId, stream: StreamEnd): Promise<void>;
}

interface Call {
  /** Those of its POST that wait still. */
  waiting: Set<RequestId>;
  /** Those of its POST that were cancelled. */
  cancelled: RequestId[];
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

  return {
    began(ids) {
      const call: Call = { waiting: new Set(ids), cancelled: [] };
      for (const id of ids) calls.set(id, call);
    },
    sent(message) {
      if ('method' in message || message.id === undefined) return true;
      if (settling.has(message.id)) return false;
      settle(message.id);
      return true;
    },
    async cancelled(id, stream) {
      const call = settle(id);
      if (call === undefined) return;
      call.cancelled.push(id);
      if (call.waiting.size > 0) return;
      stream.closeSSEStream(id);
      // The stream is gone, so this reaches nobody: it makes the transport forget the ids (measured: it keeps them for ever).
      for (const gone of call.cancelled) {
        settling.add(gone);
        await stream.send({ jsonrpc: '2.0', id: gone, result: {} }).catch(() => undefined);
        settling.delete(gone);
      }
    },
  };
}
