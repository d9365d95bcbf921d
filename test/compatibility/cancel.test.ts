/** A cancel in the middle of every call that can be slow: ours is proven to be gone within two seconds, and what the stock server's does is measured. */

import { setTimeout as delay } from 'node:timers/promises';
import type { Document } from 'mongodb';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/mongo.js';
import type { TestServer } from '../support/server.js';
import { type Ground, installed, startGround, whetherSkipped } from './ground.js';
import { checkPart, measuredOn, shownNumber, table } from './page.js';
import { type SlowCall, kill, loadSlow, ofOurs, ofStock, slowCalls } from './slow.js';

/** A call is in the middle of its work when the database has shown it for so long, in milliseconds. */
const middleMs = 250;
const oursWithinMs = 2_000;
/** How long the stock server's is watched, in milliseconds. */
const watchMs = 2_500;

describe.skipIf(installed.unavailable !== undefined)(`a cancel in the middle of a call${whetherSkipped}`, () => {
  let ground: Ground;
  const verdicts = new Map<string, { stock: string; ours: string }>();
  const told = (title: string) => verdicts.get(title) ?? verdicts.set(title, { stock: 'has no such call', ours: '' }).get(title)!;

  beforeAll(async () => { ground = await startGround(({ client }) => loadSlow(client)); });
  afterAll(() => ground.stop());

  /** Whatever a test leaves is killed by the witness. */
  afterEach(async () => {
    const { client } = ground.mongo;
    await eventually('nothing is left', async () => {
      const rows = [...(await ofStock(client)), ...(await ofOurs(client))];
      await kill(client, rows);
      return rows.length === 0;
    }, 20_000);
  });

  /** @returns how long after its cancel the database showed it last, in milliseconds; null when it still does at the end of the time */
  async function cancelInTheMiddle(server: TestServer, { tool, args }: SlowCall, rows: () => Promise<Document[]>, withinMs: number): Promise<{ requestId: string | number; goneMs: number | null }> {
    // The client gives up when the server ends; an answer is not what this is about.
    server.callRaw(tool, { connectionId: 'preconfigured', ...args }).catch(() => undefined);
    const requestId = server.lastRequestId();
    let since: number | null = null;
    await eventually('the database shows it in the middle of its work', async () => {
      if ((await rows()).length === 0) return false;
      since ??= performance.now();
      return performance.now() - since > middleMs;
    });
    const cancelledAt = performance.now();
    await server.client.notification({ method: 'notifications/cancelled', params: { requestId, reason: 'the user stopped it' } });
    for (;;) {
      const left = await rows();
      const elapsedMs = performance.now() - cancelledAt;
      if (left.length === 0) return { requestId, goneMs: elapsedMs };
      if (elapsedMs > withinMs) return { requestId, goneMs: null };
      await delay(10);
    }
  }

  describe('of mongo-leash', () => {
    it.each(slowCalls.map((call) => [call.title, call] as const))('%s: it is gone within two seconds, and status proves it', async (title, call) => {
      const { ours, mongo } = ground;
      const { requestId, goneMs } = await cancelInTheMiddle(ours, call, () => ofOurs(mongo.client), oursWithinMs);
      expect(goneMs).not.toBeNull();
      const status = await ours.call('status', { requestId, waitMs: 5_000 });
      expect(status).toMatchObject({ wait: 'cancelled', outcome: 'killed', by: 'us', cause: 'client_cancelled', verdict: 'stopped' });
      told(title).ours = `gone after ${shownNumber(goneMs ?? 0)} ms, \`${status.verdict}\``;
    });
  });

  describe('of the stock server, as far as it has the call,', () => {
    it.each(slowCalls.filter(({ onlyOurs }) => onlyOurs !== true).map((call) => [call.title, call] as const))('%s: what becomes of it is measured', async (title, call) => {
      const { goneMs } = await cancelInTheMiddle(ground.stock, call, () => ofStock(ground.mongo.client), watchMs);
      told(title).stock = goneMs === null ? `**ran on** (over ${shownNumber(watchMs)} ms; the test killed it)` : `gone after ${shownNumber(goneMs)} ms, nothing verified`;
    });
  });

  it('is told of on the page', ({ skip }) => {
    if (!ground.version.startsWith('6.0.')) skip(`the page is that of MongoDB 6.0, and this is ${ground.version}`);
    const rows = slowCalls.map(({ title }) => [title, told(title).stock, told(title).ours]);
    checkPart('cancels', [measuredOn(ground), '', table(['call', 'stock server', 'mongo-leash'], rows)].join('\n'));
  });
});
