/** Several engines as one: each request goes to the connection that it names, or to the one that has the operation. */

import { LeashError, messageOf } from '../domain/errors.js';
import type { OperationRecord } from '../domain/operation.js';
import type { Admission } from './admission.js';
import { pause } from './clock.js';
import type { Connection, ConnectionTable } from './connections.js';
import type { Engine, Leash, OperationsList, Reference } from './leash.js';
import { maySee, storedFor } from './listing.js';
import type { Clock, Store } from './ports.js';
import type { Caller } from './request.js';

export interface FleetDeps {
  connections: ConnectionTable;
  store: Pick<Store, 'get' | 'list' | 'problem'>;
  clock: Clock;
  admission: Pick<Admission, 'load'>;
}

/** How long a connection may hold up an answer that the others have given already, in milliseconds. */
const heldUpMs = 2_000;

type Asked<T> = { connection: Connection; answer: T } | { connection: Connection; error: unknown };

export function createFleet({ connections, store, clock, admission }: FleetDeps): Leash {
  const engines = () => connections.opened().map(({ engine }) => engine);

  /** Where to ask: the connection that has it; more than one only where nothing tells which it can be. */
  async function placesOf(reference: Reference, caller: Caller): Promise<Connection[]> {
    const all = connections.visible(caller);
    if (all.length <= 1) return [all[0] ?? connections.resolve(undefined, caller)];
    for (const how of ['own', 'followed'] as const) {
      const holder = all.find(({ opened }) => opened?.engine.holds(reference, caller) === how);
      if (holder !== undefined) return [holder];
    }
    // An engine says that it knows no such request, whichever is asked.
    if ('requestId' in reference) return all.slice(0, 1);
    const record = await store.get(reference.operationId);
    // Another principal's record counts like none at all, so that nobody can tell the two apart.
    if (record === null || !maySee(caller, record)) return all;
    const byId = all.find(({ id }) => id === record.connectionId);
    if (byId !== undefined && byId.source !== 'preconfigured') return [byId];
    if (record.outcome !== null && record.server !== 'not_seen') return [byId ?? all[0] ?? connections.resolve(undefined, caller)];
    return [(await byWhereabouts(record, all)) ?? byId ?? all[0] ?? connections.resolve(undefined, caller)];
  }

  /** The one that leads to the nodes where it can be: what is called preconfigured may be another deployment than it was. */
  async function byWhereabouts({ whereabouts, node }: OperationRecord, all: readonly Connection[]): Promise<Connection | undefined> {
    const nodes = node === null ? (whereabouts?.nodes ?? []) : [node];
    if (nodes.length === 0) return undefined;
    const leadsThere = ({ opened }: Connection) => opened !== null && nodes.every((each) => opened.deployment.nodes().includes(each));
    const known = all.find(leadsThere);
    if (known !== undefined) return known;
    const reached = Promise.all(all.map(async (connection) => {
      connections.engine(connection);
      await connection.opened?.deployment.ready().catch(() => undefined);
    }));
    await pause(clock, heldUpMs, reached);
    return all.find(leadsThere);
  }

  /** Asks each: the first that has it answers. When none has it, what weighs most is said. @throws LeashError */
  async function ask<T>(reference: Reference, caller: Caller, question: (engine: Engine) => Promise<T>): Promise<T> {
    const places = await placesOf(reference, caller);
    const [only, ...others] = places;
    if (only !== undefined && others.length === 0) return await question(connections.engine(only));
    let found: Connection | undefined;
    const asked = await askAll(places, async (engine, connection) => {
      await engine.status(reference, caller, 0);
      found ??= connection;
    }, () => found !== undefined);
    if (found === undefined) throw worstOf(asked);
    return await question(connections.engine(found));
  }

  /** Never rejects. Nothing is waited for once it is enough, and no connection for longer than a moment after the first that answered. */
  async function askAll<T>(places: readonly Connection[], question: (engine: Engine, connection: Connection) => Promise<T>, isEnough: () => boolean = () => false): Promise<Asked<T>[]> {
    const results = new Map<Connection, Asked<T>>();
    let enough: () => void = () => undefined;
    const satisfied = new Promise<void>((resolve) => { enough = resolve; });
    const pending = places.map(async (connection) => {
      try {
        results.set(connection, { connection, answer: await question(connections.engine(connection), connection) });
      } catch (error) {
        results.set(connection, { connection, error });
      }
      if (isEnough()) enough();
    });
    await Promise.race([satisfied, Promise.all(pending), Promise.race(pending).then(() => pause(clock, heldUpMs))]);
    return places.map((connection) => results.get(connection) ?? { connection, error: new LeashError('unreachable', `The connection ${connection.id} did not answer within ${heldUpMs} ms.`) });
  }

  async function operations(caller: Caller): Promise<OperationsList> {
    const all = connections.visible(caller);
    const [only, ...others] = all;
    if (others.length === 0) return await connections.engine(only ?? connections.resolve(undefined, caller)).operations(caller);
    // The one of the start is asked whatever this process has done so far.
    const used = all.filter(({ opened, source }) => opened !== null || source === 'preconfigured');
    const looks = await askAll(used, (engine) => engine.listing(caller));
    const stored = await storedFor(store, caller);
    const looked = new Map(looks.map((each) => [each.connection, each]));
    const lists = await askAll(used, async (_engine, connection) => {
      const look = looked.get(connection);
      if (look === undefined || 'error' in look) throw look?.error;
      return await look.answer(stored);
    });
    const unused = all.filter((each) => !used.includes(each));
    const running = new Map<string, OperationRecord>();
    const found = lists.flatMap((each) => {
      const engine = connections.engine(each.connection);
      const records = 'answer' in each ? each.answer.running : engine.live(caller);
      return records.map((record) => ({ record, id: each.connection.id, isOwn: engine.holds(record, caller) === 'own' }));
    });
    // What was begun here before what is only followed: two connections may lead to one deployment.
    for (const { record, id } of [...found.filter(({ isOwn }) => isOwn), ...found]) {
      if (!running.has(record.operationId)) running.set(record.operationId, { ...record, connectionId: record.connectionId ?? id });
    }
    const unseen = new Map(lists.flatMap((each) => ('answer' in each ? each.answer.unseen : [])).map((record) => [record.operationId, record]));
    // Those of connections that were not asked are on record all the same.
    const ended = new Map([...stored.filter(({ outcome }) => outcome !== null), ...lists.flatMap((each) => ('answer' in each ? each.answer.ended : []))].map((record) => [record.operationId, record]));
    return {
      running: [...running.values()],
      unseen: [...unseen.values()].filter(({ operationId }) => !running.has(operationId) && !ended.has(operationId)),
      ended: [...ended.values()].filter(({ operationId }) => !running.has(operationId)).sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1)),
      looked: [...new Set(lists.flatMap((each) => ('answer' in each ? each.answer.looked : [])))],
      silent: [
        ...lists.flatMap((each) => ('answer' in each ? each.answer.silent : [{ node: `connection ${each.connection.id}`, reason: messageOf(each.error) }])),
        ...unused.map(({ id }) => ({ node: `connection ${id}`, reason: 'this server process has not used it yet' })),
      ],
      storeProblem: store.problem(),
    };
  }

  return {
    async run(request, caller) {
      const connection = connections.resolve(request.connectionId, caller);
      connection.lastUsedAt = clock.iso();
      return await connections.engine(connection).run({ ...request, connectionId: connection.id }, caller);
    },
    status: (reference, caller, waitMs) => ask(reference, caller, (engine) => engine.status(reference, caller, waitMs)),
    kill: (reference, caller, waitMs, cause) => ask(reference, caller, (engine) => engine.kill(reference, caller, waitMs, cause)),
    result: (reference, caller) => ask(reference, caller, (engine) => engine.result(reference, caller)),
    operations,
    endSession(session) {
      for (const engine of engines()) engine.endSession(session);
    },
    isBusy: (session) => engines().some((engine) => engine.isBusy(session)),
    load: () => admission.load(),
    sweep: {
      start: () => { connections.startSweeps(); },
      stop() {
        for (const engine of engines()) engine.sweep.stop();
      },
      async now() {
        const reports = await Promise.all(engines().map((engine) => engine.sweep.now()));
        return {
          orphans: reports.flatMap(({ orphans }) => orphans),
          leftAlone: reports.reduce((sum, { leftAlone }) => sum + leftAlone, 0),
          settled: [...new Set(reports.flatMap(({ settled }) => settled))],
        };
      },
    },
    async shutdown(budgetMs) {
      connections.refuseWork();
      // Each sends its kills in this very call.
      const reports = await Promise.all(engines().map((engine) => engine.shutdown(budgetMs)));
      return {
        allProven: reports.every(({ allProven }) => allProven),
        operations: reports.flatMap(({ operations: ended }) => ended),
        killsSentAfterMs: Math.max(0, ...reports.map(({ killsSentAfterMs }) => killsSentAfterMs)),
        elapsedMs: Math.max(0, ...reports.map(({ elapsedMs }) => elapsedMs)),
      };
    },
  };
}

/** Of the reasons why none has it: that one could not be asked weighs more than that the others do not have it. */
function worstOf(asked: readonly Asked<unknown>[]): unknown {
  const errors = asked.flatMap((each) => ('error' in each ? [each.error] : []));
  const known = errors.filter((error) => error instanceof LeashError);
  const other = errors.find((error) => !(error instanceof LeashError) || !['expired', 'unreachable', 'not_found', 'authentication_failed'].includes(error.code));
  if (other !== undefined) return other;
  const expired = known.find(({ code }) => code === 'expired');
  if (expired !== undefined) return expired;
  const silent = known.filter(({ code }) => code !== 'not_found');
  if (silent.length > 0) return new LeashError('unreachable', `Nothing is known of this operation where it could be asked for, and not everywhere could be: ${silent.map(({ message }) => message).join(' ')}`);
  const [first] = known;
  return new LeashError('not_found', first?.message ?? 'There is no such operation.', { database: [...new Set(known.map(({ database }) => database))].join(' ') });
}
