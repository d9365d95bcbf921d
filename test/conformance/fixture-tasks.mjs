/** Fixture tools that go on as native tasks: the slow ones are operations of the database, the ones that ask the client are kept here. */

import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { runTool } from '../../dist/mcp/tools/run.js';
import { answer, elicit, fixture } from './fixture-tools.mjs';

const pollIntervalMs = 200;
const ttlMs = 3_600_000;
/** JSON-RPC's code for a failure of the server itself. */
const internalErrorCode = -32_603;
/** Short enough that what takes a second has not ended: then the call is handed over. */
const handOverAfterMs = 100;

/** One document, made by JavaScript on the database that takes its time in small steps; a kill ends it between two of them. */
const sleeping = (ms, ending) => [
  { $limit: 1 },
  { $project: { _id: 0, result: { $function: { body: `function (ms) { for (let slept = 0; slept < ms; slept += 50) sleep(50); ${ending} }`, args: [ms], lang: 'js' } } } },
];

/** The real tool `run`, through the leash: the cancel of such a task is a kill in the database. */
const operation = (name, { input = z.strictObject({}), task, pipeline }) =>
  fixture(name, {
    input,
    task,
    call: (args, notes, caller, deps) =>
      runTool.call({ database: 'shop', collection: 'orders', pipeline: pipeline(args), waitMs: args.seconds === 0 ? undefined : handOverAfterMs, startAnother: true }, notes, caller, deps),
  });

const slowCompute = operation('slow_compute', {
  input: z.strictObject({ seconds: z.number().min(0).max(600), label: z.string().optional() }),
  task: 'optional',
  pipeline: ({ seconds, label = '' }) => sleeping(seconds * 1_000, `return ${JSON.stringify(label)};`),
});

const failingJob = operation('failing_job', { task: 'required', pipeline: () => sleeping(1_000, 'throw new Error("this job always fails");') });

/** The tasks of tools that ask something, with a source that tells of them to those who made them. */
export function createFixtureTasks() {
  const tasks = new Map();

  const start = ({ principal }, inputRequests, finish) => {
    const now = new Date().toISOString();
    const task = { principal, inputRequests, responses: {}, finish, ended: undefined, createdAt: now, lastUpdatedAt: now, waiting: [] };
    const taskId = randomUUID();
    tasks.set(taskId, task);
    return { taskId, task };
  };
  const end = (task, ended) => {
    task.ended ??= ended;
    task.lastUpdatedAt = new Date().toISOString();
    for (const resolve of task.waiting.splice(0)) resolve();
  };
  const pending = ({ inputRequests, responses }) => Object.fromEntries(Object.entries(inputRequests).filter(([key]) => responses[key] === undefined));
  const isParked = (task) => Object.keys(pending(task)).length > 0;
  const view = (taskId, task) => ({
    taskId,
    createdAt: task.createdAt,
    lastUpdatedAt: task.lastUpdatedAt,
    ttlMs,
    pollIntervalMs,
    statusMessage: 'a fixture',
    ...(task.ended ?? (isParked(task) ? { state: 'input_required', inputRequests: pending(task) } : { state: 'working' })),
  });
  const own = (taskId, { principal }) => {
    const task = tasks.get(taskId);
    return task?.principal === principal ? task : undefined;
  };
  const seen = (taskId, caller) => {
    const task = own(taskId, caller);
    return task === undefined ? null : view(taskId, task);
  };

  const source = {
    get: async (taskId, caller) => seen(taskId, caller),
    async wait(taskId, caller) {
      const task = own(taskId, caller);
      if (task !== undefined && task.ended === undefined && !isParked(task)) await new Promise((resolve) => task.waiting.push(resolve));
      return seen(taskId, caller);
    },
    async cancel(taskId, caller) {
      const task = own(taskId, caller);
      if (task === undefined) return null;
      const hadEnded = task.ended !== undefined;
      if (!hadEnded) end(task, { state: 'cancelled', answer: { ...answer({ type: 'text', text: 'cancelled' }), isError: true } });
      return { ...view(taskId, task), hadEnded };
    },
    async update(taskId, inputResponses, caller) {
      const task = own(taskId, caller);
      if (task === undefined) return null;
      const asked = pending(task);
      for (const [key, response] of Object.entries(inputResponses)) if (key in asked) task.responses[key] = response;
      if (!isParked(task)) end(task, { state: 'ended', answer: task.finish(task.responses) });
      return view(taskId, task);
    },
    list: async ({ principal }) => [...tasks].filter(([, task]) => task.principal === principal).map(([taskId, task]) => view(taskId, task)).reverse(),
  };

  const says = (words) => answer({ type: 'text', text: words });
  const handOver = ({ taskId, task }) => ({ ...says('goes on as a task'), task: view(taskId, task) });

  const parking = (name, input, inputRequests, finish) =>
    fixture(name, { input, task: 'required', call: async (args, _notes, caller) => handOver(start(caller, inputRequests, (responses) => says(finish(args, responses)))) });

  const protocolErrorJob = fixture('protocol_error_job', {
    task: 'required',
    async call(_args, _notes, caller) {
      const started = start(caller, {}, () => says(''));
      setTimeout(() => { end(started.task, { state: 'ended', error: { code: internalErrorCode, message: 'this job ends in an error of the protocol' } }); }, pollIntervalMs);
      return handOver(started);
    },
  });

  /** Asks within the call first, and goes on as a task when it knows enough. */
  const askThenTask = fixture('test_tool_with_task', {
    task: 'required',
    async call(_args, _notes, caller) {
      const name = caller.inputResponses?.user_name?.content?.name;
      if (name === undefined) return { ...says(''), ask: { inputRequests: { user_name: elicit('What is your name?', 'name') } } };
      const started = start(caller, {}, () => says(''));
      setTimeout(() => { end(started.task, { state: 'ended', answer: says(`Hello, ${name}!`) }); }, pollIntervalMs);
      return handOver(started);
    },
  });

  const tools = [
    slowCompute,
    failingJob,
    protocolErrorJob,
    askThenTask,
    parking('confirm_delete', z.strictObject({ filename: z.string() }), { confirm: elicit('Delete it?', 'confirm', 'boolean') }, ({ filename }, { confirm }) => `${filename}: ${confirm.action}`),
    parking('multi_input', z.strictObject({}), { first: elicit('Your name?', 'name'), second: elicit('And another?', 'name') }, (_args, responses) => Object.keys(responses).join(' and ')),
  ];
  return { source, tools };
}
