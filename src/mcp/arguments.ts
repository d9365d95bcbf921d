/** Reads tool arguments: strictly, but with what small models send as text accepted and noted. */

import { z } from 'zod';
import { childPath, shown } from '../domain/argument-path.js';
import { jsonTextToValue } from '../domain/ejson-in.js';
import { LeashError } from '../domain/errors.js';

/** Arguments that hold JSON values: text that parses to one is accepted. */
const jsonArguments: ReadonlySet<string> = new Set(['pipeline', 'let', 'collation', 'filter', 'projection', 'sort', 'query', 'method', 'exportTarget']);

/** Unknown arguments that an error names. */
const maxNamed = 5;

/**
 * @param notes gets a sentence for each conversion
 * @throws LeashError bad_argument: one short sentence that says what to send
 */
export function readArguments<Input extends z.ZodObject>(tool: string, schema: Input, given: unknown, notes: string[]): z.output<Input> {
  if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given))) {
    throw new LeashError('bad_argument', `The arguments of ${tool} must be an object.`);
  }
  const converted = Object.fromEntries(Object.entries(given ?? {}).map(([name, value]) => [name, convert(schema, name, value, notes)]));
  const parsed = schema.safeParse(converted);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const path = (issue?.path ?? []).reduce<string>((parent, key) => childPath(parent, typeof key === 'symbol' ? key.toString() : key), '');
  throw new LeashError('bad_argument', messageFor(tool, schema, converted, issue, path), { path: path === '' ? undefined : path });
}

function convert(schema: z.ZodObject, name: string, value: unknown, notes: string[]): unknown {
  if (typeof value !== 'string') return wrapStage(name, value, notes);
  if (jsonArguments.has(name)) {
    notes.push(`${name} came as text and was read as JSON.`);
    return wrapStage(name, jsonTextToValue(value, name), notes);
  }
  // A hint is an index name or a key pattern: only text that is plainly an object is taken for one.
  if (name === 'hint' && value.trim().startsWith('{')) {
    notes.push('hint came as text and was read as JSON.');
    return jsonTextToValue(value, name);
  }
  const expected = kindOf(schema.shape[name]);
  if (expected === 'number' && /^-?\d+(\.\d+)?$/.test(value.trim())) {
    notes.push(`${name} came as text and was read as the number ${Number(value)}.`);
    return Number(value);
  }
  if (expected === 'boolean' && /^(true|false)$/.test(value.trim())) {
    notes.push(`${name} came as text and was read as ${value.trim()}.`);
    return value.trim() === 'true';
  }
  return value;
}

/** The stock server wants an array of one here, only because some clients cannot send a choice: the one without it is as good. */
const arraysOfOne: ReadonlySet<string> = new Set(['method', 'exportTarget']);

/** One stage without its array can mean only one thing. */
function wrapStage(name: string, value: unknown, notes: string[]): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  if (arraysOfOne.has(name)) return [value];
  if (name !== 'pipeline') return value;
  notes.push('pipeline came as one stage and was read as a pipeline of that stage.');
  return [value];
}

function kindOf(schema: unknown): string {
  let inner = schema;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault) inner = inner.unwrap();
  if (inner instanceof z.ZodNumber) return 'number';
  return inner instanceof z.ZodBoolean ? 'boolean' : 'other';
}

function messageFor(tool: string, schema: z.ZodObject, converted: Record<string, unknown>, issue: z.core.$ZodIssue | undefined, path: string): string {
  if (issue === undefined) return `The arguments of ${tool} are not valid.`;
  if (issue.code === 'unrecognized_keys') {
    return `${tool} has no argument ${issue.keys.slice(0, maxNamed).map(shown).join(', ')}. It takes ${Object.keys(schema.shape).join(', ') || 'none'}.`;
  }
  const [name] = issue.path;
  if (issue.path.length === 1 && converted[String(name)] === undefined) return `${tool} needs the argument ${path}.`;
  return path === '' ? issue.message : `${path}: ${issue.message}.`;
}
