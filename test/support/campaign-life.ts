/** Plays one life of a campaign, and keeps every word that the engine said about it, with the moment it was heard. */

import { setTimeout as delay } from 'node:timers/promises';
import type { MongoClient } from 'mongodb';
import type { Inspection } from '../../src/core/leash.js';
import type { Outcome, Verdict } from '../../src/domain/words.js';
import { type Load, loadOf } from './campaign-loads.js';
import type { Observer } from './campaign-observer.js';
import type { Act, Life } from './campaign-plan.js';
import type { WirePlayer } from './campaign-wires.js';
import type { Engine } from './engine.js';

/** What an answer said. `at` is `performance.now()` when it was heard, so the claim is not younger. */
export interface Report {
  at: number;
  from: 'run' | 'kill' | 'foreign_kill' | 'status' | 'last';
  verdict: Verdict | null;
  outcome: Outcome | null;
  by: string | null;
  cause: string | null;
  server: string;
  documentsRead: number;
  reason: string;
}

export interface Lived {
  life: Life;
  load: Load;
  id: string;
  startedAt: number;
  /** When it was asked to stop for the first time, by whatever is ours. */
  askedToStopAt: number | null;
  reports: Report[];
  /** An error that an answer was, other than what the fault explains. */
  errors: string[];
  strangerKilled: boolean;
  foreignKilled: boolean;
}

export interface Stage {
  wave: number;
  engine: Engine;
  /** Another process of ours, by its own connection. */
  foreign: Engine;
  observer: Observer;
  wires: WirePlayer;
  witness: MongoClient;
}

export async function playLife(life: Life, stage: Stage): Promise<Lived> {
  const { engine, wires, wave } = stage;
  await delay(life.startAt);
  const load = loadOf(life, wave);
  const started = engine.run(load.spec);
  wires.expect(started.id, life.fault);
  const lived: Lived = { life, load, id: started.id, startedAt: performance.now(), askedToStopAt: null, reports: [], errors: [], strangerKilled: false, foreignKilled: false };
  const answered = started.answer.then(
    ({ record }) => { hear(lived, 'run', { record, verdict: null }); },
    (error: unknown) => { lived.errors.push(`run: ${String(error)}`); },
  );
  await Promise.all([answered, ...life.acts.map((act) => play(act, lived, stage, started.cancel))]);
  return lived;
}

async function play(act: Act, lived: Lived, { engine, foreign, observer, witness }: Stage, cancel: () => void): Promise<void> {
  // An act at 0 comes before anything is sent: not even one turn of the event loop later.
  if (act.at > 0) await delay(act.at);
  // A call that was answered, if only with a handle, has nothing to cancel any more.
  const stops = act.do === 'kill' || (act.do === 'cancel' && !lived.reports.some(({ from }) => from === 'run'));
  if (stops) lived.askedToStopAt ??= performance.now();
  switch (act.do) {
    case 'cancel':
      cancel();
      return;
    case 'kill':
      await Promise.all(Array.from({ length: act.count }, () => ask(lived, 'kill', () => engine.kill(lived.id, act.waitMs))));
      return;
    case 'status':
      await ask(lived, 'status', () => engine.status(lived.id));
      return;
    case 'operations':
      await engine.operations().catch((error: unknown) => { lived.errors.push(`operations: ${String(error)}`); });
      return;
    case 'foreign_kill':
      lived.foreignKilled = true;
      await ask(lived, 'foreign_kill', () => foreign.kill(lived.id, 5_000));
      return;
    case 'stranger_kill': {
      const row = observer.seen.get(lived.id)?.last;
      if (row === undefined) return;
      lived.strangerKilled = true;
      if (row['opid'] !== undefined) await witness.db('admin').command({ killOp: 1, op: row['opid'] });
      else await witness.db('app').command({ killCursors: String(row['ns']).slice('app.'.length), cursors: [row['cursor'].cursorId] });
    }
  }
}

/** Asks, and keeps the answer; that nothing of it can be found is an answer too. */
export async function ask(lived: Lived, from: Report['from'], question: () => Promise<Inspection>): Promise<void> {
  try {
    hear(lived, from, await question());
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (code !== 'not_found' && code !== 'unreachable') lived.errors.push(`${from}: ${String(error)}`);
  }
}

function hear(lived: Lived, from: Report['from'], { record, verdict }: Pick<Inspection, 'record' | 'verdict'>): void {
  const { outcome, by, cause, server, documentsRead, reason } = record;
  lived.reports.push({ at: performance.now(), from, verdict, outcome, by, cause, server, documentsRead, reason });
}
