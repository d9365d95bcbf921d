/** Tells whether the server process that started an operation still lives; `dead` only where there is no doubt. */

import type { InstanceRecord, Liveness, Store } from './ports.js';

/** The machine, and the part of it, that this process sees. */
export type Here = Pick<InstanceRecord, 'hostname' | 'machineId' | 'bootId' | 'pidNamespace'>;

/** What the system says of a pid now. */
export type ProbedProcess = { kind: 'none' } | { kind: 'started'; at: string } | { kind: 'unknown' };
export type Probe = (pid: number) => ProbedProcess;

/**
 * A pid says something only within one start of one machine, in one pid namespace; a start of the machine ends all
 * that ran before it. Everything else is `unknown`.
 */
export function livenessOf(instance: InstanceRecord, here: Here, probe: Probe): Liveness {
  if (instance.bootId === null || here.bootId === null) return 'unknown';
  if (instance.bootId !== here.bootId) return isSameMachine(instance, here) ? 'dead' : 'unknown';
  if (instance.pidNamespace === null || instance.pidNamespace !== here.pidNamespace) return 'unknown';
  const found = probe(instance.pid);
  switch (found.kind) {
    case 'none':
      return 'dead';
    case 'unknown':
      return 'unknown';
    case 'started':
      if (instance.processStart === null) return 'unknown';
      return found.at === instance.processStart ? 'alive' : 'dead';
  }
}

/** A host name alone is no machine: containers and machines made from one image share theirs. */
function isSameMachine(instance: InstanceRecord, here: Here): boolean {
  return instance.hostname === here.hostname && instance.machineId !== null && instance.machineId === here.machineId;
}

/** Answers by the id that stands in tags; one that no record of this machine names is `unknown`. */
export function createLivenessOf(deps: { store: Pick<Store, 'instances'>; here: Here; probe: Probe }): (instance: string) => Promise<Liveness> {
  const { store, here, probe } = deps;
  return async (id) => {
    const instance = (await store.instances()).find((each) => each.instance === id);
    return instance === undefined ? 'unknown' : livenessOf(instance, here, probe);
  };
}
