/** The one table of options: each has a flag (but secrets), an environment variable, a safe default and a check. The README shows it. */

import { isIP } from 'node:net';
import { z } from 'zod';

/** The largest time limit that the server takes, and the longest timer that Node has. */
const maxInt32 = 2_147_483_647;
/** Digits only: what else Number() takes (1e3, 0x10, nothing) is more likely a slip. */
const digits = (value: unknown) => (typeof value === 'string' && !/^-?\d+(\.\d+)?$/.test(value.trim()) ? Number.NaN : value);
const integer = (min: number, max: number) => z.preprocess(digits, z.coerce.number({ error: 'must be an integer' }).int('must be an integer').min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));
const milliseconds = (min = 1) => integer(min, maxInt32);
const onOff = z.union([z.boolean(), z.enum(['true', 'false', '1', '0'])], { error: 'must be true or false' }).transform((value) => value === true || value === 'true' || value === '1');
const list = z.union([z.array(z.string()), z.string().transform((text) => text.split(',').map((name) => name.trim()).filter((name) => name !== ''))]);
const hostNames = list.pipe(z.array(z.string().regex(/^(\[[0-9a-fA-F:.]+\]|[\p{L}\p{N}._-]+)$/u, 'must be host names without scheme, port and wildcard')));
/** Brackets of an IPv6 address are for URLs: an address to listen on has none. */
const address = z.string().transform((text) => text.replace(/^\[(.*)\]$/, '$1')).refine((text) => isIP(text) !== 0 || /^[\p{L}\p{N}._-]+$/u.test(text), 'must be an address or a host name, without scheme and port');
const httpUrl = z.string().refine(isPlainHttpUrl, { error: 'must be a URL that begins with http:// or https://, without user, query and fragment', abort: true });
const secureUrl = httpUrl.refine(isSecureUrl, 'must begin with https://, or name this machine (http://localhost or http://127.0.0.1)');
const urlOrFile = z.union([secureUrl, z.string().min(1).regex(/^(?![a-z]+:\/\/)/i)], { error: 'must be a file, or a URL that begins with https:// (http:// only of this machine)' });
const text = z.string().min(1, 'must not be empty').optional();
const none = 'none';
const names = list.pipe(z.array(z.string().regex(/^\$[a-zA-Z]+$/, 'must be names of stages, as $name')));

export interface OptionRow {
  /** Null for a secret, which is read from the environment only: a flag would show it in the list of processes. */
  flag: string | null;
  /** What stands for the value in the help; absent for a switch. */
  value?: string;
  env: string;
  /** As it is shown; `none` when there is no default. */
  default: string;
  about: string;
  schema: z.ZodType;
  /** Holds several values, and none when it is not given. */
  list?: true;
  /** Means something only together with --http. */
  http?: true;
}

function row(flag: string, value: string | undefined, fallback: string, about: string, schema: z.ZodType): OptionRow {
  const env = `MONGO_LEASH_${flag.toUpperCase().replaceAll('-', '_')}`;
  return { flag, ...(value === undefined ? {} : { value }), env, default: fallback, about, schema };
}

/** A row that means something only with --http. */
function httpRow(...args: Parameters<typeof row>): OptionRow {
  return { ...row(...args), http: true };
}

/** A row without a flag. */
function secretRow(variable: string, about: string): OptionRow {
  return { flag: null, env: `MONGO_LEASH_${variable}`, default: none, about, schema: text };
}

/** The name of an option in messages. */
export function shownName({ flag, env }: OptionRow): string {
  return flag === null ? env : `--${flag}`;
}

function isPlainHttpUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return /^https?:$/.test(protocol) && username === '' && password === '' && !/[?#]/.test(value);
}

function isSecureUrl(value: string): boolean {
  return /^(https:\/\/|http:\/\/(localhost|127\.0\.0\.1)([:/]|$))/i.test(value);
}

