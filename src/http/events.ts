/** What was sent on the streams of 2025-era sessions, kept for a while: a client that lost a stream gets the rest by Last-Event-ID. */

import type { EventStore, JSONRPCMessage } from '@modelcontextprotocol/server';

/** Events of one session, and bytes of all sessions together: the oldest go first. */
const maxEventsOfSession = 256;
const maxBytes = 67_108_864;

interface Event {
  owner: SessionEvents;
  streamId: string;
  message: JSONRPCMessage;
  bytes: number;
}

export interface SessionEvents extends EventStore {
  /** undefined when nothing is kept under this id in this session. */
  getStreamIdForEventId(eventId: string): Promise<string | undefined>;
  /** Forgets everything; nothing can be resumed any more. */
  clear(): void;
}

export interface EventLog {
  /** @param onMessage told of each message as it goes out; false: it is not to be kept, and its stream has ended */
  forSession(onMessage: (message: JSONRPCMessage) => boolean): SessionEvents;
}

export function createEventLog(limits: { maxEventsOfSession: number; maxBytes: number } = { maxEventsOfSession, maxBytes }): EventLog {
  /** In the order of their ids. */
  const events = new Map<string, Event>();
  let bytes = 0;
  let count = 0;

  function drop(eventId: string): void {
    bytes -= events.get(eventId)?.bytes ?? 0;
    events.delete(eventId);
  }

  function dropOldest(): void {
    for (const eventId of events.keys()) {
      if (bytes <= limits.maxBytes) return;
      drop(eventId);
    }
  }

  return {
    forSession(onMessage) {
      let own: string[] = [];
      const owned = (eventId: string) => {
        const event = events.get(eventId);
        return event?.owner === session ? event : undefined;
      };
      /** Nobody waits for the rest of a stream whose calls were all cancelled: a client that comes for it would come again and again. */
      const forgetUnanswered = (streamId: string) => {
        const ofStream = own.filter((eventId) => events.get(eventId)?.streamId === streamId);
        if (ofStream.some((eventId) => isAnswer(events.get(eventId)?.message))) return;
        for (const eventId of ofStream) drop(eventId);
        own = own.filter((eventId) => events.has(eventId));
      };
      const session: SessionEvents = {
        storeEvent(streamId, message) {
          count += 1;
          const eventId = `${streamId}_${count}`;
          if (isMessage(message) && !onMessage(message)) {
            forgetUnanswered(streamId);
            return Promise.resolve(eventId);
          }
          const size = JSON.stringify(message).length;
          events.set(eventId, { owner: session, streamId, message, bytes: size });
          bytes += size;
          own.push(eventId);
          for (const oldest of own.splice(0, own.length - limits.maxEventsOfSession)) drop(oldest);
          dropOldest();
          return Promise.resolve(eventId);
        },
        getStreamIdForEventId: (eventId) => Promise.resolve(owned(eventId)?.streamId),
        async replayEventsAfter(lastEventId, { send }) {
          const streamId = owned(lastEventId)?.streamId;
          if (streamId === undefined) throw new Error('this event is not kept any more');
          for (const eventId of own.slice(own.indexOf(lastEventId) + 1)) {
            const event = events.get(eventId);
            // The event that opens a stream holds no message.
            if (event?.streamId === streamId && isMessage(event.message)) await send(eventId, event.message);
          }
          return streamId;
        },
        clear() {
          for (const eventId of own) drop(eventId);
          own = [];
        },
      };
      return session;
    },
  };
}

function isMessage(message: object): boolean {
  return 'jsonrpc' in message;
}

function isAnswer(message: object | undefined): boolean {
  return message !== undefined && isMessage(message) && !('method' in message);
}
