/** Reads the stock MongoDB MCP server's environment variables where this program has the same option, so that a configuration goes on working. */

import { ConfigError } from './config-error.js';
import { type OptionName, optionRows } from './options.js';

type Env = Readonly<Record<string, string | undefined>>;

export interface StockReading {
  /** By option, in the form that a variable of ours would have. */
  values: Map<OptionName, { value: string; from: string }>;
  /** A line for each variable that is read, naming what it is called here. */
  warnings: string[];
}

interface Meaning {
  options: Partial<Record<OptionName, string>>;
  /** What else there is to say. */
  remark?: string;
}

const prefix = 'MDB_MCP_';
const most = 2_147_483_647;
const noLimit = ' 0 and less, no limit there, is the most that there is here.';

/** Each variable that has a counterpart, and what its value means here. */
const variables: Record<string, (value: string, variable: string) => Meaning> = {
  CONNECTION_STRING: (value) => ({ options: { uri: value } }),
  DISABLED_TOOLS: (value) => ({ options: { disabledTools: value } }),
  INDEX_CHECK: (value, variable) => ({ options: { indexCheck: String(onOff(value, variable)) }, ...remarkOnWord(value) }),
  DISABLE_SERVER_SIDE_JS: (value, variable) => ({ options: { allowJs: String(!onOff(value, variable)) }, ...remarkOnWord(value), remark: 'It has the opposite sense.' }),
  MAX_TIME_M_S: (value, variable) => timeLimit(number(value, variable)),
  MAX_TIME_MS: (value, variable) => ({ ...timeLimit(number(value, variable)), remark: 'The stock server reads it by the name MDB_MCP_MAX_TIME_M_S only, and ignored this one.' }),
  MAX_DOCUMENTS_PER_QUERY: (value, variable) => {
    const documents = String(bounded(number(value, variable), 1, 1_000_000));
    return { options: { limit: documents, maxLimit: documents }, ...(Number(value) < 1 ? { remark: noLimit.trim() } : {}) };
  },
  MAX_BYTES_PER_QUERY: (value, variable) => ({ options: { maxResponseBytes: String(bounded(number(value, variable), 2_000, 16_777_216)) }, remark: 'It counts the whole answer here.' }),
  EXPORT_TIMEOUT_MS: (value, variable) => ({ options: { retentionMs: String(Math.min(Math.max(Math.ceil(number(value, variable)), 1_000), most)) }, remark: 'Here it is for all that an operation leaves: its record, its documents, and its export.' }),
  TRANSPORT: (value) => ({ options: { http: String(value === 'http') } }),
  HTTP_HOST: (value) => ({ options: { host: value } }),
  HTTP_PORT: (value) => ({ options: { port: value } }),
  HTTP_BODY_LIMIT: (value, variable) => ({ options: { maxBodyBytes: String(bounded(number(value, variable), 1_024, most)) } }),
  MAX_SESSIONS: (value) => ({ options: { maxSessions: value } }),
  IDLE_TIMEOUT_MS: (value, variable) => ({ options: { sessionIdleMs: String(bounded(number(value, variable), 100, most)) } }),
};

/** @param isGiven whether an option is given by a name of ours: that one counts */
export function readStock(env: Env, isGiven: (name: OptionName) => boolean): StockReading {
  const reading: StockReading = { values: new Map(), warnings: [] };
  const unknown: string[] = [];
  for (const [variable, value] of Object.entries(env)) {
    if (!variable.startsWith(prefix) || value === undefined || value === '') continue;
    const meaning = Object.hasOwn(variables, variable.slice(prefix.length)) ? variables[variable.slice(prefix.length)] : undefined;
    if (meaning !== undefined) take(reading, variable, meaning(value.trim(), variable), isGiven);
    else if (variable === `${prefix}READ_ONLY`) reading.warnings.push(`${variable} changes nothing: this server writes only with ${optionRows.allowWrites.env}.`);
    else unknown.push(variable);
  }
  if (unknown.length > 0) reading.warnings.push(`these variables of the stock server have no counterpart and are ignored: ${unknown.sort().join(', ')}.`);
  return reading;
}

function take({ values, warnings }: StockReading, variable: string, { options, remark }: Meaning, isGiven: (name: OptionName) => boolean): void {
  const names = Object.keys(options) as OptionName[];
  const taken = names.filter((name) => !isGiven(name) && (!values.has(name) || variable === `${prefix}MAX_TIME_M_S`));
  for (const name of taken) values.set(name, { value: options[name] ?? '', from: variable });
  if (names.length === 0) warnings.push(`${variable} is ignored. ${remark ?? ''}`.trim());
  else if (taken.length > 0) warnings.push(`${variable} is read; its name here is ${taken.map((name) => optionRows[name].env).join(' and ')}.${remark === undefined ? '' : ` ${remark}`}`);
}

function onOff(value: string, variable: string): boolean {
  if (/^(true|1|yes|on)$/i.test(value)) return true;
  if (/^(false|0|no|off)$/i.test(value)) return false;
  throw new ConfigError(`${variable} must be true or false.`);
}

function remarkOnWord(value: string): { remark?: string } {
  return value === 'true' || value === 'false' || !/^(true|1|yes|on)$/i.test(value) ? {} : { remark: `${JSON.stringify(value)} means true here; the stock server takes only the word true for it.` };
}

function number(value: string, variable: string): number {
  const found = Number(value);
  if (value === '' || !Number.isFinite(found)) throw new ConfigError(`${variable} must be a number.`);
  return found;
}

/** Nothing and less than nothing is no limit: the most that there is. */
function bounded(value: number, min: number, max: number): number {
  return value <= 0 ? max : Math.min(Math.max(Math.ceil(value), min), max);
}

/** There a call could not ask for more: so it is the ceiling as well. */
function timeLimit(ms: number): Meaning {
  if (ms < 1) return { options: {}, remark: `It means no limit there; here ${optionRows.maxTimeMS.env} stays at its default.` };
  const limit = String(bounded(ms, 1, most));
  return { options: { maxTimeMS: limit, maxTimeMSCeiling: limit } };
}

/** @throws ConfigError when what protected the stock server is missing here */
export function checkStockProtection(env: Env, isProtected: boolean): void {
  if (!isProtected && (env[`${prefix}HTTP_HEADERS`] ?? '') !== '') throw new ConfigError(`${prefix}HTTP_HEADERS is not read here: protect the server with ${optionRows.tokensFile.env}, and unset it.`);
}
