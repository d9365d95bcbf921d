/** A campaign: waves of random lives on a real mongod behind a proxy, each held against an observer of its own. */

import type { MongoClient } from 'mongodb';
import { type BenchSite, connections, endedWell, profileTagged, profiled } from './bench.js';
import { judgeLife } from './campaign-judge.js';
import { type Lived, type Stage, ask, playLife } from './campaign-life.js';
import { startObserver } from './campaign-observer.js';
import { deadlineGraceMs, planWave } from './campaign-plan.js';
import { startStrangers } from './campaign-strangers.js';
import { playWires } from './campaign-wires.js';
import { type Engine, startEngine } from './engine.js';
import { eventually, tagged } from './mongo.js';
import { type TcpProxy, startProxy } from './tcp-proxy.js';

export interface WaveResult {
  seed: number;
  lives: number;
  problems: string[];
  /** How many lives came to which end. */
  ends: Record<string, number>;
  /** Reads that were called stopped by their absence, and that the server notes as ended well: nobody can know, and it is counted. */
  stoppedButEnded: number;
  /** What was left unknown, and why. */
  unknown: string[];
  looks: number;
  elapsedMs: number;
}

/** Plays one wave. A seed is played again by the same call. */
export async function playWave(site: Pick<BenchSite, 'host' | 'witness'>, watching: MongoClient, seed: number, lives: number): Promise<WaveResult> {
  const startedAt = performance.now();
  const { host, witness } = site;
  const wave = planWave(seed, lives);
  await profileTagged(witness);
  const strangers = await startStrangers(witness, seed);
  const observer = startObserver(watching);
  const proxy = await startProxy(host);
  const engine = await startEngine(proxy.uri, { maxOperations: wave.maxOperations, deadlineGraceMs });
  const foreign = await startEngine(`mongodb://${host}/?directConnection=true`);
  const wires = playWires(proxy, wave.control);
  const stage: Stage = { wave: seed, engine, foreign, observer, wires, witness };
  const problems: string[] = [];

  const lived = await Promise.all(wave.lives.map((life) => playLife(life, stage)));
  wires.lift();
  await Promise.all(lived.map((each) => ask(each, 'last', () => engine.kill(each.id, 5_000))));
  await observer.nextLooks(3);

  const ends: Record<string, number> = {};
  let stoppedButEnded = 0;
  const unknown: string[] = [];
  for (const each of lived) {
    const notes = await profiled(witness, each.id);
    const call = engine.calls.get(each.id);
    problems.push(...judgeLife({
      lived: each,
      sightings: observer.seen.get(each.id),
      call,
      firstKillAt: engine.firstKillAt.get(each.id),
      profiled: notes,
      written: each.load.target === null ? null : await witness.db('app').collection(each.load.target.name).countDocuments(),
      controlFaults: wave.control.length > 0,
      wireWasCut: wireWasCut(proxy, each.id),
    }));
    const last = each.reports.at(-1);
    const end = last?.outcome ?? last?.verdict ?? 'not_found';
    ends[end] = (ends[end] ?? 0) + 1;
    if (last !== undefined && last.outcome === null) unknown.push(`${each.life.kind}, ${JSON.stringify(each.life.fault)}, seen ${observer.seen.get(each.id)?.looks ?? 0} times, call ${call?.end?.kind ?? 'open'}: ${last.reason}`);
    if (last?.outcome === 'killed' && last.server === 'not_seen' && await endedWell(witness, each.id)) stoppedButEnded += 1;
  }

  problems.push(...await strangers.check());
  problems.push(...await leftAfter(witness, { engine, proxy }, lived, wave.maxOperations));
  await foreign.close();
  await proxy.close();
  await eventually('no connection is left', async () => (await connections(witness)).length === 0).catch((error: unknown) => problems.push(String(error)));
  await observer.stop();
  for (const { load } of lived) if (load.target !== null) await witness.db('app').collection(load.target.name).drop();
  return { seed, lives, problems, ends, stoppedButEnded, unknown, looks: observer.looks(), elapsedMs: Math.round(performance.now() - startedAt) };
}

/** Of a connection that was cut while it idled, the driver learns when it writes to it: those bytes come nowhere. */
function wireWasCut(proxy: TcpProxy, id: string): boolean {
  const carriers = proxy.wires().filter((wire) => wire.carried(id));
  return carriers.length === 0 || carriers.some((wire) => wire.wasCut);
}

/** Closes the engine, and says what the database still has of it. */
async function leftAfter(witness: MongoClient, { engine, proxy }: { engine: Engine; proxy: TcpProxy }, lived: readonly Lived[], maxOperations: number): Promise<string[]> {
  const problems: string[] = [];
  const rows = await eventually('nothing tagged is left', async () => (await tagged(witness)).length === 0, 60_000).then(() => [], () => tagged(witness));
  for (const row of rows) problems.push(`left in the database: ${JSON.stringify(row)}`);
  // Sessions are used again, but for those whose connection broke: more than these would be one for each call.
  const broken = lived.filter(({ id }) => ['no_reply', 'given_up'].includes(engine.calls.get(id)?.end?.kind ?? '')).length;
  if (engine.sessions.size > maxOperations + broken + 1) problems.push(`${engine.sessions.size} sessions were used for ${maxOperations} operations at once, of which ${broken} broke`);
  // That the driver asks for the end of a session is seen on its way: mongod keeps no list of sessions that were ended.
  const alive = [...engine.sessions].filter((id) => !engine.brokenSessions().has(id));
  const ended = new Set<string>();
  // A connection that was cut while it idled may be the one that is asked, and nobody learns of it.
  const unreliable = proxy.wires().some((wire) => wire.kind === 'data' && wire.wasCut);
  proxy.onClientBytes((_wire, text) => { if (text.includes('endSessions')) for (const id of alive) if (text.includes(Buffer.from(id, 'hex').toString('latin1'))) ended.add(id); });
  await engine.close();
  if (!unreliable) await eventually('all sessions are ended', () => ended.size === alive.length).catch(() => problems.push(`${alive.length - ended.size} of ${alive.length} sessions were not ended`));
  return problems;
}
