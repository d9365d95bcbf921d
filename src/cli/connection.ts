/** Where a command's connection strings come from, and the passwords that they leave out. */

import { LeashError } from '../domain/errors.js';
import { createRedactor } from '../domain/redact.js';
import { say } from './output.js';
import { askPassword, hasPassword, lacksPassword, userOf, withPassword } from './password.js';

export interface ConnectionFlags {
  uri?: string;
  controlUri?: string;
  stateFolder?: string;
}

export interface Connection {
  uri: string;
  /** The option or variable that gave it, for messages. */
  uriFrom: string;
  controlUri: string | undefined;
  controlUriFrom: string;
  stateFolder: string | undefined;
}

type Env = Readonly<Record<string, string | undefined>>;

/** The first of these variables that is set; an empty one is not. */
const setIn = (env: Env, ...names: string[]) => names.find((name) => (env[name] ?? '') !== '');
const fromEnv = (env: Env, ...names: string[]) => env[setIn(env, ...names) ?? ''];
const uriVariables = ['MONGO_LEASH_URI', 'MDB_MCP_CONNECTION_STRING'];
const controlUriVariable = 'MONGO_LEASH_CONTROL_URI';

export function stateFolderOf({ stateFolder }: ConnectionFlags, env: Env): string | undefined {
  return stateFolder ?? fromEnv(env, 'MONGO_LEASH_STATE_FOLDER');
}

/** @throws LeashError not_configured; bad_argument when a password is missing and nobody can be asked */
export async function readConnection(flags: ConnectionFlags, env: Env): Promise<Connection> {
  const uri = flags.uri ?? fromEnv(env, ...uriVariables);
  if (uri === undefined || uri === '') throw new LeashError('not_configured', 'There is no connection string.', { database: '', next: 'Set MONGO_LEASH_URI, or give --uri (without the password: it is asked for).' });
  const controlUri = flags.controlUri ?? fromEnv(env, controlUriVariable);
  for (const [flag, given] of [['--uri', flags.uri], ['--control-uri', flags.controlUri]] as const) {
    if (given !== undefined && hasPassword(given)) say(`${flag} is visible to other users of this machine in the list of processes: leave the password out, and it is asked for`);
  }
  return {
    uri: await complete(uri),
    uriFrom: flags.uri === undefined ? (setIn(env, ...uriVariables) ?? '') : '--uri',
    controlUri: controlUri === undefined || controlUri === '' ? undefined : await complete(controlUri),
    controlUriFrom: flags.controlUri === undefined ? controlUriVariable : '--control-uri',
    stateFolder: stateFolderOf(flags, env),
  };
}

/** The same error, with the name of what is to be corrected. */
export function nameSource(error: unknown, { uriFrom, controlUriFrom }: Connection): unknown {
  if (!(error instanceof LeashError) || error.code !== 'bad_argument') return error;
  const { message, next } = error;
  return new LeashError('bad_argument', `${error.path === 'controlUri' ? controlUriFrom : uriFrom}: ${message}`, { database: '', next, cause: error });
}

async function complete(uri: string): Promise<string> {
  if (!lacksPassword(uri)) return uri;
  return withPassword(uri, await askPassword(createRedactor([])(`Password of ${userOf(uri)}: `)));
}
