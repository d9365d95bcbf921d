import { randomBytes } from 'node:crypto';
import { MongoClient } from 'mongodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { encodeId, idLengths } from '../../src/domain/ids.js';
import { formatTag, parseTag } from '../../src/domain/tag.js';
import { sleeping, startDetached } from '../support/checked.js';
import { type TestMongo, eventually, running, startMongo, tagged, taggedAs } from '../support/mongo.js';
import { type Ground, type StartedOrphan, orphanServerArgs, prepareGround, startAll } from '../support/orphans.js';
import { freshFolder } from '../support/records.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
/** Operations of no server of ours: left alone whatever happens. */
let outsider: MongoClient;
let folder: string;
let started: TestServer[] = [];

beforeAll(async () => {
  mongo = await startMongo();
  outsider = await new MongoClient(mongo.uri).connect();
  await mongo.client.db('app').collection('things').insertMany([{}, {}, {}]);
});
afterAll(async () => {
  await outsider.close(true);
  await mongo.stop();
});
beforeEach(() => {
  folder = freshFolder();
});
afterEach(async () => {
  await Promise.all(started.map((server) => {
    server.process.kill('SIGCONT');
    return server.close();
  }));
  started = [];
  for (const { opid } of await tagged(mongo.client)) if (opid !== undefined) await mongo.client.db('admin').command({ killOp: 1, op: opid });
});

async function serve(...args: string[]): Promise<TestServer> {
  const server = await startServer({ uri: mongo.uri, stateFolder: folder, args: [...orphanServerArgs, ...args] });
  started.push(server);
  return server;
}

async function killHard(server: TestServer): Promise<void> {
  server.process.kill('SIGKILL');
  await server.exited;
}

const sleeper = { database: 'app', collection: 'things', pipeline: sleeping(120_000) };

/** Instances by operation id, of all that the database shows. */
async function shown(): Promise<Map<string, string>> {
  const tags = (await tagged(mongo.client)).map((row) => parseTag(row['command']?.comment) ?? parseTag(row['cursor']?.originatingCommand?.comment));
  return new Map(tags.flatMap((tag) => (tag === null ? [] : [[tag.operationId, tag.instance] as const])));
}

/** An operation of another program, under this comment. */
function runOutside(comment: string): void {
  outsider.db('app').collection('things').aggregate(sleeping(120_000), { comment }).toArray().catch(() => undefined);
}

const forgedTag = () => {
  const id = (length: number) => encodeId(randomBytes(length), length);
  return formatTag({ instance: id(idLengths.instance), operationId: id(idLengths.operation), principal: id(idLengths.principal), session: id(idLengths.session), kind: 'r', request: 'n:1', own: '' });
};

describe('ten servers that are killed in the middle of fifty operations', () => {
  let ground: Ground;
  beforeAll(async () => {
    ground = await prepareGround(mongo.client);
    return () => ground.release();
  });

  it('leave nothing on the database once a server starts, every operation has its end on record, and nothing else is touched', async () => {
    const [untagged, forged] = ['somebody else', forgedTag()];
    runOutside(untagged);
    runOutside(forged);
    const living = await serve();
    const itsOwn = await startDetached({ server: living, mongo }, sleeper);
    for (const comment of [untagged, forged]) await eventually('it runs', async () => (await running(mongo.client, comment)).length > 0);

    const servers: TestServer[] = [];
    for (let i = 0; i < 10; i += 1) servers.push(await serve());
    const orphans: StartedOrphan[] = [];
    for (const [i, server] of servers.entries()) orphans.push(...(await startAll(server, ground.requests(i), shown)));
    expect(orphans).toHaveLength(50);
    expect(new Set(orphans.map(({ instance }) => instance)).size).toBe(10);

    // Paused first: what is read in batches has an idle cursor then, and keeps it.
    for (const server of servers) server.process.kill('SIGSTOP');
    const iterated = orphans.filter(({ kind }) => kind === 'iterated');
    await eventually('each of the cursors is idle', async () => {
      const idle = (await tagged(mongo.client)).filter(({ type }) => type === 'idleCursor').map((row) => String(row['cursor'].originatingCommand.comment));
      return iterated.every(({ id }) => idle.some((comment) => comment.includes(id)));
    }, 30_000);
    await Promise.all(servers.map(killHard));
    const left = await shown();
    for (const kind of ['function', 'iterated', 'lock', 'merge', 'out']) expect(orphans.filter((orphan) => orphan.kind === kind && left.has(orphan.id)).length, kind).toBeGreaterThan(0);

    const sweeper = await serve();
    await eventually('none of them is left', async () => {
      const now = await shown();
      return orphans.every(({ id }) => !now.has(id));
    }, 60_000);
    const ends = await eventually('each has its end on record', async () => {
      const answers = await Promise.all(orphans.map(async ({ id }) => await sweeper.call('status', { id })));
      return answers.every(({ outcome }) => outcome !== null) && answers;
    }, 60_000);
    for (const [i, end] of ends.entries()) {
      const { kind } = orphans[i] ?? { kind: '' };
      expect(end.outcome, `${kind}: ${end.reason}`).toMatch(/^(killed|lost)$/);
      expect(end.reason).not.toBe('');
      expect(end.wait).toBe('gone');
      if (end.outcome === 'killed') expect(end).toMatchObject({ cause: 'sweep', by: 'us', verdict: 'stopped', kill: { cause: 'sweep' } });
    }
    const killed = ends.filter((_, i) => ['function', 'iterated'].includes(orphans[i]?.kind ?? ''));
    expect(killed.every(({ outcome }) => outcome === 'killed')).toBe(true);
    const written = ends.filter((_, i) => ['lock', 'merge', 'out'].includes(orphans[i]?.kind ?? ''));
    expect(written.every(({ outcome, writes }) => outcome === 'lost' && writes.effects.includes('possible'))).toBe(true);

    const after = await shown();
    expect(orphans.filter(({ id }) => after.has(id))).toEqual([]);
    expect(await running(mongo.client, untagged)).toHaveLength(1);
    expect(await running(mongo.client, forged)).toHaveLength(1);
    expect(await taggedAs(mongo.client, itsOwn.operationId)).toHaveLength(1);
    expect(await living.call('status', { id: itsOwn.operationId })).toMatchObject({ server: 'running', outcome: null });
    for (const comment of [untagged, forged]) for (const { opid } of await running(mongo.client, comment)) await mongo.client.db('admin').command({ killOp: 1, op: opid });
  }, 300_000);
});

