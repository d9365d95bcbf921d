/** What Claude Code is made to do with a query running, and what must be true afterwards. */
import process from 'node:process';
import { toolName } from './client.mjs';
import { now, until } from './clock.mjs';
import { notificationName } from './model.mjs';
import { answerTo, sentTo } from './wire.mjs';

/** From the client's action to the first look that does not find it. A proven kill takes some tens of milliseconds. */
const goneWithinMs = 2_000;
/** Longer than a scenario takes: the call is not answered before something happens to it. */
const plainWaitMs = 120_000;
/** The call becomes a task when it has not ended by then. */
const taskWaitMs = 1_000;
/** Of a query whose client leaves without a word: its own time limit ends it. */
const shortMaxTimeMs = 8_000;

const run = (query, more) => ({ name: toolName('run'), input: { ...query, ...more } });
const runAsTask = (query, transport) => [() => run(query, { waitMs: taskWaitMs, ...(transport === 'HTTP' ? { maxTimeMS: shortMaxTimeMs } : {}) })];

/** Asked at once, it may truly say that the kill is not proven yet. */
const statusAtTheEnd = (id) => ({ name: toolName('status'), input: { id, waitMs: 10_000 } });

const firstSent = ({ entries }, method) => sentTo(entries, method)[0];
const event = ({ entries }, pattern) => entries.find((entry) => pattern.test(entry.event ?? ''));
const toldOf = ({ told }, name) => told.findLast((each) => each.name === name)?.text ?? '';
const jsonTold = (seen, tool) => {
  try {
    return JSON.parse(toldOf(seen, toolName(tool)));
  } catch {
    return null;
  }
};
const task = ({ entries }) => entries.find(({ message }) => message?.result?.resultType === 'task')?.message.result;
const has = (object, expected) => Object.entries(expected).every(([name, value]) => object?.[name] === value);

/** True of every scenario. */
const always = [
  ['the database showed the operation', ({ sighting }) => sighting.seenAt !== undefined],
  ['it is gone on the database', ({ gone, rowsAfter }) => gone && rowsAfter.length === 0],
  [`after what the client did, and within ${goneWithinMs} ms of it`, ({ sighting, actionAt }) => sighting.goneAt >= actionAt && sighting.goneAt - actionAt < goneWithinMs],
  ['the server process ended with exit code 0: everything it had started was proven to have ended', ({ entries, serverEnd }) => {
    const ends = [serverEnd, ...entries.map((entry) => entry.event).filter((each) => each?.startsWith('server ended'))];
    return ends.every((each) => each === 'server ended with exit code 0');
  }],
];
const isTask = ['the call was answered with a task whose id is the id of the operation in the database', (seen) => task(seen)?.taskId === seen.sighting.first?.operationId];

/**
 * @typedef {{
 *   name: string, interactive: boolean, env?: Record<string, string>, comesBack?: boolean, toldAtLeast?: number,
 *   part(query: object, transport: string): ((told: object[]) => object)[],
 *   act?(stage: { client: object, model: object, transport: string }): Promise<number>,
 *   action(seen: object): { what: string, at: number | undefined }, checks: [string, (seen: object) => boolean][],
 * }} Scenario
 *   `act` does something to Claude Code once the query runs, and says when; `action` says from when on the end is expected;
 *   with `toldAtLeast`, Claude Code stays until the model was told so many things
 */

