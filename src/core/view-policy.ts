/** Applies the pipeline policy to what views hide: a view may read where its reader may not, or run JavaScript. */

import { LeashError } from '../domain/errors.js';
import { type Namespace, type PolicySettings, checkPipeline } from '../domain/policy/pipeline-policy.js';
import type { Clock, CollectionInfo, Deployment } from './ports.js';

/** MongoDB allows views of views up to this depth. */
const maxViewDepth = 20;
/** How long a collection that was no view counts as none, in milliseconds: asking before each read would double its time. */
const knownForMs = 10_000;
const maxKnown = 1_000;

/** Asks what a collection is, and remembers for a while that it is no view; a view is asked for each time. */
export function rememberCollections(deployment: Pick<Deployment, 'collectionInfo'>, clock: Pick<Clock, 'now'>): Pick<Deployment, 'collectionInfo'> {
  const known = new Map<string, { info: CollectionInfo; at: number }>();
  return {
    async collectionInfo(ns) {
      const key = JSON.stringify([ns.db, ns.coll]);
      const found = known.get(key);
      if (found !== undefined && clock.now() - found.at < knownForMs) return found.info;
      const at = clock.now();
      const info = await deployment.collectionInfo(ns);
      known.delete(key);
      if (info.type === 'collection' || info.type === 'timeseries') known.set(key, { info, at });
      for (const oldest of known.keys()) {
        if (known.size <= maxKnown) break;
        known.delete(oldest);
      }
      return info;
    },
  };
}

/**
 * Checks every view that the pipeline reads, and the views that these read.
 * @throws LeashError refused_by_policy, unreachable
 */
export async function checkViews(deployment: Pick<Deployment, 'collectionInfo'>, settings: PolicySettings, namespaces: readonly { ns: Namespace; path: string }[]): Promise<void> {
  if (settings.allowJs && settings.allowInternal) return;
  const done = new Set<string>();
  let level = namespaces;
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > maxViewDepth) throw new LeashError('refused_by_policy', 'The views that this pipeline reads are nested more than 20 deep.');
    const below = await Promise.all(level.map(({ ns, path }) => viewsUnder(ns, path)));
    level = below.flat();
  }

  async function viewsUnder(ns: Namespace, path: string): Promise<{ ns: Namespace; path: string }[]> {
    if (ns.coll === null) return [];
    const name = `${ns.db}.${ns.coll}`;
    if (done.has(name)) return [];
    done.add(name);
    const info = await deployment.collectionInfo({ db: ns.db, coll: ns.coll });
    if (info.type !== 'view') return [];
    if (info.view === undefined) {
      throw new LeashError('refused_by_policy', `${name} (${path}) is a view, and this user may not read its definition, so what it reads cannot be checked.`, {
        path,
        next: 'Grant the user the action listCollections on the database, or read the collections below the view.',
      });
    }
    const within = `the view ${name}`;
    const facts = checkPipeline(info.view.pipeline, { db: ns.db, coll: info.view.on }, settings, within);
    return facts.namespaces.map((inner) => ({ ns: inner.ns, path: within }));
  }
}
