/** One direction of a proxied connection: bytes in the order they came, late, held back or lost on demand. */

import type { Socket } from 'node:net';

export interface Lane {
  /** Keeps everything that comes from now on back, until it is released. */
  hold(): void;
  /** Lets what was held go, in order, and holds nothing more. */
  release(): void;
  /** Everything that comes from now on arrives that much later. */
  delay(ms: number): void;
  /** Loses everything that comes from now on, and what is still held: neither side learns of it. */
  swallow(): void;
  /** Bytes that came and have not gone on. */
  readonly waitingBytes: number;
}

export interface LaneInput {
  bytes(chunk: Buffer): void;
  /** The sender's end of the connection, passed on in its turn. */
  end(): void;
}

/** @param target where the bytes go on to */
export function createLane(target: Socket): Lane & LaneInput {
  let queue: { chunk: Buffer | 'end'; at: number }[] = [];
  let held = false;
  let swallowing = false;
  let delayMs = 0;
  let timer: NodeJS.Timeout | undefined;

  function pump(): void {
    clearTimeout(timer);
    while (!held) {
      const head = queue[0];
      if (head === undefined) return;
      const wait = head.at - performance.now();
      if (wait > 0) {
        timer = setTimeout(pump, Math.ceil(wait));
        return;
      }
      queue.shift();
      if (target.destroyed) continue;
      if (head.chunk === 'end') target.end();
      else target.write(head.chunk);
    }
  }

  function put(chunk: Buffer | 'end'): void {
    if (swallowing) return;
    queue.push({ chunk, at: performance.now() + delayMs });
    pump();
  }

  return {
    bytes: put,
    end: () => { put('end'); },
    hold() {
      held = true;
    },
    release() {
      held = false;
      pump();
    },
    delay(ms) {
      delayMs = ms;
    },
    swallow() {
      swallowing = true;
      queue = [];
      clearTimeout(timer);
    },
    get waitingBytes() {
      return queue.reduce((sum, { chunk }) => sum + (chunk === 'end' ? 0 : chunk.byteLength), 0);
    },
  };
}
