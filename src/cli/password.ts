/** Asks for the password that a connection string leaves out, so that it stands in no list of processes. */

import { createInterface } from 'node:readline';
import { Writable } from 'node:stream';
import { LeashError } from '../domain/errors.js';
import { clean } from './text.js';

const userInfoOf = (uri: string) => /^mongodb(?:\+srv)?:\/\/([^/?]*)@/i.exec(uri)?.[1];

export function hasPassword(uri: string): boolean {
  return userInfoOf(uri)?.includes(':') === true;
}

/** Whether the string names a user and leaves the password out. */
export function lacksPassword(uri: string): boolean {
  const userInfo = userInfoOf(uri);
  // One that holds an @ is not percent-encoded: what is wrong with it is said when it is read.
  if (userInfo === undefined || userInfo === '' || /[:@]/.test(userInfo)) return false;
  // These mechanisms have no password.
  return !/authMechanism=(MONGODB-X509|MONGODB-AWS|MONGODB-OIDC|GSSAPI)/i.test(uri);
}

/** The user that the string names, for a prompt. */
export function userOf(uri: string): string {
  const userInfo = userInfoOf(uri) ?? '';
  try {
    return clean(decodeURIComponent(userInfo));
  } catch {
    return clean(userInfo);
  }
}

/** The string with the password in its place, percent-encoded. */
export function withPassword(uri: string, password: string): string {
  return uri.replace(/^(mongodb(?:\+srv)?:\/\/[^/@]*)@/i, (_whole, before: string) => `${before}:${encodeURIComponent(password)}@`);
}

/** Reads a line from the terminal without showing it. @throws LeashError bad_argument when nobody can be asked, or nothing was said */
export async function askPassword(prompt: string): Promise<string> {
  const refuse = (message: string) => new LeashError('bad_argument', message, { database: '', next: 'Put the password into MONGO_LEASH_URI (or MONGO_LEASH_CONTROL_URI), or start this at a terminal.' });
  if (!process.stdin.isTTY) throw refuse('The connection string names a user without a password, and there is no terminal to ask for it.');
  // The reader echoes to this, and so to nobody.
  const silent = new Writable({ write: (_chunk, _encoding, done) => { done(); } });
  const reader = createInterface({ input: process.stdin, output: silent, terminal: true, historySize: 0 });
  // Only now: what is typed before the reader has the terminal would be shown.
  process.stderr.write(prompt);
  try {
    return await new Promise<string>((resolve, reject) => {
      reader.once('line', resolve);
      for (const event of ['SIGINT', 'close']) reader.once(event, () => { reject(refuse('No password was given.')); });
    });
  } finally {
    reader.close();
    process.stderr.write('\n');
  }
}
