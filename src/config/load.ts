/** Reads the configuration: flags before the environment before the defaults; whatever is wrong stops the start by name. */

import { type Config, type OptionName, type OptionRow, optionRows, shownName } from './options.js';

/** A mistake in the configuration, to be shown to whoever started the program. Holds no value that could be a secret. */
export class ConfigError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ConfigError';
  }
}

export interface LoadedConfig {
  config: Config;
  /** The option or variable that gave the connection string, for messages. */
  uriFrom: string;
  /** The same for the control credentials. */
  controlUriFrom: string;
  /** What the person who starts it should know, for the log. */
  warnings: string[];
}

/** The stock server's variable for the connection string. */
const stockUriVariable = 'MDB_MCP_CONNECTION_STRING';

/** Read by the scripts of the repository and by the example of a client's configuration. */
const variablesOfScripts = ['MONGO_LEASH_CACHE', 'MONGO_LEASH_HOME'];

/**
 * @param flags what the command line gave, by option name; absent when not given
 * @throws ConfigError naming the option
 */
export function loadConfig(flags: Partial<Record<OptionName, unknown>>, env: Readonly<Record<string, string | undefined>>): LoadedConfig {
  const config: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(optionRows) as [OptionName, OptionRow][]) {
    config[name] = readOption(option, flags[name], valueFromEnv(name, option, env));
  }
  const loaded = config as unknown as Config;
  checkTogether(loaded);
  const uriFrom = flags.uri !== undefined ? '--uri' : isGiven(env[optionRows.uri.env]) || !isGiven(env[stockUriVariable]) ? optionRows.uri.env : stockUriVariable;
  const controlUriFrom = flags.controlUri === undefined ? optionRows.controlUri.env : shownName(optionRows.controlUri);
  return { config: loaded, uriFrom, controlUriFrom, warnings: [...warningsFor(flags, env, uriFrom), ...(loaded.http ? [] : withoutHttp(flags, env))] };
}

/** An empty variable is what a client's `${VAR:-}` expands to: not given. */
function isGiven(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}

function valueFromEnv(name: OptionName, option: OptionRow, env: Readonly<Record<string, string | undefined>>): string | undefined {
  const variables = name === 'uri' ? [option.env, stockUriVariable] : [option.env];
  return variables.map((variable) => env[variable]).find(isGiven);
}

function readOption(option: OptionRow, flag: unknown, fromEnv: string | undefined): unknown {
  const given = flag ?? fromEnv;
  const fallback = option.default === 'none' ? (option.list === true ? [] : undefined) : option.default;
  const result = option.schema.safeParse(given ?? fallback);
  if (result.success) return result.data;
  const where = flag === undefined ? option.env : shownName(option);
  throw new ConfigError(`${where} ${result.error.issues[0]?.message ?? 'is not valid'}.`);
}

function checkTogether(config: Config): void {
  const pairs: [OptionName, OptionName][] = [['maxTimeMS', 'maxTimeMSCeiling'], ['limit', 'maxLimit'], ['retentionMs', 'maxRetentionMs'], ['responseBytes', 'maxResponseBytes']];
  for (const [name, ceiling] of pairs) {
    if (Number(config[name]) > Number(config[ceiling])) {
      throw new ConfigError(`${shownName(optionRows[name])} (${String(config[name])}) is above ${shownName(optionRows[ceiling])} (${String(config[ceiling])}).`);
    }
  }
  if (config.demo && config.uri !== undefined) throw new ConfigError('--demo starts a database of its own, and a connection string is given too: choose one.');
}

function warningsFor(flags: Partial<Record<OptionName, unknown>>, env: Readonly<Record<string, string | undefined>>, uriFrom: string): string[] {
  const warnings: string[] = [];
  if (flags.uri !== undefined) warnings.push('--uri is visible to other users of this machine in the list of processes: prefer MONGO_LEASH_URI.');
  if (uriFrom === stockUriVariable) warnings.push(`the connection string comes from ${stockUriVariable}; its name here is MONGO_LEASH_URI.`);
  const known = new Set([...Object.values(optionRows).map(({ env: variable }) => variable), ...variablesOfScripts]);
  for (const name of Object.keys(env)) if (name.startsWith('MONGO_LEASH_') && !known.has(name)) warnings.push(`${name} is set, and no option of this program has that name.`);
  return warnings;
}

/** Options that were given and do nothing over stdio: whoever gave them believes that they do. */
function withoutHttp(flags: Partial<Record<OptionName, unknown>>, env: Readonly<Record<string, string | undefined>>): string[] {
  const rows = Object.entries(optionRows) as [OptionName, OptionRow][];
  const given = rows.filter(([name, row]) => row.http === true && (flags[name] !== undefined || isGiven(env[row.env]))).map(([, row]) => shownName(row));
  return given.length === 0 ? [] : [`without --http these options do nothing: ${given.join(', ')}.`];
}
