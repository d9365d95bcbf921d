/** The engine in the test's own process, on a real deployment, with what crossed the wire kept beside its answers. */

import { randomBytes } from 'node:crypto';
import type { Binary } from 'bson';
import { ConnectionString } from 'mongodb-connection-string-url';
import { createAdmission } from '../../src/core/admission.js';
import { systemClock } from '../../src/core/clock.js';
import { type Inspection, type Leash, type OperationsList, createLeash } from '../../src/core/leash.js';
import type { Deployment, ExecutionEnd, ReadPreference } from '../../src/core/ports.js';
import type { Caller, RunAnswer, RunRequest } from '../../src/core/run.js';
import { encodeId, idLengths } from '../../src/domain/ids.js';
import { createDeployment } from '../../src/mongo/deployment.js';
import { createMemoryStore } from '../../src/store/memory.js';

export interface RunSpec {
  pipeline: object[];
  database?: string;
  collection?: string | null;
  maxTimeMS?: number;
  waitMs?: number;
  limit?: number;
  maxResultBytes?: number;
  readPreference?: ReadPreference;
  /** The target of a `$merge` or `$out` in the pipeline, as `database.collection`. */
  writesTo?: string;
}

export interface Started {
  id: string;
  answer: Promise<RunAnswer>;
  /** The caller's cancel. */
  cancel(): void;
}

/** A call as the wire saw it: evidence that the engine's answers are held against. Times are of `performance.now()`. */
export interface Call {
  sentAt: number | null;
  end: ExecutionEnd | null;
  endedAt: number | null;
  /** The id of the logical session that it was sent with. */
  session: string | null;
  /** The documents that have come so far. */
  documents: readonly Uint8Array[];
}

export interface Engine {
  leash: Leash;
  deployment: Deployment;
  /** By operation id; none for one that never got as far as the driver. */
  calls: ReadonlyMap<string, Call>;
  /** When the first kill of each operation was handed to the wire. */
  firstKillAt: ReadonlyMap<string, number>;
  /** The logical sessions that its operations were sent with. */
  sessions: ReadonlySet<string>;
  /** Those of them whose connection broke: a driver does not use such a session again, and does not end it. */
  brokenSessions(): ReadonlySet<string>;
  run(spec: RunSpec): Started;
  kill(id: string, waitMs?: number): Promise<Inspection>;
  status(id: string, waitMs?: number): Promise<Inspection>;
  operations(): Promise<OperationsList>;
  close(): Promise<void>;
}

export interface EngineOptions {
  maxOperations?: number;
  /** Connections of the data client besides one, where it is not `maxOperations`. */
  connections?: number;
  deadlineGraceMs?: number;
  principal?: string;
}

const newId = (length: number) => encodeId(randomBytes(length), length);
const silent = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };

