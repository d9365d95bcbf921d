/** The types of mongod.mjs for the tests: the scripts are plain JavaScript, since they run before TypeScript is installed. */

/** The machine and its environment, as far as the search looks at them. */
export interface System {
  env: Record<string, string | undefined>;
  platform: string;
  arch: string;
  say: (text: string) => void;
}

export interface Place {
  name: string;
  find: (system: System) => Promise<{ path: string; version: string }>;
}

export const defaultPlaces: Place[];
export function cacheDir(env: System['env']): string;
export function checkMongod(path: string): Promise<string>;
/** A place's way to keep what `fetch` made in `workDir`. */
export function throughCache(
  fetch: (system: System & { workDir: string }) => Promise<string>,
): Place['find'];
export function findMongod(options?: {
  places?: Place[];
  system?: System;
}): Promise<{ path: string; source: string; version: string }>;
