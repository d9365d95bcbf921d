/** The schemas that several tools share: one shape for an operation in every answer. */

import { z } from 'zod';
import { outcomes, serverStates, verdicts, waits } from '../domain/words.js';

export const idArgument = z.string().min(1, 'must not be empty').optional().describe('Operation id (= task id)');
export const connectionIdArgument = z.string().min(1, 'must not be empty').optional();
export const requestIdArgument = z.union([z.string(), z.number()]).optional().describe('Or: JSON-RPC request id of a call in this session');
export const millisecondsArgument = z.number().int('must be a whole number of milliseconds').min(0, 'must be at least 0').max(600_000, 'must be at most 600000').optional();
export const canonicalArgument = z.boolean().optional().describe('Documents as canonical EJSON');
export const responseBytesArgument = z.number().int('must be a whole number of bytes').min(2_000, 'must be at least 2000').optional().describe('Size of the answer in bytes');

const evidenceEntry = z.looseObject({ at: z.string(), node: z.string(), saw: z.string() });

/** Fields of an operation as every tool answers them. Which are present depends on what is known. */
export const operationFields = {
  operationId: z.string(),
  requestId: z.union([z.string(), z.number()]),
  database: z.string(),
  collection: z.string(),
  wait: z.enum(waits),
  server: z.enum(serverStates),
  outcome: z.enum(outcomes).nullable(),
  reason: z.string(),
  evidence: z.array(evidenceEntry),
  elapsedMs: z.number(),
  node: z.string().nullable(),
} as const;

export const errorShape = z.looseObject({ code: z.string(), message: z.string(), databaseState: z.string() });

/** Every answer says what to do now, also when it is an error. */
export function answerShape(fields: z.ZodRawShape): z.ZodObject {
  return z.looseObject({ ...Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, (field as z.ZodType).optional()])), error: errorShape.optional(), next: z.string() });
}

export const verdictField = z.enum(verdicts);
