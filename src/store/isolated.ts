/** A store in a process of its own, asked with a time limit: whatever its disk does, this process goes on. */

import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Store } from '../core/ports.js';
import type { OperationRecord } from '../domain/operation.js';
import type { Method, Reply, Request } from './isolated-protocol.js';
import { type LocalStoreSettings, localStorePath } from './local-path.js';
import { StoreError } from './store-error.js';

export interface IsolatedSettings extends LocalStoreSettings {
  /** How long the start of the process with its opening of the store may take, and how long a call, in milliseconds. */
  openMs: number;
  callMs: number;
  /** The program of the process, where it is not the one beside this file. */
  program?: URL;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: StoreError): void;
}

interface Holder {
  process: ChildProcess;
  opened: Promise<unknown>;
  waiting: Map<number, Waiting>;
  unsent: Request[];
  /** Whether one of those waits no longer than for what is under way. */
  isUrgent: boolean;
}

/** How long what nobody waits for may wait for more of its kind, in milliseconds: a message and a commit cost as much as a small query. */
const gatherMs = 20;

/** Each call rejects with a {@link StoreError}; after one of kind `gone` the next call starts a new process. */
export function createIsolatedStore(settings: IsolatedSettings): Omit<Store, 'problem'> {
  const { openMs, callMs, program = new URL('./isolated-process.js', import.meta.url), ...local } = settings;
  const path = localStorePath(local.folder);
  let holder: Holder | null = null;
  let lastId = 0;

  function start(): Holder {
    // The connection string is none of its business.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(MONGO_LEASH|MDB_MCP)_/.test(name)));
    const child = fork(fileURLToPath(program), [], { serialization: 'advanced', stdio: ['ignore', 'ignore', 'ignore', 'ipc'], execArgv: [], env });
    const started: Holder = { process: child, waiting: new Map(), unsent: [], isUrgent: false, opened: Promise.resolve() };
    child.on('message', (replies: Reply[]) => {
      for (const reply of replies) take(started, reply);
      if (started.isUrgent && isIdle(started)) send(started);
    });
    child.on('error', (error) => { giveUp(started, `the process that holds it could not be started: ${error.message}`); });
    child.on('exit', (code, signal) => { giveUp(started, whyEnded(code, signal)); });
    // It must not keep this process alive; a call that is waited for does.
    child.unref();
    child.channel?.unref();
    started.opened = ask(started, (id) => ({ id, open: local }), openMs);
    // Whoever asks hears of it; without anybody it is nobody's error.
    started.opened.catch(() => undefined);
    return started;
  }

  function ask(from: Holder, request: (id: number) => Request, withinMs: number, isUrgent = true): Promise<unknown> {
    const id = (lastId += 1);
    from.process.channel?.ref();
    return new Promise<unknown>((resolve, reject) => {
      const timer = setTimeout(() => {
        giveUp(from, `the process that holds it did not answer within ${withinMs} ms: the disk does not answer, or another process that was stopped holds its lock`);
      }, withinMs);
      from.waiting.set(id, {
        resolve(value) { clearTimeout(timer); resolve(value); },
        reject(error) { clearTimeout(timer); reject(error); },
      });
      from.unsent.push(request(id));
      if (isUrgent && !from.isUrgent) process.nextTick(sendWhenIdle, from);
      else if (from.unsent.length === 1) setTimeout(sendWhenIdle, gatherMs, from);
      from.isUrgent ||= isUrgent;
      const { exitCode, signalCode } = from.process;
      if (exitCode !== null || signalCode !== null) giveUp(from, whyEnded(exitCode, signalCode));
    }).finally(() => {
      if (from.waiting.size === 0) from.process.channel?.unref();
    });
  }

  /** Whether all that was sent is answered. */
  function isIdle({ waiting, unsent }: Holder): boolean {
    return waiting.size === unsent.length;
  }

  function sendWhenIdle(to: Holder): void {
    if (to.unsent.length === 0) return;
    if (isIdle(to)) send(to);
    else to.isUrgent = true;
  }

  /** All that came up while it was busy is one message, and one commit. */
  function send(to: Holder): void {
    // What cannot be sent any more is answered by the end of the process, which says why.
    to.process.send(to.unsent, () => undefined);
    to.unsent = [];
    to.isUrgent = false;
  }

  function take(from: Holder, reply: Reply): void {
    const waiting = from.waiting.get(reply.id);
    from.waiting.delete(reply.id);
    if ('value' in reply) waiting?.resolve(reply.value);
    else waiting?.reject(new StoreError(reply.error.kind, reply.error.kind === 'refused' ? reply.error.message : `${path} cannot be used: ${reply.error.message}`));
  }

  function giveUp(lost: Holder, why: string): void {
    if (holder === lost) holder = null;
    const error = new StoreError('gone', `${path} cannot be used: ${why}`);
    for (const waiting of lost.waiting.values()) waiting.reject(error);
    lost.waiting.clear();
    lost.process.kill('SIGKILL');
  }

  const call = (method: Method, ...args: unknown[]) => callWith(method, args, true);

  async function callWith(method: Method, args: unknown[], isUrgent: boolean): Promise<unknown> {
    const current = (holder ??= start());
    await current.opened.catch((error: unknown) => {
      if (holder === current) holder = null;
      current.process.kill('SIGKILL');
      throw error;
    });
    return await ask(current, (id) => ({ id, method, args }), callMs, isUrgent);
  }

  return {
    put: async (record) => { await callWith('put', [record], !canWait(record)); },
    get: (operationId) => call('get', operationId) as ReturnType<Store['get']>,
    expired: (operationId) => call('expired', operationId) as ReturnType<Store['expired']>,
    list: (principal) => call('list', principal) as ReturnType<Store['list']>,
    unended: () => call('unended') as ReturnType<Store['unended']>,
    putDocuments: async (operationId, documents) => { await callWith('putDocuments', [operationId, [Buffer.concat(documents)]], false); },
    getDocuments: (operationId) => call('getDocuments', operationId) as ReturnType<Store['getDocuments']>,
    putInstance: async (instance) => { await call('putInstance', instance); },
    instances: () => call('instances') as ReturnType<Store['instances']>,
    async close() {
      const current = holder;
      holder = null;
      if (current === null) return;
      await ask(current, (id) => ({ id, method: 'close', args: [] }), callMs).catch(() => undefined);
      if (current.process.connected) current.process.disconnect();
    },
  };
}

/** A read that has ended well has been answered already: its record is for later. */
function canWait({ outcome, writes, kill }: OperationRecord): boolean {
  return outcome === 'succeeded' && writes === null && kill === null;
}

/** Signals of a process that read where its file has nothing: SIGBUS at once, the others from what it found there. */
const damageSignals: ReadonlySet<unknown> = new Set(['SIGBUS', 'SIGSEGV', 'SIGABRT']);

function whyEnded(code: number | null, signal: NodeJS.Signals | null): string {
  if (damageSignals.has(signal)) return `the process that holds it was ended by ${String(signal)} while it used the file, so the file is damaged or cut off, or its disk is full or fails. Free the disk; if that is not it, move the file away, and a new one is made`;
  return `the process that holds it ended (${signal ?? `exit code ${String(code)}`})`;
}
