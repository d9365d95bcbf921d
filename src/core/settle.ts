/** Ends the records of dead server processes: what their operations left is looked for, and what is not there is `lost`. */

import type { OperationRecord } from '../domain/operation.js';
import { emptyLooksNeeded } from '../domain/verdict.js';
import { pause } from './clock.js';
import type { Clock, Deployment, Liveness, Log, Look, Store } from './ports.js';
import type { Registry } from './registry.js';
import type { Watch } from './watch.js';

export interface SettleDeps {
  deployment: Pick<Deployment, 'nodes' | 'setName'>;
  store: Store;
  clock: Clock;
  log: Log;
  registry: Registry;
  watch: Watch;
  livenessOf(instance: string): Promise<Liveness>;
}

/** What these records have become, by operation id; one that cannot be judged from here is not among them. */
export type Settle = (records: readonly OperationRecord[]) => Promise<Map<string, OperationRecord>>;

/** Between two looks, in milliseconds: a command that a dead process left on its way may come late (400 ms were measured). */
const lookAgainMs = 250;

export function createSettle(deps: SettleDeps): Settle {
  const { deployment, store, clock, log, registry, watch, livenessOf } = deps;

  return async function settle(records) {
    let missing = await ofDeadInstances(records.filter((record) => record.outcome === null && registry.get(record.operationId) === null && canBeJudged(record)));
    const processes = new Map<string, string>();
    let looks: Look[] = [];
    for (let round = 0; round < emptyLooksNeeded.otherProcess && missing.length > 0; round += 1) {
      if (round > 0) await pause(clock, lookAgainMs);
      looks = await watch.look(deployment.nodes());
      const asked = new Set(looks.filter((look) => look.ok && isSameProcess(processes, look)).map(({ node }) => node));
      const seen = new Set(looks.flatMap((look) => (look.ok ? look.hits.map(({ tag }) => tag.operationId) : [])));
      missing = missing.filter((record) => !seen.has(record.operationId) && placesOf(record).every((node) => asked.has(node)));
    }
    const settled = new Map<string, OperationRecord>();
    for (const record of missing) settled.set(record.operationId, await end(record, looks));
    return settled;
  };

  /** Where it was is known, and it is the deployment that is looked at from here. */
  function canBeJudged(record: OperationRecord): boolean {
    return record.whereabouts !== null && record.whereabouts.set === deployment.setName() && placesOf(record).every((node) => deployment.nodes().includes(node));
  }

  async function ofDeadInstances(records: readonly OperationRecord[]): Promise<OperationRecord[]> {
    const instances = [...new Set(records.map(({ instance }) => instance))];
    const liveness = new Map(await Promise.all(instances.map(async (instance) => [instance, await livenessOf(instance)] as const)));
    return records.filter(({ instance }) => liveness.get(instance) === 'dead');
  }

  async function end(record: OperationRecord, looks: readonly Look[]): Promise<OperationRecord> {
    const places = placesOf(record);
    const endedAt = clock.iso();
    const writes = record.writes === null ? '' : ' It can write: partial or full effects are possible.';
    const lost: OperationRecord = {
      ...record,
      wait: record.wait === 'answered' ? 'answered' : 'gone',
      server: 'not_seen',
      outcome: 'lost',
      endedAt,
      elapsedMs: Math.max(0, Date.parse(endedAt) - Date.parse(record.createdAt)),
      reason: `The server process that ran it (instance ${record.instance}) is dead, and ${emptyLooksNeeded.otherProcess} looks in a row at ${places.join(', ')} did not find it: it runs no more, and how it ended is unknown.${writes}`,
      evidence: looks.filter(({ node }) => places.includes(node)).map((look) => ({ at: clock.iso(look.endedAt), node: look.node, saw: 'nothing' })),
    };
    await store.put(lost);
    log.info({ operationId: record.operationId, instance: record.instance, outcome: 'lost' }, 'operation of a dead server process settled');
    // Another process may have known a better end meanwhile.
    return (await store.get(record.operationId)) ?? lost;
  }
}

/** Where it can be: where it was sent; as long as that is not known, on every node that its process knew. */
export function placesOf(record: OperationRecord): readonly string[] {
  return record.node === null ? (record.whereabouts?.nodes ?? []) : [record.node];
}

/** A process that does not name itself, or another one than at the look before, proves nothing. */
function isSameProcess(processes: Map<string, string>, look: Extract<Look, { ok: true }>): boolean {
  const { node, process } = look;
  if (process.id === null) return false;
  const before = processes.get(node) ?? process.id;
  processes.set(node, process.id);
  return before === process.id;
}
