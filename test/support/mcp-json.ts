/** A client's configuration file, read and expanded as Claude Code does it. */

import { readFileSync } from 'node:fs';

export interface ServerEntry {
  command: string;
  args: string[];
  env: Record<string, string>;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** `${NAME}` and `${NAME:-default}`; the default is for a variable that is not set. Throws on one that has neither. */
export function expand(text: string, variables: Variables): string {
  return text.replace(/\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}/g, (_whole, name: string, fallback: string | undefined) => {
    const value = variables[name] ?? fallback;
    if (value === undefined) throw new Error(`the variable ${name} is not set and has no default`);
    return value;
  });
}

/** The entry of that name in `mcpServers`, with every variable in it expanded. */
export function readServerEntry(path: string | URL, name: string, variables: Variables): ServerEntry {
  const { mcpServers } = JSON.parse(readFileSync(path, 'utf8')) as { mcpServers: Record<string, { command: string; args?: string[]; env?: Record<string, string> }> };
  const entry = mcpServers[name];
  if (entry === undefined) throw new Error(`no server ${name} in ${String(path)}`);
  return {
    command: expand(entry.command, variables),
    args: (entry.args ?? []).map((argument) => expand(argument, variables)),
    env: Object.fromEntries(Object.entries(entry.env ?? {}).map(([key, value]) => [key, expand(value, variables)])),
  };
}
