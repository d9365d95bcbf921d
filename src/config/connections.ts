/** Reads the named connections: JSON of name to connection string, in a file or in the environment variable itself. */

import { readFileSync, statSync } from 'node:fs';
import { ConfigError } from './config-error.js';
import { optionRows } from './options.js';

export interface NamedConnections {
  /** Connection strings by name, in their order. */
  byName: ReadonlyMap<string, string>;
  /** For the log. */
  warnings: string[];
}

/** The connection of MONGO_LEASH_URI has this one. */
const reservedName = 'preconfigured';
const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const { env: variable } = optionRows.connections;
const form = '{"staging": "mongodb://…", "reports": "mongodb+srv://…"}';

/**
 * @param given JSON text, or the path of a file that holds it
 * @throws ConfigError that repeats nothing but names
 */
export function readConnections(given: string | undefined): NamedConnections {
  if (given === undefined) return { byName: new Map(), warnings: [] };
  const warnings: string[] = [];
  const text = given.trim().startsWith('{') ? given : readFile(given, warnings);
  const parsed = parse(text);
  for (const [name, uri] of parsed) {
    if (!namePattern.test(name)) throw new ConfigError(`${variable}: ${JSON.stringify(name.slice(0, 80))} is no name of a connection: up to 64 letters, digits, dots, hyphens and underscores.`);
    if (name === reservedName) throw new ConfigError(`${variable}: the name ${reservedName} is that of the connection of ${optionRows.uri.env}.`);
    if (typeof uri !== 'string') throw new ConfigError(`${variable}: what stands for ${name} is no connection string.`);
  }
  return { byName: new Map(parsed as [string, string][]), warnings };
}

function parse(text: string): [string, unknown][] {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = null;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new ConfigError(`${variable} must hold JSON of name to connection string: ${form}.`);
  return Object.entries(value);
}

function readFile(path: string, warnings: string[]): string {
  if (path.includes('://')) throw new ConfigError(`${variable} takes JSON, or the path of a file that holds it: ${form}.`);
  try {
    if (process.platform !== 'win32' && (statSync(path).mode & 0o004) !== 0) warnings.push(`the file of ${variable} can be read by every user of this machine: chmod o= it.`);
    return readFileSync(path, 'utf8');
  } catch (error) {
    throw new ConfigError(`${variable}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? 'unknown error'}).`);
  }
}
