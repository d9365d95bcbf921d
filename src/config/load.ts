/** Reads the configuration: flags before the environment before the defaults; whatever is wrong stops the start by name. */

import { ConfigError } from './config-error.js';
import { type Config, type OptionName, type OptionRow, optionRows, shownName } from './options.js';
import { type StockReading, checkStockProtection, readStock } from './stock.js';

export { ConfigError };

export interface LoadedConfig {
  config: Config;
  /** The option or variable that gave the connection string, for messages. */
  uriFrom: string;
  /** The same for the control credentials, and for the tools that are disabled. */
  controlUriFrom: string;
  disabledToolsFrom: string;
  /** What the person who starts it should know, for the log. */
  warnings: string[];
}

/** Read by the scripts of the repository and by the example of a client's configuration. */
const variablesOfScripts = ['MONGO_LEASH_CACHE', 'MONGO_LEASH_HOME'];

/**
 * @param flags what the command line gave, by option name; absent when not given
 * @throws ConfigError naming the option
 */
export function loadConfig(flags: Partial<Record<OptionName, unknown>>, env: Readonly<Record<string, string | undefined>>): LoadedConfig {
  const rows = Object.entries(optionRows) as [OptionName, OptionRow][];
  const isOwn = (name: OptionName) => flags[name] !== undefined || isGiven(env[optionRows[name].env]);
  const stock = readStock(env, isOwn);
  const config = Object.fromEntries(rows.map(([name, option]) => [name, readOption(option, flags[name], env[option.env], stock.values.get(name))]));
  const loaded = config as unknown as Config;
  fitStock(loaded, stock, isOwn);
  checkTogether(loaded);
  if (loaded.http) checkStockProtection(env, [loaded.tokens, loaded.tokensFile, loaded.jwtIssuer].some((each) => each !== undefined));
  const from = (name: OptionName) => (flags[name] !== undefined ? shownName(optionRows[name]) : (stock.values.get(name)?.from ?? optionRows[name].env));
  return {
    config: loaded,
    uriFrom: from('uri'),
    controlUriFrom: from('controlUri'),
    disabledToolsFrom: from('disabledTools'),
    warnings: [...warningsFor(flags, env), ...stock.warnings, ...(loaded.http ? [] : withoutHttp(flags, env))],
  };
}

/** An empty variable is what a client's `${VAR:-}` expands to: not given. */
function isGiven(value: string | undefined): value is string {
  return value !== undefined && value !== '';
}

function readOption(option: OptionRow, flag: unknown, variable: string | undefined, stock: { value: string; from: string } | undefined): unknown {
  const own = flag ?? (isGiven(variable) ? variable : undefined);
  const fallback = option.default === 'none' ? (option.list === true ? [] : undefined) : option.default;
  const result = option.schema.safeParse(own ?? stock?.value ?? fallback);
  if (result.success) return result.data;
  const where = flag !== undefined ? shownName(option) : own === undefined && stock !== undefined ? stock.from : option.env;
  throw new ConfigError(`${where} ${result.error.issues[0]?.message ?? 'is not valid'}.`);
}

/** What a call gets, and the most that it may ask for. */
const pairs = [['maxTimeMS', 'maxTimeMSCeiling'], ['limit', 'maxLimit'], ['retentionMs', 'maxRetentionMs'], ['responseBytes', 'maxResponseBytes']] as const satisfies [OptionName, OptionName][];

/** A limit that the stock server's variables give moves to where the others, ours or the defaults, let it stand. */
function fitStock(config: Config, { values }: StockReading, isOwn: (name: OptionName) => boolean): void {
  for (const [name, ceiling] of pairs) {
    if (config[name] <= config[ceiling]) continue;
    if (values.has(ceiling) && isOwn(name)) config[ceiling] = config[name];
    else if (values.has(ceiling) || values.has(name)) config[name] = config[ceiling];
  }
}

function checkTogether(config: Config): void {
  for (const [name, ceiling] of pairs) {
    if (config[name] > config[ceiling]) throw new ConfigError(`${shownName(optionRows[name])} (${config[name]}) is above ${shownName(optionRows[ceiling])} (${config[ceiling]}).`);
  }
  if (config.demo && config.uri !== undefined) throw new ConfigError('--demo starts a database of its own, and a connection string is given too: choose one.');
}

function warningsFor(flags: Partial<Record<OptionName, unknown>>, env: Readonly<Record<string, string | undefined>>): string[] {
  const warnings: string[] = [];
  if (flags.uri !== undefined) warnings.push('--uri is visible to other users of this machine in the list of processes: prefer MONGO_LEASH_URI.');
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
