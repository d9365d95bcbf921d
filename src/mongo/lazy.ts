/** Loads the driver when it is first needed: a server that only lists its tools starts without it. */

import type { Clock, Deployment, Log } from '../core/ports.js';
import type { DeploymentSettings } from './deployment.js';

export function lazyDeployment(settings: DeploymentSettings, clock: Clock, log: Log): Deployment {
  let loading: Promise<Deployment> | null = null;
  let loaded: Deployment | null = null;

  function load(): Promise<Deployment> {
    loading ??= import('./deployment.js').then(({ createDeployment }) => {
      loaded = createDeployment(settings, clock, log);
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
    ready: async () => { await (await load()).ready(); },
    nodes: () => loaded?.nodes() ?? [],
    look: (node) => ready().look(node),
    kill: (node, sighting) => ready().kill(node, sighting),
    killSessions: (node, sessions) => ready().killSessions(node, sessions),
    aggregate: (request, events) => ready().aggregate(request, events),
    collectionInfo: (ns) => ready().collectionInfo(ns),
    close: async () => { await loaded?.close(); },
  };
}
