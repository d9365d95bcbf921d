/** The methods of native Tasks, as each protocol version defines them, over whatever knows the tasks. */

import { ProtocolError, ProtocolErrorCode, type Result, type Server, type ServerContext } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { Caller } from '../../core/run.js';
import { LeashError } from '../../domain/errors.js';
import { hasTasks, missingTasks } from '../calls.js';
import type { Era, McpServerDeps } from '../server.js';
import { detailed2026, result2025, status2025, task2025 } from './shapes.js';
import type { TaskSource, TaskView } from './source.js';

/** Tasks in one page of `tasks/list`. */
const pageSize = 50;

const taskParams = z.looseObject({ taskId: z.string() });
const listParams = z.looseObject({ cursor: z.string().optional() });

type CallerFor = (context: ServerContext) => Caller;

export function registerTasks(server: Server, deps: McpServerDeps, era: Era, callerFor: CallerFor): void {
  if (era === 'modern') register2026(server, deps, callerFor);
  else register2025(server, deps, callerFor);
}

function register2025(server: Server, deps: McpServerDeps, callerFor: CallerFor): void {
  const { verifyMs } = deps.limits;
  const find = <View extends TaskView>(taskId: string, ask: (source: TaskSource) => Promise<View | null>) => findTask(deps, taskId, ask);

  server.setRequestHandler('tasks/get', { params: taskParams }, async ({ taskId }, context) => task2025(await find(taskId, (source) => source.get(taskId, callerFor(context)))));
  server.setRequestHandler('tasks/result', { params: taskParams }, async ({ taskId }, context) => {
    const view = await find(taskId, (source) => source.wait(taskId, callerFor(context)));
    if (view.error !== undefined) throw new ProtocolError(view.error.code, view.error.message);
    return result2025(view);
  });
  server.setRequestHandler('tasks/list', { params: listParams }, async ({ cursor }, context) => {
    const tasks = (await Promise.all(deps.tasks.map((source) => source.list(callerFor(context))))).flat();
    const first = cursor === undefined ? 0 : tasks.findIndex(({ taskId }) => taskId === cursor) + 1;
    if (cursor !== undefined && first === 0) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'This cursor is not known any more: list from the beginning.');
    const page = tasks.slice(first, first + pageSize);
    const last = page.at(-1);
    return { tasks: page.map(task2025), ...(last === undefined || first + pageSize >= tasks.length ? {} : { nextCursor: last.taskId }) };
  });
  // The answer is held until the database confirms: 2025-11-25 wants the task to be cancelled when it comes.
  server.setRequestHandler('tasks/cancel', { params: taskParams }, async ({ taskId }, context) => {
    const caller = callerFor(context);
    const { hadEnded, ...task } = await find(taskId, (source) => source.cancel(taskId, caller, verifyMs));
    if (hadEnded) throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The task is ${status2025(task)} already. ${task.statusMessage}`);
    if (task.state === 'cancelled') return task2025(task);
    if (task.state === 'ended') throw new ProtocolError(ProtocolErrorCode.InvalidParams, `The task is over, and nothing proves that this cancellation ended it: it is ${status2025(task)}. ${task.statusMessage}`);
    throw new ProtocolError(ProtocolErrorCode.InternalError, `The database has not confirmed the cancellation within ${verifyMs} ms: the task is still ${status2025(task)}. ${task.statusMessage}`);
  });
}

function register2026(server: Server, deps: McpServerDeps, callerFor: CallerFor): void {
  /** Each request declares the extension for itself. */
  const on = <Params extends z.ZodType>(method: string, params: Params, answer: (params: z.output<Params>, caller: Caller, context: ServerContext) => Promise<Result>) => {
    server.setRequestHandler(method, { params }, async (given, context) => {
      if (!hasTasks(context)) throw missingTasks();
      return await answer(given as z.output<Params>, callerFor(context), context);
    });
  };
  const find = <View extends TaskView>(taskId: string, ask: (source: TaskSource) => Promise<View | null>) => findTask(deps, taskId, ask);

  on('tasks/get', taskParams, async ({ taskId }, caller) => detailed2026(await find(taskId, (source) => source.get(taskId, caller))));
  // The SDK takes `inputResponses` out of the parameters of every request, and keeps those that are objects.
  on('tasks/update', taskParams, async ({ taskId }, caller, { mcpReq }) => {
    await find(taskId, (source) => source.update(taskId, mcpReq.inputResponses ?? {}, caller));
    return {};
  });
  // Acknowledged at once, also when it has ended: what became of it stands in the task.
  on('tasks/cancel', taskParams, async ({ taskId }, caller) => {
    await find(taskId, (source) => source.cancel(taskId, caller, 0));
    return {};
  });
}

/** @throws ProtocolError InvalidParams for a task that is not the caller's or has expired; InternalError when nobody can tell */
async function findTask<View extends TaskView>(deps: McpServerDeps, taskId: string, ask: (source: TaskSource) => Promise<View | null>): Promise<View> {
  for (const source of deps.tasks) {
    try {
      const view = await ask(source);
      if (view !== null) return view;
    } catch (error) {
      if (!(error instanceof LeashError)) throw error;
      throw new ProtocolError(codeOf(error), deps.redact(words(error)));
    }
  }
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `There is no task with the id ${taskId.slice(0, 64)}.`);
}

function codeOf({ code }: LeashError): ProtocolErrorCode {
  return code === 'not_found' || code === 'expired' ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
}

/** Of an id that cannot be one, one that never was, and another principal's the same is said. */
function words({ code, message, database, next }: LeashError): string {
  return code === 'not_found' ? `${message} ${next}` : `${message} ${database} ${next}`;
}