export async function startEngine(uri: string, { maxOperations = 10, connections = maxOperations, deadlineGraceMs = 2_000, principal = 'tester@here' }: EngineOptions = {}): Promise<Engine> {
  const clock = systemClock();
  const instance = newId(idLengths.instance);
  const session = newId(idLengths.session);
  const calls = new Map<string, Call>();
  const firstKillAt = new Map<string, number>();
  const deployment = spied(createDeployment({ connectionString: new ConnectionString(uri), instance, maxOperations: connections }, clock, silent), calls, firstKillAt);
  const sessionsOf = (used: readonly Call[]) => new Set(used.flatMap(({ session }) => (session === null ? [] : [session])));
  let minted = '';
  let requests = 0;
  const leash = createLeash({
    deployment,
    store: createMemoryStore({ retentionMs: 3_600_000, maxResultBytes: 64_000_000 }, clock),
    clock,
    log: silent,
    instance,
    self: { instance, startedAt: clock.iso(), hostname: 'here', machineId: null, pid: process.pid, bootId: null, pidNamespace: null, processStart: null },
    livenessOf: async () => 'unknown',
    sweepMode: 'off',
    newOperationId: () => (minted = newId(idLengths.operation)),
    admission: createAdmission({ maxOperations, maxQueued: 100 }),
    limits: { deadlineGraceMs, keepMs: 3_600_000 },
    checkPolicy: async () => undefined,
  });
  const asCaller = (signal: AbortSignal): Caller => ({ principal, session, requestId: (requests += 1), signal });
  const calm = () => asCaller(new AbortController().signal);
  return {
    leash,
    deployment,
    calls,
    firstKillAt,
    get sessions() { return sessionsOf([...calls.values()]); },
    brokenSessions: () => sessionsOf([...calls.values()].filter(({ end }) => end?.kind === 'no_reply' || end?.kind === 'given_up')),
    run(spec) {
      const cancel = new AbortController();
      const answer = leash.run(requestOf(spec), asCaller(cancel.signal));
      // A test may look at the answer long after it came, or never.
      answer.catch(() => undefined);
      return { id: minted, answer, cancel: () => { cancel.abort(new Error('cancelled by the caller')); } };
    },
    kill: (id, waitMs = 10_000) => leash.kill({ operationId: id }, calm(), waitMs),
    status: (id, waitMs = 0) => leash.status({ operationId: id }, calm(), waitMs),
    operations: () => leash.operations(calm()),
    close: () => deployment.close(),
  };
}

function requestOf({ pipeline, database = 'app', collection = 'things', maxTimeMS = 60_000, waitMs = 0, limit = 100, maxResultBytes = 64_000_000, readPreference, writesTo }: RunSpec): RunRequest {
  const on = { db: database, coll: collection };
  const writes = writesTo === undefined ? null : { stage: '$merge' as const, target: writesTo, effects: 'not known yet' };
  return {
    tool: 'run',
    on,
    namespaces: [],
    writes,
    execute: { command: { kind: 'aggregate', on, pipeline, writes: writes !== null }, maxTimeMS, limit, maxResultBytes, readPreference },
    ownComment: '',
    waitMs,
    asTask: 'never',
    answerAs: { canonical: false, responseBytes: 40_000 },
    digest: JSON.stringify([database, collection, pipeline]),
    startAnother: true,
    notes: [],
  };
}

/** The id stands in the tag behind the prefix and the instance: `mongo-leash.1.<instance>.<id>.…`. */
const idOf = (tag: string) => tag.split('.')[3] ?? '';

function spied(deployment: Deployment, calls: Map<string, Call>, firstKillAt: Map<string, number>): Deployment {
  // An opid is reused only after a long time: what a look found under it is the operation that a kill of it is for.
  const found = new Map<unknown, string>();
  const key = (node: string, sighting: { opid?: unknown; cursorId?: unknown; kind: string }) => `${node} ${sighting.kind} ${String(sighting.kind === 'operation' ? sighting.opid : sighting.cursorId)}`;
  return {
    ...deployment,
    execute(request, events) {
      const call: Call = { sentAt: null, end: null, endedAt: null, session: null, documents: [] };
      calls.set(idOf(request.comment), call);
      const execution = deployment.execute(request, {
        sent(node) {
          call.sentAt ??= performance.now();
          const lsid = execution.session as { id: Binary } | null;
          call.session = lsid === null ? null : lsid.id.toString('hex');
          events.sent(node);
        },
      });
      call.documents = execution.documents;
      void execution.ended.then((end) => {
        call.end = end;
        call.endedAt = performance.now();
      });
      return execution;
    },
    async look(node) {
      const look = await deployment.look(node);
      if (look.ok) for (const { tag, sighting } of look.hits) found.set(key(node, sighting), tag.operationId);
      return look;
    },
    kill(node, sighting, origin) {
      const id = found.get(key(node, sighting));
      if (id !== undefined && !firstKillAt.has(id)) firstKillAt.set(id, performance.now());
      return deployment.kill(node, sighting, origin);
    },
  };
}
