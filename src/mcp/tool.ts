/** What a tool is: its schemas, its texts, and a function that receives plainly what it needs. */

import type { CallToolResult, InputRequiredSpec } from '@modelcontextprotocol/server';
import type { z } from 'zod';
import type { Connections } from '../core/connections.js';
import type { Exports } from '../core/exports.js';
import type { Leash } from '../core/leash.js';
import type { Caller } from '../core/run.js';
import type { PolicySettings } from '../domain/policy/pipeline-policy.js';
import type { Scope } from '../domain/scope.js';
import type { TaskView } from './tasks/source.js';

/** The operator's limits as far as tools apply them. Times in milliseconds, sizes in bytes. */
export interface ToolLimits {
  maxTimeMS: number;
  maxTimeMSCeiling: number;
  waitMs: number;
  verifyMs: number;
  limit: number;
  maxLimit: number;
  responseBytes: number;
  maxResponseBytes: number;
  resultBytes: number;
  /** Of the file of one export. */
  exportBytes: number;
  maxRetentionMs: number;
  deadlineGraceMs: number;
  denyDiskUse: boolean;
  /** Refuse what would scan a whole collection. */
  indexCheck: boolean;
  readPreference: 'primary' | 'primaryPreferred' | 'secondary' | 'secondaryPreferred' | 'nearest' | undefined;
}

export interface ToolDeps {
  leash: Leash;
  connections: Connections;
  limits: ToolLimits;
  policy: PolicySettings;
  exports: Exports;
  /** Takes secrets of connection strings out of a text. */
  redact(text: string): string;
}

/** An answer: what stands in `structuredContent` and, as the same JSON, in the text. */
export interface ToolAnswer {
  body: Record<string, unknown>;
  isError: boolean;
  /** Content in place of that text. */
  content?: CallToolResult['content'];
  /** What the call goes on as, or has been, under its own id; a client that has Tasks gets this instead. */
  task?: TaskView;
  /** What the client must be asked before the call can go on (2026-07-28, `input_required`). */
  ask?: InputRequiredSpec;
}

/** Who calls, and what the call may become. */
export interface ToolCaller extends Caller {
  /** null when it cannot become a native task. `demanded`: the client wants one whatever becomes of it, and may say for how long. */
  task: { demanded: boolean; ttlMs: number | undefined } | null;
  /** Answers of the client to an earlier `ask`. */
  inputResponses: Record<string, unknown> | undefined;
}

export interface Tool {
  name: string;
  title: string;
  description: string;
  input: z.ZodObject;
  output?: z.ZodObject;
  /** What a principal must be allowed to. */
  scope: Scope;
  /** Whether a call of it may become a native task; `required`: nothing else. */
  task?: 'optional' | 'required';
  annotations: { readOnlyHint: boolean; destructiveHint: boolean; idempotentHint: boolean; openWorldHint: boolean };
  /** `args` has passed `input`; `notes` say what was converted on the way. */
  call(args: never, notes: string[], caller: ToolCaller, deps: ToolDeps): Promise<ToolAnswer>;
}

/** Ties a tool's handler to its input schema. */
export function defineTool<Input extends z.ZodObject>(
  tool: Omit<Tool, 'input' | 'call'> & { input: Input; call(args: z.output<Input>, notes: string[], caller: ToolCaller, deps: ToolDeps): Promise<ToolAnswer> },
): Tool {
  return tool;
}
