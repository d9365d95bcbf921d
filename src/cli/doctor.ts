/** `mongo-leash doctor`: what each node is, what this user may do there, and what a look and a kill really take. */

import type { NodeFindings } from '../core/ports.js';
import { type Trial, tryKill } from '../core/trial.js';
import { LeashError } from '../domain/errors.js';
import { isFinal } from '../domain/words.js';
import { knownLimits } from './known-limits.js';
import { printJson } from './output.js';
import { printCheckup } from './doctor-report.js';
import type { PrivilegeName } from './role.js';
import { type Terminal, exitCodes } from './terminal.js';

/** What was found on one node, with the data user's privileges and those of the control credentials together. */
export interface NodeCheckup {
  node: string;
  answered: true;
  version: string;
  role: string;
  set: string | null;
  /** `user@database`; null without authentication. */
  user: string | null;
  /** The user of the control credentials; null where there are none. */
  controlUser: string | null;
  authentication: boolean;
  sees: { own: boolean; all: boolean };
  kills: { own: boolean; others: boolean; cursors: boolean; sessions: boolean };
  missing: PrivilegeName[];
  dataUserCanWrite: boolean;
  clockDifferenceMs: number | null;
  lookMs: number;
  /** A look while operations held every data connection. */
  control: { ownWay: boolean; lookMs: number | null };
  kill: { verdict: Trial['verdict']; ms: number | null; reason: string };
  /** `control`: of a server besides one for each operation. */
  connections: { control: number | null; current: number | null; available: number | null };
}

export type Checkup = NodeCheckup | { node: string; answered: false; reason: string };

/** Data connections that the trial opens and fills. */
const trialConnections = 2;
/** The driver opens one more to measure round trips, ten seconds after its first. */
const laterConnections = 1;

export async function doctor(terminal: Terminal, { json }: { json?: boolean }): Promise<number> {
  const { deployment } = terminal;
  await deployment.ready();
  const nodes = deployment.nodes();
  const found = await Promise.all(nodes.map((node) => askNode(terminal, node)));
  const checkups: Checkup[] = [];
  // One after the other: each holds a processor for some milliseconds.
  for (const [i, node] of nodes.entries()) {
    const asked = found[i];
    if (asked === undefined) continue;
    checkups.push('reason' in asked ? { node, answered: false, reason: asked.reason } : await checkNode(terminal, node, asked));
  }
  const answered = checkups.filter((checkup) => checkup.answered);
  const limits = knownLimits({ hosts: [...terminal.hosts, ...nodes], versions: answered.map(({ version }) => version), roles: answered.map(({ role }) => role) });
  if (json === true) for (const checkup of checkups) printJson({ ...checkup, knownLimits: limits });
  else printCheckup(checkups, limits, deployment.hiddenMembers());
  return exitCodeFor(checkups);
}

type Asked = { data: NodeFindings; control: NodeFindings | null } | { reason: string };

async function askNode({ deployment, hasControlCredentials }: Terminal, node: string): Promise<Asked> {
  try {
    const [data, control] = await Promise.all([deployment.examine(node, 'data'), hasControlCredentials ? deployment.examine(node, 'control').catch(nameControl) : null]);
    return { data, control };
  } catch (error) {
    if (!(error instanceof LeashError) || error.code !== 'unreachable') throw error;
    return { reason: error.message };
  }
}

function nameControl(error: unknown): never {
  if (!(error instanceof LeashError)) throw error;
  throw new LeashError(error.code, `With the control credentials (MONGO_LEASH_CONTROL_URI): ${error.message}`, { cause: error });
}

async function checkNode(terminal: Terminal, node: string, { data, control }: { data: NodeFindings; control: NodeFindings | null }): Promise<Checkup> {
  const looking = control ?? data;
  const either = (able: 'killOthers' | 'killSessions' | 'killCursors') => data[able] || control?.[able] === true;
  let trial: Trial;
  let connections: number | null = null;
  const { leash, deployment, instance } = terminal.engineAt(node, trialConnections);
  try {
    trial = await tryKill({
      leash,
      deployment,
      clock: terminal.clock,
      connections: trialConnections,
      whileFull: async () => {
        connections = await terminal.deployment.connectionsOf(instance, node);
      },
    });
  } catch (error) {
    if (!(error instanceof LeashError)) throw error;
    if (error.code === 'unreachable') return { node, answered: false, reason: error.message };
    trial = { lookMs: null, verdict: null, killMs: null, reason: error.message };
  } finally {
    await deployment.close();
  }
  const able: Record<PrivilegeName, boolean> = {
    inprog: looking.seeAll,
    killop: either('killOthers'),
    killAnyCursor: either('killCursors'),
    killAnySession: either('killSessions'),
    // Only a replica set has hidden members, and with directConnection one node alone is meant.
    replSetGetConfig: looking.setName === null || terminal.deployment.hiddenMembers().unknownBecause === null,
  };
  return {
    node,
    answered: true,
    version: data.version,
    role: data.role,
    set: data.setName,
    user: data.user,
    controlUser: control?.user ?? null,
    authentication: data.authEnabled,
    sees: { own: looking.seeOwn || looking.seeAll, all: looking.seeAll },
    kills: { own: trial.verdict !== null && isFinal(trial.verdict), others: able.killop, cursors: able.killAnyCursor, sessions: able.killAnySession },
    missing: (Object.keys(able) as PrivilegeName[]).filter((privilege) => !able[privilege]),
    dataUserCanWrite: data.canWrite,
    clockDifferenceMs: data.clockDifferenceMs,
    lookMs: looking.lookMs,
    control: { ownWay: trial.lookMs !== null, lookMs: trial.lookMs },
    kill: { verdict: trial.verdict, ms: trial.killMs, reason: trial.reason },
    connections: { control: connections === null ? null : connections - trialConnections + laterConnections, current: looking.connections?.current ?? null, available: looking.connections?.available ?? null },
  };
}

/** A kill that did not work is worse than a node that did not answer, and that is worse than a privilege that is missing. */
export function exitCodeFor(checkups: readonly Checkup[]): number {
  const answered = checkups.filter((checkup) => checkup.answered);
  if (answered.some(({ kills }) => !kills.own)) return exitCodes.stillRunning;
  if (answered.length < checkups.length) return exitCodes.unknown;
  return answered.some(({ missing }) => missing.length > 0) ? exitCodes.refused : exitCodes.done;
}
