/** The database of a run: an in-memory replica set with a query that takes very long, and an independent connection that judges. */
import { readFile } from 'node:fs/promises';
import { MongoClient } from 'mongodb';
import { startEmbedded } from '../../dist/cli/embedded.js';
import { now, until } from './clock.mjs';

/** A cross join that no index can serve, from the collection of runaways of the tests. */
const caseFile = new URL('../../test/cases/runaways/01-cross-join-lookup-no-index.json', import.meta.url);
const database = 'claude_code';
/** An operation can be missed once while it changes; it is gone when it is missed so often in a row. */
const emptyLooks = 3;

/**
 * Starts it. mongodb-memory-server finds the mongod by MONGOMS_SYSTEM_BINARY.
 * @returns {Promise<{ uri: string, version: string, query: object, watch: Function, rows: Function, clear(): Promise<void>, stop(): Promise<void> }>}
 *   `query` holds the arguments of `run` for the long query
 */
export async function startDatabase() {
  const embedded = await startEmbedded();
  const witness = new MongoClient(embedded.uri, { appName: 'witness', serverSelectionTimeoutMS: 10_000 });
  const { setup, op } = JSON.parse(await readFile(caseFile, 'utf8'));
  for (const command of setup) await witness.db(database).command(command);
  const { version } = await witness.db('admin').command({ buildInfo: 1 });

  /** What runs or idles under a tag of mongo-leash. */
  const rows = async () => {
    const tagged = { $regex: String.raw`^mongo-leash\.1\.` };
    const found = await witness.db('admin').aggregate([{ $currentOp: { allUsers: true, idleCursors: true } }, { $match: { $or: [{ 'command.comment': tagged }, { 'cursor.originatingCommand.comment': tagged }] } }]).toArray();
    return found.map(({ opid, op: kind, type, ns, microsecs_running: micros, planSummary, command, cursor }) => ({
      opid,
      kind: kind ?? type,
      ns,
      runningMs: Math.round(Number(micros ?? 0) / 1000),
      plan: planSummary ?? '',
      operationId: String(command?.comment ?? cursor?.originatingCommand?.comment).split('.')[3],
    }));
  };

  /** Looks again and again, from now until an operation has come and gone, or `stop` is called. */
  const watch = () => {
    const sighting = { first: undefined, last: undefined, seenAt: undefined, goneAt: undefined };
    let stopped = false;
    const looking = (async () => {
      let empty = [];
      while (!stopped && empty.length < emptyLooks) {
        const askedAt = now();
        const [row] = await rows();
        if (row !== undefined) {
          sighting.first ??= row;
          sighting.last = row;
          sighting.seenAt ??= now();
          empty = [];
        } else if (sighting.first !== undefined) empty.push(askedAt);
        await new Promise((resolve) => { setTimeout(resolve, 5); });
      }
      if (empty.length === emptyLooks) sighting.goneAt = empty[0];
    })();
    // Whoever waits is told; nobody may wait at the moment.
    looking.catch(() => undefined);
    return {
      sighting,
      seen: (withinMs) => until('the database shows the operation', () => failing(looking, sighting.first), withinMs),
      /** Resolves to whether it is gone; what it saw stays in `sighting`. */
      gone: (withinMs) => until('the database shows the operation no more', () => failing(looking, sighting.goneAt), withinMs).then(() => true, () => false),
      async stop() {
        stopped = true;
        await looking;
      },
    };
  };

  return {
    uri: embedded.uri,
    version,
    query: { database, collection: op.coll, pipeline: op.pipeline },
    rows,
    watch,
    /** Ends what a server has left running, so that the next scenario begins with nothing. */
    async clear() {
      for (const { opid } of await rows()) if (opid !== undefined) await witness.db('admin').command({ killOp: 1, op: opid });
    },
    async stop() {
      await witness.close();
      await embedded.stop();
    },
  };
}

/** The value; throws when the look that would bring it has failed. */
const failing = (looking, value) => Promise.race([looking.then(() => value), Promise.resolve(value)]);
