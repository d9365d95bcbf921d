/** Ends what dead server processes of this machine left on the database, at the start and every minute. */

import { messageOf } from '../domain/errors.js';
import { atDeadline } from '../domain/verdict.js';
import type { Verdict } from '../domain/words.js';
import { pause } from './clock.js';
import type { Conclude } from './conclude.js';
import type { Find } from './find.js';
import type { Killer } from './kill.js';
import { addLook, judgeLive } from './live.js';
import { hashedPrincipal } from './owner.js';
import type { Clock, Deployment, Hit, InstanceRecord, Liveness, Log, Look, Store } from './ports.js';
import type { Registry } from './registry.js';
import type { Settle } from './settle.js';
import type { Watch } from './watch.js';

/** `report` only logs what it would kill; `off` does not look. */
export type SweepMode = 'kill' | 'report' | 'off';

export interface SweepReport {
  /** What was found of dead processes, and what became of it: no verdict where it was only reported. */
  orphans: { operationId: string; verdict: Verdict | null }[];
  /** Tagged operations of processes that live, or of which nobody knows: left alone. */
  leftAlone: number;
  /** Records of dead processes that got their end without a trace on the database. */
  settled: string[];
}

export interface Sweep {
  /** Says that this process is here, sweeps now and then every minute, in the background. */
  start(): void;
  stop(): void;
  /** One sweep. @throws LeashError when the deployment cannot be reached */
  now(): Promise<SweepReport>;
}

export interface SweepDeps {
  deployment: Deployment;
  store: Store;
  clock: Clock;
  log: Log;
  registry: Registry;
  watch: Watch;
  adopt: Find['adopt'];
  killer: Killer;
  conclude: Conclude;
  settle: Settle;
  self: InstanceRecord;
  livenessOf(instance: string): Promise<Liveness>;
  mode: SweepMode;
}

const everyMs = 60_000;
/** A tick that comes later than this, in milliseconds, means that the machine slept or the process was stopped. */
const sleptMs = 120_000;
/** How long one sweep follows its kills, in milliseconds; they go on after that. */
const followMs = 10_000;
/** Ticks between two times that this process says that it is here: the store forgets one that does not. */
const ticksToSayAgain = 60;

type Found = { hit: Hit; looks: Look[] };

export function createSweep(deps: SweepDeps): Sweep {
  const { deployment, store, clock, log, registry, watch, adopt, killer, conclude, settle, self, livenessOf, mode } = deps;
  const reported = new Set<string>();
  let cancelTimer: () => void = () => undefined;
  let stopped = false;

  async function now(): Promise<SweepReport> {
    await deployment.ready();
    const looks = await watch.look(deployment.nodes());
    const { orphans, leftAlone } = await sort(looks);
    const verdicts = mode === 'kill' ? await end(orphans) : report(orphans);
    const settled = await settle(await store.unended());
    return { orphans: verdicts, leftAlone, settled: [...settled.keys()] };
  }

  /** By what is known of the process that started each: only what is dead beyond doubt is an orphan. */
  async function sort(looks: Look[]): Promise<{ orphans: Map<string, Found>; leftAlone: number }> {
    const found = new Map<string, Found>();
    for (const look of looks) if (look.ok) for (const hit of look.hits) if (hit.tag.instance !== self.instance) found.set(hit.tag.operationId, { hit, looks });
    const instances = [...new Set([...found.values()].map(({ hit }) => hit.tag.instance))];
    const liveness = new Map(await Promise.all(instances.map(async (instance) => [instance, await livenessOf(instance)] as const)));
    const orphans = new Map([...found].filter(([, { hit }]) => liveness.get(hit.tag.instance) === 'dead'));
    return { orphans, leftAlone: found.size - orphans.size };
  }

  async function end(orphans: Map<string, Found>): Promise<SweepReport['orphans']> {
    const kills = await Promise.all([...orphans].map(async ([operationId, { hit, looks }]) => {
      const record = await store.get(operationId);
      const operation = adopt(hit, record?.principal ?? hashedPrincipal(hit.tag.principal), record);
      for (const look of looks) addLook(operation, look);
      log.warn({ operationId, instance: hit.tag.instance, namespace: hit.sighting.namespace }, 'operation of a dead server process found; it is killed');
      return { operation, task: killer.kill(operation, 'sweep') };
    }));
    await pause(clock, followMs, Promise.all(kills.map(({ task }) => task.done)));
    return kills.map(({ operation }) => ({ operationId: operation.record.operationId, verdict: atDeadline(judgeLive(operation), operation.facts) }));
  }

  function report(orphans: Map<string, Found>): SweepReport['orphans'] {
    for (const [operationId, { hit }] of orphans) {
      if (reported.has(operationId)) continue;
      reported.add(operationId);
      log.warn({ operationId, instance: hit.tag.instance, namespace: hit.sighting.namespace, secondsRunning: hit.sighting.secondsRunning }, 'operation of a dead server process found; it is left, as --sweep report says');
    }
    return [...orphans.keys()].map((operationId) => ({ operationId, verdict: null }));
  }

  /** Whoever slept may have been taken for dead meanwhile: what the database shows of its operations counts. */
  async function judgeOwn(sleptForMs: number): Promise<void> {
    const own = registry.all().filter(({ foreign, execution, record }) => !foreign && execution !== null && record.outcome === null);
    log.warn({ sleptForMs, operations: own.map(({ record }) => record.operationId) }, 'this process did not run for a while; its operations may have been ended by others');
    for (const look of await watch.look(deployment.nodes())) for (const operation of own) if (operation.record.node === look.node) addLook(operation, look);
    for (const operation of own) conclude(operation);
  }

  async function tick(count: number, sleptForMs: number): Promise<void> {
    try {
      if (count % ticksToSayAgain === 0) await store.putInstance(self);
      if (mode === 'off') return;
      if (sleptForMs > sleptMs) await judgeOwn(sleptForMs);
      const { orphans, settled, leftAlone } = await now();
      if (orphans.length > 0 || settled.length > 0) log.info({ orphans, settled, leftAlone }, 'swept');
    } catch (error) {
      log.debug({ error: messageOf(error) }, 'no sweep this time');
    }
  }

  function next(count: number): void {
    if (stopped) return;
    const dueAt = Date.parse(clock.iso()) + everyMs;
    cancelTimer = clock.after(everyMs, () => {
      void tick(count, Date.parse(clock.iso()) - dueAt).finally(() => { next(count + 1); });
    }, { background: true });
  }

  return {
    start() {
      void tick(0, 0).finally(() => { next(1); });
    },
    stop() {
      stopped = true;
      cancelTimer();
    },
    now,
  };
}
