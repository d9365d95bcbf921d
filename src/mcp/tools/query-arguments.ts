/** The arguments that the tools for queries share: the stock server's names, and the few that bound and mark an operation. */

import { z } from 'zod';
import { connectionIdArgument } from '../shapes.js';

/** Kept as it came: a schema that copies objects would drop a key such as `__proto__`. */
export const jsonObject = z
  .unknown()
  .refine((value) => typeof value === 'object' && value !== null && !Array.isArray(value), 'must be an object')
  .meta({ type: 'object' });

/** The bounds are in the messages, and not in the schema, which every model reads. */
export const name = z.string().refine((value) => value !== '', 'must not be empty');
export const databaseArgument = { connectionId: connectionIdArgument, database: name };
export const collectionArguments = { ...databaseArgument, collection: name };
export const pipelineArgument = z.array(jsonObject);
export const filterArgument = jsonObject.optional();
export const limitArgument = z.number().int('must be a whole number').min(1, 'must be at least 1').optional();
export const skipArgument = z.number().int('must be a whole number').min(0, 'must be at least 0').optional();
export const countArgument = z.boolean().optional();
/** What the database takes besides the query itself. */
export const queryOptions = { hint: z.union([z.string(), jsonObject]).optional(), collation: jsonObject.optional() };
/** What bounds an operation and marks it. */
export const operationArguments = {
  maxTimeMS: z.number().int('must be a whole number of milliseconds').min(1, 'must be at least 1').refine((value) => value <= 2_147_483_647, 'must be at most 2147483647').optional(),
  comment: z.string().optional(),
};
/** How its documents are answered. Fewer bytes than the frame of an answer are no error: the stock server takes any number. */
export const answerArguments = {
  responseBytesLimit: z.number().optional(),
  canonical: z.boolean().optional(),
};

export const readingHints = { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false } as const;
