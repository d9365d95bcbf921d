/** The one table of options: each has a flag, an environment variable, a safe default and a check. The README shows it. */

import { z } from 'zod';

/** The largest time limit that the server takes, and the longest timer that Node has. */
const maxInt32 = 2_147_483_647;
/** Digits only: what else Number() takes (1e3, 0x10, nothing) is more likely a slip. */
const digits = (value: unknown) => (typeof value === 'string' && !/^-?\d+(\.\d+)?$/.test(value.trim()) ? Number.NaN : value);
const integer = (min: number, max: number) => z.preprocess(digits, z.coerce.number({ error: 'must be an integer' }).int('must be an integer').min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));
const milliseconds = (min = 1) => integer(min, maxInt32);
const onOff = z.union([z.boolean(), z.enum(['true', 'false', '1', '0'])], { error: 'must be true or false' }).transform((value) => value === true || value === 'true' || value === '1');
const names = z
  .union([z.array(z.string()), z.string().transform((text) => text.split(',').map((name) => name.trim()).filter((name) => name !== ''))])
  .pipe(z.array(z.string().regex(/^\$[a-zA-Z]+$/, 'must be names of stages, as $name')));

export interface OptionRow {
  flag: string;
  /** What stands for the value in the help; absent for a switch. */
  value?: string;
  env: string;
  /** As it is shown; `none` when there is no default. */
  default: string;
  about: string;
  schema: z.ZodType;
}

function row(flag: string, value: string | undefined, fallback: string, about: string, schema: z.ZodType): OptionRow {
  const env = `MONGO_LEASH_${flag.toUpperCase().replaceAll('-', '_')}`;
  return { flag, ...(value === undefined ? {} : { value }), env, default: fallback, about, schema };
}

const none = 'none';

export const optionRows = {
  uri: row('uri', 'connection string', none, 'The database. Prefer the environment: a command line is visible to other users of the machine. MDB_MCP_CONNECTION_STRING is read too', z.string().min(1, 'must not be empty').optional()),
  controlUri: row('control-uri', 'connection string', none, 'Other credentials for looks and kills on the same deployment; a kill is tried with those of the data first', z.string().min(1, 'must not be empty').optional()),
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
  store: row('store', 'kind', 'local', 'Where records and results are kept: local (in the state folder, shared by the servers of this user, there after a restart) or memory', z.enum(['local', 'memory'], { error: 'must be local or memory' })),
  stateFolder: row('state-folder', 'folder', none, "Where the local store is; else the user's state folder of this system", z.string().min(1, 'must not be empty').optional()),
  keepResults: row('keep-results', 'true or false', 'true', 'Whether the local store keeps documents; without, they stay in this process', onOff),
  sweep: row('sweep', 'mode', 'kill', 'What becomes of operations whose server process on this machine is dead: kill, report (to the log) or off', z.enum(['kill', 'report', 'off'], { error: 'must be kill, report or off' })),
  retentionMs: row('retention-ms', 'ms', '3600000', 'How long the record and the documents of an ended operation are kept', milliseconds(1_000)),
  shutdownMs: row('shutdown-ms', 'ms', '4000', 'How long the end of the process may take to prove that everything stopped', milliseconds()),
  readPreference: row('read-preference', 'mode', none, 'Where reads go when a call does not say: primary, primaryPreferred, secondary, secondaryPreferred, nearest', z.enum(['primary', 'primaryPreferred', 'secondary', 'secondaryPreferred', 'nearest'], { error: 'must be primary, primaryPreferred, secondary, secondaryPreferred or nearest' }).optional()),
  denyDiskUse: row('deny-disk-use', undefined, 'false', 'Do not let operations spill to the disk of the server', onOff),
  allowWrites: row('allow-writes', undefined, 'false', 'Let run use $out and $merge', onOff),
  allowJs: row('allow-js', undefined, 'false', 'Let operations run JavaScript on the server ($function, $accumulator, $where)', onOff),
  allowInternal: row('allow-internal', undefined, 'false', "Let operations read admin, local, config and system.*, and the stages that show others' work", onOff),
  allowStage: row('allow-stage', '$name', none, 'A further stage that only reads, for servers newer than this program; may be given again', names),
  logLevel: row('log-level', 'level', 'info', 'What goes to stderr: fatal, error, warn, info, debug, trace, silent', z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], { error: 'must be fatal, error, warn, info, debug, trace or silent' })),
} as const satisfies Record<string, OptionRow>;

export type OptionName = keyof typeof optionRows;

export interface Config {
  uri: string | undefined;
  controlUri: string | undefined;
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
  store: 'local' | 'memory';
  stateFolder: string | undefined;
  keepResults: boolean;
  sweep: 'kill' | 'report' | 'off';
  retentionMs: number;
  shutdownMs: number;
  readPreference: 'primary' | 'primaryPreferred' | 'secondary' | 'secondaryPreferred' | 'nearest' | undefined;
  denyDiskUse: boolean;
  allowWrites: boolean;
  allowJs: boolean;
  allowInternal: boolean;
  allowStage: string[];
  logLevel: string;
}