describe('the sweep at the start', () => {
  it("leaves a paused server's operation alone", async () => {
    const paused = await serve();
    const handle = await startDetached({ server: paused, mongo }, sleeper);
    paused.process.kill('SIGSTOP');
    const dead = await serve();
    const orphan = await startDetached({ server: dead, mongo }, sleeper);
    await killHard(dead);
    const sweeper = await serve();
    await eventually('the orphan is swept', async () => (await taggedAs(mongo.client, orphan.operationId)).length === 0);
    expect(await taggedAs(mongo.client, handle.operationId)).toHaveLength(1);
    expect(await sweeper.call('status', { id: handle.operationId })).toMatchObject({ outcome: null, server: 'running' });
    paused.process.kill('SIGCONT');
    expect(await paused.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped' });
  });

  it('ends what a server left that was killed before it had answered anything', async () => {
    const dead = await serve();
    dead.call('explain', { database: 'app', collection: 'things', method: [{ name: 'aggregate', arguments: { pipeline: sleeping(120_000) } }], verbosity: 'executionStats' }).catch(() => undefined);
    const id = await eventually('it runs', async () => [...(await shown()).keys()][0]);
    await killHard(dead);
    const sweeper = await serve();
    await eventually('it is swept', async () => (await taggedAs(mongo.client, id)).length === 0);
    await eventually('its end is on record', async () => (await sweeper.call('status', { id })).outcome === 'killed');
    expect(await sweeper.call('status', { id })).toMatchObject({ cause: 'sweep', by: 'us', verdict: 'stopped' });
  });

  it('by two servers at once ends with one record', async () => {
    const dead = await serve();
    const orphans = [await startDetached({ server: dead, mongo }, sleeper), await startDetached({ server: dead, mongo }, { ...sleeper, startAnother: true })];
    await killHard(dead);
    const sweepers = await Promise.all([serve(), serve(), serve()]);
    for (const { operationId } of orphans) {
      await eventually('it is swept', async () => (await taggedAs(mongo.client, operationId)).length === 0);
      for (const server of sweepers) {
        await eventually('its end is on record', async () => (await server.call('status', { id: operationId })).outcome === 'killed');
        expect(await server.call('status', { id: operationId })).toMatchObject({ outcome: 'killed', cause: 'sweep', by: 'us', verdict: 'stopped' });
      }
    }
  });

  it('only reports with --sweep report, and does nothing with --sweep off', async () => {
    const dead = await serve();
    const orphan = await startDetached({ server: dead, mongo }, sleeper);
    await killHard(dead);
    const [off, reporting] = [await serve('--sweep', 'off'), await serve('--sweep', 'report')];
    const line = await eventually('it is reported', () => reporting.stderr.find((text) => text.includes('--sweep report says')));
    expect(JSON.parse(line)).toMatchObject({ operationId: orphan.operationId, namespace: 'app.things' });
    expect(await taggedAs(mongo.client, orphan.operationId)).toHaveLength(1);
    expect(await off.call('status', { id: orphan.operationId })).toMatchObject({ outcome: null, server: 'running' });
    expect(off.stderr.some((text) => text.includes(orphan.operationId) && text.includes('dead server process'))).toBe(false);
    expect(await off.call('kill', { id: orphan.operationId })).toMatchObject({ verdict: 'stopped' });
  });

  it('does not keep a server from its end', async () => {
    const server = await serve();
    await server.call('run', { database: 'app', collection: 'things', pipeline: [] });
    const startedAt = performance.now();
    expect(await server.close()).toEqual({ code: 0, signal: null });
    expect(performance.now() - startedAt).toBeLessThan(5_000);
  });
});
