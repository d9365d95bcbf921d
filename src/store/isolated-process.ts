/**
 * The process that holds the store. LMDB reads its file through mapped memory: a file that a crash cut off ends the
 * process that reads it (SIGBUS), and a disk that hangs stops its only thread. That must never be the one that kills.
 */

import { messageOf } from '../domain/errors.js';
import type { Store } from '../core/ports.js';
import type { Reply, Request } from './isolated-protocol.js';
import type { LocalStoreSettings } from './local-path.js';
import { StoreError } from './store-error.js';

/** How long the last writes may take after the program has gone, in milliseconds. */
const lastWritesMs = 5_000;

process.umask(0o077);
// A signal to the whole group is the program's to act on: its last records come after it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);

let store: Store | null = null;
let last: Promise<unknown> = Promise.resolve();

process.on('message', (requests: Request[]) => {
  // One after the other up to the commit's queue: a later record never overtakes an earlier one.
  const replies = requests.map(answer);
  last = Promise.all([last, ...replies]);
  for (const reply of replies) void reply.then(tell);
});

let untold: Reply[] = [];

function tell(reply: Reply): void {
  if (untold.push(reply) > 1) return;
  process.nextTick(() => {
    process.send?.(untold, undefined, undefined, () => undefined);
    untold = [];
  });
}

process.on('disconnect', () => {
  setTimeout(() => { process.kill(process.pid, 'SIGKILL'); }, lastWritesMs).unref();
  void last.then(() => store?.close()).finally(() => { process.exit(); });
});

async function answer(request: Request): Promise<Reply> {
  const { id } = request;
  try {
    return { id, value: 'open' in request ? await openStore(request.open) : await call(request.method, request.args) };
  } catch (error) {
    const kind = error instanceof StoreError ? error.kind : store === null ? 'gone' : 'failed';
    return { id, error: { kind, message: messageOf(error) } };
  }
}

let opening: Promise<void> | null = null;

function openStore(settings: LocalStoreSettings): Promise<void> {
  opening = import('./local.js').then(({ openLocalStore }) => {
    store = openLocalStore(settings);
  });
  return opening;
}

async function call(method: Exclude<keyof Store, 'problem'>, args: unknown[]): Promise<unknown> {
  await opening;
  if (store === null) throw new Error('the store is not open');
  return await (store[method] as (...args: unknown[]) => Promise<unknown>)(...args);
}
