/** Loads the driver when it is first needed: a server that only lists its tools starts without it. */

import type { Clock, Deployment, ExaminedDeployment, Log } from '../core/ports.js';
import { LeashError, messageOf } from '../domain/errors.js';
import type { DeploymentSettings } from './deployment.js';

export interface LazyDeployment extends Deployment {
  /** Loads the driver, which reads the options of the connection string. @throws LeashError bad_argument */
  load(): Promise<void>;
}

export function lazyDeployment(settings: DeploymentSettings, clock: Clock, log: Log): LazyDeployment {
  let loading: Promise<ExaminedDeployment> | null = null;
  let loaded: ExaminedDeployment | null = null;

  function load(): Promise<ExaminedDeployment> {
    loading ??= import('./deployment.js').then(({ createDeployment }) => {
      try {
        loaded = createDeployment(settings, clock, log);
      } catch (error) {
        if (error instanceof LeashError) throw error;
        throw new LeashError('bad_argument', `The connection string cannot be used: ${messageOf(error)}.`, { next: 'Correct its options.', cause: error });
      }
      return loaded;
    });
    return loading;
  }

  /** Everything but `ready` is asked only after it. */
  function ready(): Deployment {
    if (loaded === null) throw new Error('the deployment was used before it was ready');
    return loaded;
  }

  return {
    load: async () => { await load(); },
    ready: async () => { await (await load()).ready(); },
    nodes: () => loaded?.nodes() ?? [],
    hiddenMembers: () => loaded?.hiddenMembers() ?? { nodes: [], unknownBecause: null },
    setName: () => loaded?.setName() ?? null,
    look: (node) => ready().look(node),
    survey: (node) => ready().survey(node),
    kill: (node, sighting, origin) => ready().kill(node, sighting, origin),
    killSessions: (node, sessions) => ready().killSessions(node, sessions),
    execute: (request, events) => ready().execute(request, events),
    collectionInfo: (ns) => ready().collectionInfo(ns),
    examine: async (node, credentials) => await (await load()).examine(node, credentials),
    close: async () => { await loaded?.close(); },
  };
}