export const optionRows = {
  uri: row('uri', 'connection string', none, 'The database. Prefer the environment: a command line is visible to other users of the machine. MDB_MCP_CONNECTION_STRING is read too', text),
  controlUri: row('control-uri', 'connection string', none, 'Other credentials for looks and kills on the same deployment; a kill is tried with those of the data first', text),
  connections: row('connections', 'file', none, 'Further deployments: a JSON file of name to connection string (the variable may hold the JSON itself); a name is the connectionId of each', text),
  demo: row('demo', undefined, 'false', 'Start an in-memory replica set with sample data and serve that', onOff),
  maxTimeMS: row('max-time-ms', 'ms', '300000', 'Time limit of an operation on the server (maxTimeMS), when a call names none', milliseconds()),
  maxTimeMSCeiling: row('max-time-ms-ceiling', 'ms', '3600000', 'The most that a call may ask for', milliseconds()),
  deadlineGraceMs: row('deadline-grace-ms', 'ms', '2000', 'How much longer than maxTimeMS an operation may take by the wall clock before it is killed', milliseconds(0)),
  waitMs: row('wait-ms', 'ms', '20000', 'How long a call waits for the end before it hands over the operation id', milliseconds(0)),
  verifyMs: row('verify-ms', 'ms', '10000', 'How long a kill is verified before it is answered; it goes on after that', milliseconds()),
  maxOperations: row('max-operations', 'n', '10', 'Operations at once', integer(1, 1_000)),
  maxQueued: row('max-queued', 'n', '100', 'Operations that may wait for a place; more are refused as busy', integer(0, 100_000)),
  limit: row('limit', 'n', '100', 'Documents that an operation reads, when a call names no limit', integer(1, 1_000_000)),
  maxLimit: row('max-limit', 'n', '10000', 'The most documents that a call may ask for', integer(1, 1_000_000)),
  responseBytes: row('response-bytes', 'bytes', '40000', 'Size of an answer, when a call names no responseBytesLimit', integer(2_000, 16_777_216)),
  maxResponseBytes: row('max-response-bytes', 'bytes', '1048576', 'The largest responseBytesLimit that a call may ask for', integer(2_000, 16_777_216)),
  resultBytes: row('result-bytes', 'bytes', '16777216', 'Bytes of documents that one operation reads and keeps', integer(1_024, 1_073_741_824)),
  storeBytes: row('store-bytes', 'bytes', '268435456', 'Bytes of documents kept of all operations; the oldest go first', integer(1_024, 17_179_869_184)),
  exportBytes: row('export-bytes', 'bytes', '1073741824', 'Size of the file of one export; one that reaches it is cut, and says so', integer(1_024, 1_099_511_627_776)),
  exportStoreBytes: row('export-store-bytes', 'bytes', '4294967296', 'Bytes of all files of exports together; the oldest go first', integer(1_024, 1_099_511_627_776)),
  store: row('store', 'kind', 'local', 'Where records and results are kept: local (in the state folder, shared by the servers of this user, there after a restart) or memory', z.enum(['local', 'memory'], { error: 'must be local or memory' })),
  stateFolder: row('state-folder', 'folder', none, "Where the local store is; else the user's state folder of this system", text),
  keepResults: row('keep-results', 'true or false', 'true', 'Whether the local store keeps documents; without, they stay in this process', onOff),
  sweep: row('sweep', 'mode', 'kill', 'What becomes of operations whose server process on this machine is dead: kill, report (to the log) or off', z.enum(['kill', 'report', 'off'], { error: 'must be kill, report or off' })),
  retentionMs: row('retention-ms', 'ms', '3600000', 'How long the record and the documents of an ended operation are kept', milliseconds(1_000)),
  maxRetentionMs: row('max-retention-ms', 'ms', '86400000', 'The longest time to live that a task may ask for', milliseconds(1_000)),
  shutdownMs: row('shutdown-ms', 'ms', '4000', 'How long the end of the process may take to prove that everything stopped', milliseconds()),
  readPreference: row('read-preference', 'mode', none, 'Where reads go when a call does not say: primary, primaryPreferred, secondary, secondaryPreferred, nearest', z.enum(['primary', 'primaryPreferred', 'secondary', 'secondaryPreferred', 'nearest'], { error: 'must be primary, primaryPreferred, secondary, secondaryPreferred or nearest' }).optional()),
  denyDiskUse: row('deny-disk-use', undefined, 'false', 'Do not let operations spill to the disk of the server', onOff),
  allowWrites: row('allow-writes', undefined, 'false', 'Let run use $out and $merge', onOff),
  allowJs: row('allow-js', undefined, 'false', 'Let operations run JavaScript on the server ($function, $accumulator, $where)', onOff),
  allowInternal: row('allow-internal', undefined, 'false', "Let operations read admin, local, config and system.*, and the stages that show others' work", onOff),
  allowStage: { ...row('allow-stage', '$name', none, 'A further stage that only reads, for servers newer than this program; may be given again', names), list: true },
  indexCheck: row('index-check', undefined, 'false', 'Ask for the plan first, and refuse what would scan a whole collection', onOff),
  tools: row('tools', 'set', 'all', 'Which tools there are: all, or core (run, status, kill, operations, result)', z.enum(['all', 'core'], { error: 'must be all or core' })),
  disabledTools: { ...row('disabled-tools', 'names', none, 'Tools that there are not, separated by commas: names, or read, metadata, connect, mongodb for those of the stock server of that kind; create, update or delete also refuse $out and $merge', list), list: true },
  http: row('http', undefined, 'false', 'Serve MCP over Streamable HTTP, at the path /mcp, instead of stdio', onOff),
  host: httpRow('host', 'address', '127.0.0.1', 'The address that --http listens on', address),
  port: httpRow('port', 'n', '3777', 'The port that --http listens on; 0 for any free one', integer(0, 65_535)),
  publicUrl: httpRow('public-url', 'url', none, "The address under which clients reach --http: its name is allowed as Host, and it is this server's name (resource) in authorization", httpUrl.optional()),
  allowedHosts: { ...httpRow('allowed-hosts', 'names', none, 'Further host names that a request may carry as Host, separated by commas, without ports', hostNames), list: true },
  allowedOrigins: { ...httpRow('allowed-origins', 'names', none, 'Further host names that a request may come from (Origin), separated by commas, without scheme and port', hostNames), list: true },
  tokens: { ...secretRow('TOKENS', 'Bearer tokens for --http, as in --tokens-file; `;` separates them too'), http: true },
  tokensFile: httpRow('tokens-file', 'file', none, 'Bearer tokens for --http, one a line: <name> <scopes, separated by commas> <token, or sha256: and its hash in hex>; scopes are leash:read, leash:kill (holds read) and leash:admin (holds both)', text),
  jwtIssuer: httpRow('jwt-issuer', 'url', none, 'An authorization server whose signed tokens (JWT) are accepted as well', secureUrl.optional()),
  jwtJwks: httpRow('jwt-jwks', 'url or file', none, "The issuer's public keys (JWKS); when not given, the issuer's metadata say where they are", urlOrFile.optional()),
  jwtAudience: httpRow('jwt-audience', 'text', none, 'The audience that a JWT must be for; when not given, the address of this server (--public-url)', text),
  unauthenticatedAccessFromTheNetwork: httpRow('unauthenticated-access-from-the-network', undefined, 'false', 'Start without authentication on an address that other machines reach: whoever reaches it reads the database', onOff),
  tlsCert: httpRow('tls-cert', 'file', none, 'Certificate chain (PEM) for --http', text),
  tlsKey: httpRow('tls-key', 'file', none, 'Private key (PEM) of --tls-cert', text),
  maxBodyBytes: httpRow('max-body-bytes', 'bytes', '4194304', 'The largest body of a request over HTTP', integer(1_024, 1_073_741_824)),
  receiveMs: httpRow('receive-ms', 'ms', '30000', 'How long a client may take for the TLS handshake, and to send a request', milliseconds(100)),
  maxRequestsPerMinute: httpRow('max-requests-per-minute', 'n', '6000', 'Requests of one principal over HTTP, each of a batch counted; kills and cancels are never refused for it', integer(1, 10_000_000)),
  maxSessions: httpRow('max-sessions', 'n', '1000', 'Sessions (2025-era clients) at once', integer(1, 1_000_000)),
  sessionGraceMs: httpRow('session-grace-ms', 'ms', '60000', 'How long a session whose stream was cut may stay away before it is ended and its operations are killed', milliseconds(100)),
  sessionIdleMs: httpRow('session-idle-ms', 'ms', '1800000', 'How long a session may do nothing before it is ended; never while an operation of it runs', milliseconds(100)),
  logLevel: row('log-level', 'level', 'info', 'What goes to stderr: fatal, error, warn, info, debug, trace, silent', z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], { error: 'must be fatal, error, warn, info, debug, trace or silent' })),
} as const satisfies Record<string, OptionRow>;

