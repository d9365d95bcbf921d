/** Python's fastmcp: its client in a process of its own, which takes orders by lines. */

import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Connect, InteropClient } from './clients.js';

const driverPath = fileURLToPath(new URL('fastmcp-driver.py', import.meta.url));

/** @param python an interpreter that can import fastmcp */
export const connectFastmcp = (python: string, mode: string): Connect => async (target) => {
  const child = spawn(python, [driverPath], { stdio: ['pipe', 'pipe', 'pipe'] });
  const stderr: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => stderr.push(line));
  child.stdin.on('error', () => undefined);
  const waiting = new Map<unknown, { resolve(value: any): void; reject(error: Error): void }>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { order, value, error } = JSON.parse(line) as { order: unknown; value?: unknown; error?: string };
    const waiter = waiting.get(order);
    if (error === undefined) waiter?.resolve(value);
    else waiter?.reject(new Error(error));
    waiting.delete(order);
  });
  const exited = new Promise<void>((resolve) => {
    child.on('close', (code) => {
      for (const { reject } of waiting.values()) reject(new Error(`the driver of fastmcp ended with ${code}: ${stderr.join('\n')}`));
      waiting.clear();
      resolve();
    });
  });
  let orders = 0;
  const send = (order: number, what: string, more: object) => { child.stdin.write(`${JSON.stringify({ order, what, ...more })}\n`); };
  const ask = (what: string, more: object = {}, { signal }: { signal?: AbortSignal | undefined } = {}) => {
    const order = (orders += 1);
    const answered = new Promise<any>((resolve, reject) => { waiting.set(order, { resolve, reject }); });
    send(order, what, more);
    // The task of asyncio that awaits the call is cancelled.
    signal?.addEventListener('abort', () => { send((orders += 1), 'cancel', { call: order }); }, { once: true });
    return answered;
  };
  await ask('open', { mode, target: 'url' in target ? { url: target.url.href } : target });
  const client: InteropClient = {
    version: () => ask('version'),
    tools: () => ask('tools'),
    call: (name, args = {}, { signal, timeoutMs = 60_000 } = {}) => ask('call', { name, args, timeoutSeconds: timeoutMs / 1_000 }, { signal }),
    async close() {
      send(0, 'close', {});
      child.stdin.end();
      await exited;
    },
  };
  return client;
};