/** @type {Scenario[]} */
export const scenarios = [
  {
    name: 'TaskStop of a query in the background',
    interactive: true,
    part: (query) => [
      () => run(query, { waitMs: taskWaitMs }),
      (told) => ({ name: 'TaskStop', input: { task_id: /task_id "(\w+)"/.exec(told.at(-1).text)?.[1] } }),
      (told) => statusAtTheEnd(/server-side task (\w+)/.exec(told[0].text)?.[1]),
    ],
    toldAtLeast: 3,
    action: (seen) => ({ what: 'the first tasks/cancel', at: firstSent(seen, 'tasks/cancel')?.at }),
    checks: [
      isTask,
      ['every tasks/cancel was answered, none with an error', ({ entries }) => {
        const answers = sentTo(entries, 'tasks/cancel').map((sent) => answerTo(entries, sent));
        return answers.length > 0 && answers.every((answer) => answer?.message.result !== undefined);
      }],
      ['status told the model of that operation: killed, proven stopped, because of tasks/cancel', (seen) =>
        has(jsonTold(seen, 'status'), { operationId: seen.sighting.first?.operationId, outcome: 'killed', verdict: 'stopped', cause: 'tasks_cancel' })],
    ],
  },
  {
    name: 'a call past MCP_TOOL_TIMEOUT',
    interactive: false,
    env: { MCP_TOOL_TIMEOUT: '3000' },
    part: (query) => [
      () => run(query, { waitMs: plainWaitMs }),
      // A call that was cut has no answer, and so the model has no id.
      () => ({ name: toolName('operations'), input: {} }),
      (told) => statusAtTheEnd(/"operationId":"(\w+)"/.exec(told[1].text)?.[1]),
    ],
    toldAtLeast: 3,
    action: (seen) => ({ what: 'the call was cut', at: (firstSent(seen, 'notifications/cancelled') ?? event(seen, /^client closed the stream of tools\/call/))?.at }),
    checks: [
      ['the model was told of the timeout', (seen) => /timed out/.test(toldOf(seen, toolName('run')))],
      ['operations told the model its id', (seen) => toldOf(seen, toolName('operations')).includes(seen.sighting.first?.operationId)],
      ['status told the model of that operation: killed, proven stopped, because of the cut', (seen) =>
        has(jsonTold(seen, 'status'), { operationId: seen.sighting.first?.operationId, outcome: 'killed', verdict: 'stopped', cause: seen.transport === 'HTTP' ? 'stream_closed' : 'client_cancelled' })],
    ],
  },
  {
    name: '/exit with a call running',
    interactive: true,
    part: (query) => [() => run(query, { waitMs: plainWaitMs })],
    act: ({ client }) => client.leave(),
    action: ({ actedAt }) => ({ what: 'Enter behind /exit', at: actedAt }),
    checks: [],
  },
  {
    name: 'SIGTERM to Claude Code with a call running',
    interactive: false,
    part: (query) => [() => run(query, { waitMs: plainWaitMs })],
    act: async ({ client }) => send(client, 'SIGTERM'),
    action: ({ actedAt }) => ({ what: 'SIGTERM', at: actedAt }),
    checks: [],
  },
  {
    name: 'kill -9 of Claude Code with a call running',
    interactive: false,
    part: (query) => [() => run(query, { waitMs: plainWaitMs })],
    act: async ({ client }) => send(client, 'SIGKILL'),
    action: ({ actedAt }) => ({ what: 'SIGKILL', at: actedAt }),
    checks: [],
  },
  {
    name: '/exit with a task in the background, and back with --continue',
    interactive: true,
    comesBack: true,
    part: runAsTask,
    async act({ client, model, transport }) {
      await inBackground(model);
      const at = await client.leave();
      // It does not ask about a task of a server that lives on.
      return transport === 'HTTP' ? at : client.confirm('Exit and stop tasks');
    },
    action: (seen) => (seen.transport === 'HTTP' ? deadline(seen) : { what: 'Enter on "Exit and stop tasks"', at: seen.actedAt }),
    checks: [
      isTask,
      ['the Claude Code that came back asked for the task, and the model was told how the operation ended', (seen) => {
        const [outcome, cause] = seen.transport === 'HTTP' ? ['timed_out'] : ['killed', 'shutdown'];
        const told = toldOf(seen, notificationName);
        return told.includes(seen.sighting.first?.operationId) && told.includes(`"outcome":"${outcome}"`) && (cause === undefined || told.includes(`"cause":"${cause}"`));
      }],
    ],
  },
  {
    name: 'kill -9 of Claude Code with a task in the background',
    interactive: true,
    part: runAsTask,
    async act({ client, model }) {
      await inBackground(model);
      return send(client, 'SIGKILL');
    },
    action: (seen) => (seen.transport === 'HTTP' ? deadline(seen) : { what: 'SIGKILL', at: seen.actedAt }),
    checks: [isTask],
  },
];

/** The model knows that its call goes on as a task. */
const inBackground = (model) => until('the call is in the background', () => model.told.length > 0, 20_000);

/** Over HTTP nothing tells the server that a client with a task has left: it may come back, and the time limit is what bounds the task. */
const deadline = (seen) => ({ what: `its maxTimeMS of ${shortMaxTimeMs} is over; Claude Code had left`, at: firstSent(seen, 'tools/call').at + shortMaxTimeMs });

/** Sends a signal to Claude Code, and returns when. */
function send(client, name) {
  const at = now();
  process.kill(client.pid, name);
  return at;
}

/** Each check with whether it holds. `seen` is what `play` returned. */
export function judge(scenario, seen) {
  const actionAt = scenario.action(seen).at;
  return [...always, ...scenario.checks].map(([what, holds]) => ({ what, holds: holds({ ...seen, actionAt }) === true }));
}
