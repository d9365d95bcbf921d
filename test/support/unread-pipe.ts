/** A real pipe for a child process to write into, whose reader reads when it is told to, or never: Node's own child pipes are sockets that are read ahead. */

import { execFileSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface UnreadPipe {
  /** For `stdio` of the child. */
  writeEnd: number;
  /** Closes the parent's copy of the writing end: after the child was started. */
  handedOver(): void;
  /** Reads what is there, at most so many bytes; an empty text when nothing is there. */
  read(maxBytes: number): string;
  /** The reader goes away. */
  close(): void;
}

export function openUnreadPipe(): UnreadPipe {
  const folder = mkdtempSync(join(tmpdir(), 'mongo-leash-pipe-'));
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeEnd = openSync(path, 'w');
  rmSync(folder, { recursive: true });
  let open = true;
  return {
    writeEnd,
    handedOver: () => { closeSync(writeEnd); },
    read(maxBytes) {
      const buffer = Buffer.alloc(maxBytes);
      try {
        return buffer.toString('utf8', 0, readSync(readEnd, buffer));
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return '';
        throw error;
      }
    },
    close() {
      if (open) closeSync(readEnd);
      open = false;
    },
  };
}
