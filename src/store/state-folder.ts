/** Where a user's programs keep what outlives them, as each system has it. */

import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const name = 'mongo-leash';

/** @param env the variables that name such folders: XDG_STATE_HOME (XDG Base Directory), LOCALAPPDATA */
export function defaultStateFolder(env: Readonly<Record<string, string | undefined>>, platform: NodeJS.Platform = process.platform, home: string = homedir()): string {
  if (platform === 'darwin') return join(home, 'Library', 'Application Support', name);
  if (platform === 'win32') return join(filled(env['LOCALAPPDATA']) ?? join(home, 'AppData', 'Local'), name);
  // The specification says to ignore a relative path.
  const xdg = filled(env['XDG_STATE_HOME']);
  return join(xdg?.startsWith('/') === true ? xdg : join(home, '.local', 'state'), name);
}

function filled(value: string | undefined): string | undefined {
  return value === '' ? undefined : value;
}

/** Makes the folder for its owner alone; one that is there is left as it is. @throws the system's error */
export function makeFolder(folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
}