export type OptionName = keyof typeof optionRows;

export interface Config {
  uri: string | undefined;
  controlUri: string | undefined;
  connections: string | undefined;
  demo: boolean;
  maxTimeMS: number;
  maxTimeMSCeiling: number;
  deadlineGraceMs: number;
  waitMs: number;
  verifyMs: number;
  maxOperations: number;
  maxQueued: number;
  limit: number;
  maxLimit: number;
  responseBytes: number;
  maxResponseBytes: number;
  resultBytes: number;
  storeBytes: number;
  exportBytes: number;
  exportStoreBytes: number;
  store: 'local' | 'memory';
  stateFolder: string | undefined;
  keepResults: boolean;
  sweep: 'kill' | 'report' | 'off';
  retentionMs: number;
  maxRetentionMs: number;
  shutdownMs: number;
  readPreference: 'primary' | 'primaryPreferred' | 'secondary' | 'secondaryPreferred' | 'nearest' | undefined;
  denyDiskUse: boolean;
  allowWrites: boolean;
  allowJs: boolean;
  allowInternal: boolean;
  allowStage: string[];
  indexCheck: boolean;
  tools: 'all' | 'core';
  disabledTools: string[];
  http: boolean;
  host: string;
  port: number;
  publicUrl: string | undefined;
  allowedHosts: string[];
  allowedOrigins: string[];
  tokens: string | undefined;
  tokensFile: string | undefined;
  jwtIssuer: string | undefined;
  jwtJwks: string | undefined;
  jwtAudience: string | undefined;
  unauthenticatedAccessFromTheNetwork: boolean;
  tlsCert: string | undefined;
  tlsKey: string | undefined;
  maxBodyBytes: number;
  receiveMs: number;
  maxRequestsPerMinute: number;
  maxSessions: number;
  sessionGraceMs: number;
  sessionIdleMs: number;
  logLevel: string;
}
