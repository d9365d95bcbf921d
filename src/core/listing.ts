/** Lists what runs on a deployment under the tags of a caller, whoever started it, and what ended lately. */

import type { OperationRecord } from '../domain/operation.js';
import { principalHash } from '../domain/tag.js';
import { isFinal } from '../domain/words.js';
import { pause } from './clock.js';
import type { Conclude } from './conclude.js';
import { type Find, recordOfForeign } from './find.js';
import type { Foreign } from './foreign.js';
import { addLook, nodesOf, refreshRecord } from './live.js';
import { hashedPrincipal, owns } from './owner.js';
import type { Clock, Deployment, Liveness, Look, Store } from './ports.js';
import type { Registry } from './registry.js';
import type { Caller } from './request.js';
import type { Settle } from './settle.js';
import { unseenRecord } from './unseen.js';
import type { Watch } from './watch.js';

export interface OperationsList {
  running: OperationRecord[];
  ended: OperationRecord[];
  /** Without an end on record, and not seen now: what became of them cannot be told from here. */
  unseen: OperationRecord[];
  /** Nodes that did not answer: what runs there is unknown. */
  silent: { node: string; reason: string }[];
  looked: string[];
  /** Why earlier operations may be missing; null when they are not. */
  storeProblem: string | null;
}

export interface ListingDeps {
  deployment: Deployment;
  store: Store;
  clock: Clock;
  registry: Registry;
  watch: Watch;
  foreign: Foreign;
  settle: Settle;
  conclude: Conclude;
  adopt: Find['adopt'];
  livenessOf(instance: string): Promise<Liveness>;
}

/** Looks in a row that settle whether an operation that was just missed is gone. */
export const settlingLooks = 6;
export const settlingPauseMs = 15;

/** Whether an operation is the caller's to see. */
export function maySee({ principal, admin }: Pick<Caller, 'principal' | 'admin'>, record: OperationRecord): boolean {
  return admin === true || owns(principal, record);
}

/** Looks at the deployment, and then makes the list with the records that the store has: whoever asks several deployments reads these once. */
export type Listing = (caller: Caller) => Promise<(stored: readonly OperationRecord[]) => Promise<OperationsList>>;

/** The records that the caller may see, the newest first. To be read after the looks, since what they miss may have ended meanwhile. */
export async function storedFor(store: Pick<Store, 'list'>, { principal, admin }: Caller): Promise<OperationRecord[]> {
  const principals = admin === true ? [undefined] : [principal, hashedPrincipal(principalHash(principal))];
  return (await Promise.all(principals.map((each) => store.list(each)))).flat().sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
}

/** Those of the caller's principal; of every principal for an administrator. */
export function createListing({ deployment, store, clock, registry, watch, foreign, settle, conclude, adopt, livenessOf }: ListingDeps): Listing {
  /** Takes looks into what this caller has open: whether further ones may settle that one of these is gone. */
  async function justMissed(looks: readonly Look[], caller: Caller): Promise<boolean> {
    let missed = false;
    for (const operation of registry.all()) {
      if (!maySee(caller, operation.record)) continue;
      if (operation.execution !== null || operation.foreign) for (const look of looks) if (nodesOf(operation, [look.node]).includes(look.node)) addLook(operation, look);
      if ((await foreign.takeEnd(operation)) !== null) continue;
      const judgement = conclude(operation);
      missed ||= judgement.server === 'not_seen' && !isFinal(judgement.verdict);
    }
    return missed && looks.every((look) => look.ok);
  }

  return async function look(caller) {
    await deployment.ready();
    const hash = principalHash(caller.principal);
    const admin = caller.admin === true;
    let looks = await watch.look(deployment.nodes());
    for (let round = 1; (await justMissed(looks, caller)) && round < settlingLooks; round += 1) {
      await pause(clock, settlingPauseMs);
      looks = await watch.look(deployment.nodes());
    }
    const running = new Map<string, OperationRecord>();
    for (const { record } of registry.all()) if (maySee(caller, record) && record.outcome === null) running.set(record.operationId, record);
    for (const look of looks) {
      if (!look.ok) continue;
      for (const hit of look.hits) {
        const id = hit.tag.operationId;
        if ((!admin && hit.tag.principal !== hash) || running.has(id) || registry.get(id) !== null) continue;
        const record = await store.get(id);
        const principal = record?.principal ?? (hit.tag.principal === hash ? caller.principal : hashedPrincipal(hit.tag.principal));
        if (record !== null && record.outcome !== null) {
          // Its end is recorded, and yet this look saw it: the database is the witness.
          running.set(id, { ...recordOfForeign(clock, hit, principal), reason: 'The last look found its tag although its end is recorded; look again.' });
          continue;
        }
        const operation = adopt(hit, principal, record);
        addLook(operation, look);
        refreshRecord(clock, operation);
        running.set(id, operation.record);
      }
    }
    return async (stored) => {
      // What has ended in this very call is on its way to the store.
      const justEnded = registry.all().map(({ record }) => record).filter((record) => maySee(caller, record) && record.outcome !== null);
      const records = stored.filter(({ operationId }) => !running.has(operationId) && !justEnded.some((record) => record.operationId === operationId));
      const settled = await settle(records);
      const known = records.map((record) => settled.get(record.operationId) ?? record);
      const ended = [...justEnded, ...known.filter((record) => record.outcome !== null)];
      return {
        unseen: await Promise.all(known.filter(({ outcome }) => outcome === null).map(async (record) => unseenRecord(record, looks, await livenessOf(record.instance)))),
        storeProblem: store.problem(),
        running: [...running.values()],
        ended,
        looked: looks.filter((look) => look.ok).map((look) => look.node),
        silent: looks.flatMap((look) => (look.ok ? [] : [{ node: look.node, reason: look.reason }])),
      };
    };
  };
}
