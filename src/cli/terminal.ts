/** What the commands for a terminal share: one connection, the engine without MCP, and how they end. */

import type { Leash } from '../core/leash.js';
import { pause } from '../core/clock.js';
import type { Clock, Deployment, ExaminedDeployment, Liveness, Log, Store } from '../core/ports.js';
import type { Caller } from '../core/run.js';
import { LeashError } from '../domain/errors.js';
import { say } from './output.js';

export interface Terminal {
  leash: Leash;
  deployment: ExaminedDeployment;
  store: Store;
  clock: Clock;
  log: Log;
  livenessOf(instance: string): Promise<Liveness>;
  /** An engine on one node alone, with an instance of its own, whose data client holds so many connections (two or more). */
  engineAt(node: string, connections: number): { leash: Leash; deployment: Deployment; instance: string };
  /** The hosts of the connection string. */
  hosts: readonly string[];
  /** Whether other credentials are given for looks and kills. */
  hasControlCredentials: boolean;
  redact(text: string): string;
}

/** Exit codes of the commands for a terminal. The help shows them. */
export const exitCodes = {
  done: 0,
  failed: 1,
  usage: 2,
  stillRunning: 3,
  refused: 4,
  notFound: 5,
  unknown: 6,
  unreachable: 7,
  aborted: 8,
} as const;

/** An administrator at a terminal: sees and stops what every principal runs. */
export const terminalCaller: Caller = { principal: '', admin: true, session: '', requestId: 0, signal: new AbortController().signal };

/** How long the connections may take to close, in milliseconds: a node that hangs must not hold up the end. */
const closeMs = 1_000;

/** Never rejects, and never takes longer. */
export async function closeWithin(clock: Clock, closing: readonly Promise<unknown>[]): Promise<void> {
  await pause(clock, closeMs, Promise.all(closing));
}

/** Tells on stderr what a command threw, with what to do next; returns its exit code. */
export function tellError(error: unknown, redact: (text: string) => string): number {
  say(textOf(error, redact));
  return codeOf(error);
}

/** What to do next is our own text, and may show what a connection string looks like. */
function textOf(error: unknown, redact: (text: string) => string): string {
  if (error instanceof LeashError) return [redact(error.message), redact(error.database), error.next].filter((part) => part !== '').join(' ');
  return redact(`an error of this program: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
}

function codeOf(error: unknown): number {
  if (!(error instanceof LeashError)) return exitCodes.failed;
  switch (error.code) {
    case 'bad_argument':
      return exitCodes.usage;
    case 'unreachable':
    case 'authentication_failed':
    case 'not_configured':
      return exitCodes.unreachable;
    case 'not_found':
    case 'expired':
      return exitCodes.notFound;
    case 'refused_by_policy':
      return exitCodes.refused;
    default:
      return exitCodes.failed;
  }
}
