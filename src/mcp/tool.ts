/** What a tool is: its schemas, its texts, and a function that receives plainly what it needs. */

import type { z } from 'zod';
import type { Leash } from '../core/leash.js';
import type { Caller } from '../core/run.js';
import type { PolicySettings } from '../domain/policy/pipeline-policy.js';

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
  denyDiskUse: boolean;
  readPreference: 'primary' | 'primaryPreferred' | 'secondary' | 'secondaryPreferred' | 'nearest' | undefined;
}

export interface ToolDeps {
  leash: Leash;
  limits: ToolLimits;
  policy: PolicySettings;
}

/** An answer: what stands in `structuredContent` and, as the same JSON, in the text. */
export interface ToolAnswer {
  body: Record<string, unknown>;
  isError: boolean;
}

export interface Tool {
  name: string;
  title: string;
  description: string;
  input: z.ZodObject;
  output: z.ZodObject;
  annotations: { readOnlyHint: boolean; destructiveHint: boolean; idempotentHint: boolean; openWorldHint: boolean };
  /** `args` has passed `input`; `notes` say what was converted on the way. */
  call(args: never, notes: string[], caller: Caller, deps: ToolDeps): Promise<ToolAnswer>;
}

/** Ties a tool's handler to its input schema. */
export function defineTool<Input extends z.ZodObject>(
  tool: Omit<Tool, 'input' | 'call'> & { input: Input; call(args: z.output<Input>, notes: string[], caller: Caller, deps: ToolDeps): Promise<ToolAnswer> },
): Tool {
  return tool;
}
