/** Joins the parts for the commands of a terminal: the engine on a deployment and the store of this machine, without MCP. */

import { randomBytes } from 'node:crypto';
import type { Terminal } from './cli/terminal.js';
import { createAdmission } from './core/admission.js';
import { systemClock } from './core/clock.js';
import { createLeash } from './core/leash.js';
import { createLivenessOf } from './core/liveness.js';
import type { Clock, Deployment, ExaminedDeployment, Log, Store } from './core/ports.js';
import { LeashError, messageOf } from './domain/errors.js';
import { encodeId, idLengths } from './domain/ids.js';
import { createRedactor } from './domain/redact.js';
import { parseConnectionString } from './mongo/connection-string.js';
import { createDeployment } from './mongo/deployment.js';
import { createStore } from './store/create.js';
import { describeInstance, probeProcess, readMachine } from './store/machine.js';
import { createMemoryStore } from './store/memory.js';

export interface TerminalSettings {
  uri: string;
  controlUri: string | undefined;
  /** The local store's folder; the user's own when it is left out. */
  stateFolder: string | undefined;
}

/** A command ends nobody's retention: what servers keep is theirs to drop. */
const forever = { retentionMs: Number.MAX_SAFE_INTEGER, storeBytes: Number.MAX_SAFE_INTEGER };

const newId = (length: number) => encodeId(randomBytes(length), length);

/** The store of this machine, for a command that needs no database. */
export function wireStore(stateFolder: string | undefined, log: Log): { store: Store; clock: Clock } {
  const clock = systemClock();
  return { store: createStore({ store: 'local', stateFolder, keepResults: true, ...forever }, clock, log), clock };
}

/** Connects nothing yet. @throws LeashError bad_argument when a connection string cannot be used */
export function wireTerminal({ uri, controlUri, stateFolder }: TerminalSettings, log: Log): Terminal {
  const { store, clock } = wireStore(stateFolder, log);
  const redact = createRedactor(controlUri === undefined ? [uri] : [uri, controlUri]);
  const here = readMachine();
  const livenessOf = createLivenessOf({ store, here, probe: probeProcess });
  const instance = newId(idLengths.instance);
  const connectionString = parseConnectionString(uri);
  const deployment = openDeployment({
    connectionString,
    controlConnectionString: controlUri === undefined ? undefined : parseConnectionString(controlUri, 'controlUri'),
    instance,
    maxOperations: 1,
    // What runs is asked for also, and above all, while the primary does not answer.
    readPreference: 'primaryPreferred',
  }, clock, log);
  const leashOn = (on: Deployment, as: string, keptIn: Store, maxOperations: number) => createLeash({
    deployment: on,
    store: keptIn,
    clock,
    log,
    instance: as,
    self: describeInstance(as, clock.iso()),
    livenessOf,
    sweepMode: 'off',
    newOperationId: () => newId(idLengths.operation),
    admission: createAdmission({ maxOperations, maxQueued: maxOperations }),
    limits: { deadlineGraceMs: 2_000, keepMs: 3_600_000 },
    checkPolicy: () => Promise.resolve(),
  });
  return {
    leash: leashOn(deployment, instance, store, 1),
    deployment,
    store,
    clock,
    log,
    livenessOf,
    engineAt(node, connections) {
      const own = newId(idLengths.instance);
      const alone = deployment.alone(node, connections, own);
      return { leash: leashOn(alone, own, createMemoryStore({ retentionMs: 3_600_000, maxResultBytes: 1_000_000 }, clock), connections), deployment: alone, instance: own };
    },
    hosts: connectionString.hosts,
    hasControlCredentials: controlUri !== undefined,
    redact,
  };
}

function openDeployment(...args: Parameters<typeof createDeployment>): ExaminedDeployment {
  try {
    return createDeployment(...args);
  } catch (error) {
    if (error instanceof LeashError) throw error;
    throw new LeashError('bad_argument', `The connection string cannot be used: ${messageOf(error)}.`, { next: 'Correct its options.', cause: error });
  }
}
