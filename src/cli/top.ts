/** `mongo-leash top`: what runs under our tags, live, with a key to kill the selected one. */

import { pause } from '../core/clock.js';
import type { Deployment, Survey } from '../core/ports.js';
import { type SurveyEntry, takeSurvey } from '../core/survey.js';
import { LeashError } from '../domain/errors.js';
import { showDuration } from './duration.js';
import { type Colour, paint, say } from './output.js';
import { openScreen } from './screen.js';
import { type Terminal, terminalCaller } from './terminal.js';
import { type Line, type TopState, emptyState, pressAll, render } from './top-view.js';

const refreshMs = 1_000;
/** How long a node may take before the others are shown without it, in milliseconds. */
const patienceMs = 1_500;
const verifyMs = 10_000;
const keptNotes = 10;

const colours: Record<Line['style'], Colour | null> = { plain: null, head: 'bold', selected: 'inverse', orphan: 'yellow', warning: 'red', dim: 'dim' };

/** @throws LeashError bad_argument without a terminal; unreachable when there is nothing to look at in the beginning */
export async function top(terminal: Terminal): Promise<number> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) throw new LeashError('bad_argument', 'top needs a terminal.', { database: '', next: 'In a script, use mongo-leash ps --json.' });
  const { clock } = terminal;
  await terminal.deployment.ready();
  const looking = { ...terminal, deployment: patient(terminal) };
  let state: TopState = emptyState;
  let leave: (exitCode: number) => void = () => undefined;
  const left = new Promise<number>((resolve) => { leave = resolve; });
  let reason: string | null = null;

  const screen = openScreen({
    input(text) {
      const pressed = pressAll(state, text);
      state = pressed.state;
      for (const action of pressed.actions) {
        if (action === 'quit') leave(0);
        else void killOne(action.kill);
      }
      draw();
    },
    resized: () => { draw(); },
    gone(why, exitCode) {
      reason = why;
      leave(exitCode);
    },
  });

  function draw(): void {
    screen.draw(render(state, screen.size()).map(({ text, style }) => (colours[style] === null ? text : paint(colours[style], text))));
  }

  async function killOne({ operationId }: SurveyEntry): Promise<void> {
    if (operationId === null) return;
    note(`${operationId}: being killed`);
    try {
      const { record, verdict } = await terminal.leash.kill({ operationId }, terminalCaller, verifyMs, 'command_line');
      note(`${operationId}: ${verdict ?? 'unknown'}${record.kill === null ? '' : ` after ${showDuration(record.kill.elapsedMs)}`}. ${record.reason}`);
    } catch (error) {
      if (!(error instanceof LeashError)) throw error;
      note(`${operationId}: ${terminal.redact(error.message)}`);
    }
    draw();
  }

  function note(text: string): void {
    state = { ...state, notes: [text, ...state.notes].slice(0, keptNotes) };
  }

  let over = false;
  async function refresh(): Promise<void> {
    while (!over) {
      const began = clock.now();
      try {
        const survey = await takeSurvey(looking, { untagged: false });
        state = { ...state, survey, failure: null, at: clock.iso() };
      } catch (error) {
        if (!(error instanceof LeashError)) throw error;
        state = { ...state, failure: terminal.redact(error.message) };
      }
      draw();
      await pause(clock, Math.max(0, refreshMs - (clock.now() - began)), left);
    }
  }

  try {
    draw();
    return await Promise.race([left, refresh().then(() => left)]);
  } finally {
    over = true;
    screen.restore();
    if (reason !== null) say(terminal.redact(reason));
  }
}

/** One node that hangs does not hold up what the others show; its look goes on, and no second one is begun meanwhile. */
function patient({ deployment, clock }: Pick<Terminal, 'deployment' | 'clock'>): Pick<Deployment, 'ready' | 'nodes' | 'survey'> {
  const running = new Map<string, Promise<Survey>>();
  return {
    ready: () => deployment.ready(),
    nodes: () => deployment.nodes(),
    async survey(node) {
      const startedAt = clock.now();
      const survey = running.get(node) ?? deployment.survey(node).finally(() => { running.delete(node); });
      running.set(node, survey);
      let answer: Survey | null = null;
      await pause(clock, patienceMs, survey.then((came) => { answer = came; }));
      return answer ?? { ok: false, node, startedAt, endedAt: clock.now(), reason: `no answer within ${patienceMs} ms` };
    },
  };
}
