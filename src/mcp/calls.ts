/** A call of a tool: from what the client sent to what it is answered, in either protocol version. */

import {
  CLIENT_CAPABILITIES_META_KEY, type CallToolRequestParams, type CallToolResult, MissingRequiredClientCapabilityError, ProtocolError, ProtocolErrorCode,
  type Result, SdkError, SdkErrorCode, type ServerContext, inputRequired,
} from '@modelcontextprotocol/server';
import type { Caller } from '../core/run.js';
import { shown } from '../domain/argument-path.js';
import { LeashError } from '../domain/errors.js';
import { errorAnswer } from './answer.js';
import { readArguments } from './arguments.js';
import { toResult } from './render.js';
import type { Era, McpServerDeps } from './server.js';
import { created2025, created2026, tasksExtension } from './tasks/shapes.js';
import type { Tool, ToolAnswer, ToolCaller } from './tool.js';

export interface ToolCalls {
  /** The result of the tool, or the task that it goes on as. */
  call(params: CallToolRequestParams, context: ServerContext): Promise<CallToolResult>;
  /** Whose any request is. */
  callerFor(context: ServerContext): Caller;
}

export function createToolCalls(deps: McpServerDeps, era: Era): ToolCalls {
  const { log, redact } = deps;
  const byName = new Map(deps.tools.map((tool) => [tool.name, tool]));

  function callerFor(context: ServerContext): Caller {
    const { principal, session, admin, causeOfClose } = deps.callerOf(context);
    const { id: requestId, signal } = context.mcpReq;
    return { principal, session, admin, requestId, signal, causeOfAbort: () => (isClosed(signal) ? causeOfClose : 'client_cancelled'), progress: progressOf(context) };
  }

  async function call(params: CallToolRequestParams, context: ServerContext): Promise<CallToolResult> {
    const tool = byName.get(params.name);
    if (tool === undefined) return toResult(errorAnswer(new LeashError('bad_argument', `There is no tool ${shown(params.name)}. There are ${[...byName.keys()].join(', ')}.`), redact));
    const caller: ToolCaller = { ...callerFor(context), task: taskTerms(tool, params, context), inputResponses: context.mcpReq.inputResponses };
    const demanded = caller.task?.demanded === true;
    const answer = await answerOf(tool, params.arguments, caller, demanded);
    // What is asked, and a task, are answers of `tools/call` too: only the SDK's type of a handler knows the one kind.
    if (answer.ask !== undefined) return inputRequired(answer.ask) as Result as CallToolResult;
    const operationId = answer.task?.taskId ?? answer.body['operationId'];
    const goesOn = answer.task?.state === 'working' || answer.task?.state === 'input_required';
    if (goesOn && typeof operationId === 'string') deps.callerOf(context).handedOver?.(operationId);
    if (answer.task === undefined || caller.task === null) return toResult(answer);
    return (demanded ? created2025(answer.task) : created2026(answer.task)) as CallToolResult;
  }

  /** @throws ProtocolError when the client demanded a task, and there is none: a tool's error would not be understood */
  async function answerOf(tool: Tool, given: unknown, caller: ToolCaller, demanded: boolean): Promise<ToolAnswer> {
    const { requestId } = caller;
    const startedAt = performance.now();
    log.info({ tool: tool.name, requestId }, 'call');
    let answer: ToolAnswer;
    try {
      const notes: string[] = [];
      const args = readArguments(tool.name, tool.input, given, notes);
      answer = await tool.call(args as never, notes, caller, deps);
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      if (!(error instanceof LeashError)) log.error({ tool: tool.name, requestId, error: redact(error instanceof Error ? (error.stack ?? error.message) : String(error)) }, 'unexpected error');
      answer = errorAnswer(error, redact);
    }
    const { operationId, outcome, verdict } = answer.body;
    log.info({ tool: tool.name, requestId, operationId, outcome, verdict, isError: answer.isError, cancelled: caller.signal.aborted, elapsedMs: Math.round(performance.now() - startedAt) }, 'answer');
    if (demanded && answer.task === undefined && answer.isError) throw asProtocolError(answer);
    return answer;
  }

  /** 2025-11-25: the client says so in the call. 2026-07-28: the server may, where the request declares the extension. */
  function taskTerms(tool: Tool, params: CallToolRequestParams, context: ServerContext): ToolCaller['task'] {
    if (era === 'modern') {
      if (hasTasks(context)) return tool.task === undefined ? null : { demanded: false, ttlMs: undefined };
      if (tool.task === 'required') throw missingTasks();
      return null;
    }
    const demand = (params as { task?: { ttl?: number } }).task;
    if (demand !== undefined && tool.task === undefined) throw new ProtocolError(ProtocolErrorCode.MethodNotFound, `The tool ${tool.name} does not run as a task: call it without "task".`);
    if (demand === undefined && tool.task === 'required') throw new ProtocolError(ProtocolErrorCode.MethodNotFound, `The tool ${tool.name} runs as a task only: call it with "task".`);
    return demand === undefined ? null : { demanded: true, ttlMs: checkedTtl(demand.ttl) };
  }

  return { call, callerFor };
}

/** @throws ProtocolError for what is no time: nothing is silently changed */
function checkedTtl(ttl: number | undefined): number | undefined {
  if (ttl === undefined || (Number.isSafeInteger(ttl) && ttl >= 0)) return ttl;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `task.ttl is ${ttl}: it must be a whole number of milliseconds, and at least 0.`);
}

/** Whether this request declares the extension: each one says so for itself. */
export function hasTasks(context: ServerContext): boolean {
  const envelope: Record<string, unknown> = { ...context.mcpReq.envelope };
  const capabilities = envelope[CLIENT_CAPABILITIES_META_KEY] as { extensions?: Record<string, unknown> } | undefined;
  return typeof capabilities?.extensions?.[tasksExtension] === 'object' && capabilities.extensions[tasksExtension] !== null;
}

export function missingTasks(): MissingRequiredClientCapabilityError {
  return new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [tasksExtension]: {} } } });
}

function asProtocolError({ body }: ToolAnswer): ProtocolError {
  const { code, message } = body['error'] as { code: string; message: string };
  const isOurs = code === 'internal' || code === 'unreachable' || code === 'shutting_down' || code === 'busy';
  return new ProtocolError(isOurs ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidParams, `${message} ${String(body['next'])}`, body);
}

/** The SDK aborts what is in flight with this error when the connection is closed, and with the client's words when it cancels. */
function isClosed({ reason }: AbortSignal): boolean {
  return reason instanceof SdkError && reason.code === SdkErrorCode.ConnectionClosed;
}

/** Progress that rises with time, at most as often as the core reports, and none after a cancel. */
function progressOf(context: ServerContext): Caller['progress'] {
  const progressToken = context.mcpReq._meta?.progressToken;
  if (progressToken === undefined) return undefined;
  return (message, elapsedSeconds) => {
    if (context.mcpReq.signal.aborted) return;
    void context.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress: elapsedSeconds, message } }).catch(() => undefined);
  };
}
