/** The tool list is one that every client can read, and every answer is what it promised. */
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { productTools } from '../../src/mcp/tools/all.js';
import { type Checked, sleeping, startChecked, startDetached } from '../support/checked.js';

let rig: Checked;
let tools: any[];

beforeAll(async () => {
  rig = await startChecked({ args: ['--allow-js', '--allow-writes'] });
  ({ tools } = await rig.server.client.listTools());
  await rig.mongo.client.db('app').collection('one').insertOne({});
});
afterAll(async () => {
  await rig.stop();
});

/** Every schema within a schema, with its place. */
function* schemasIn(schema: any, path: string): Generator<{ schema: any; path: string }> {
  yield { schema, path };
  for (const [name, part] of Object.entries(schema.properties ?? {})) yield* schemasIn(part, `${path}.${name}`);
  for (const keyword of ['items', 'additionalProperties', 'not']) if (typeof schema[keyword] === 'object') yield* schemasIn(schema[keyword], `${path}.${keyword}`);
  for (const keyword of ['anyOf', 'oneOf', 'allOf']) for (const [at, part] of (schema[keyword] ?? []).entries()) yield* schemasIn(part, `${path}.${keyword}[${at}]`);
}
const allSchemas = () => tools.flatMap((tool) => [...schemasIn(tool.inputSchema, `${tool.name}.input`), ...(tool.outputSchema === undefined ? [] : schemasIn(tool.outputSchema, `${tool.name}.output`))]);
const typeOf = (value: unknown) => (value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value);

describe('the tool list', () => {
  it('holds every tool, each with a title, a short description, annotations and its schema, and run and kill with that of their answers', () => {
    expect(tools.map(({ name }) => name)).toEqual(productTools.map(({ name }) => name));
    for (const tool of tools) {
      expect(tool.title.length).toBeGreaterThan(3);
      expect(tool.description.length).toBeGreaterThan(40);
      expect(tool.description.length).toBeLessThan(400);
      expect(Object.keys(tool.annotations).sort()).toEqual(['destructiveHint', 'idempotentHint', 'openWorldHint', 'readOnlyHint']);
      expect(tool.inputSchema).toMatchObject({ type: 'object', additionalProperties: false });
    }
    // What each costs in every conversation, an output schema must be worth: the shape of a handle and of a verdict is.
    expect(tools.filter(({ outputSchema }) => outputSchema !== undefined).map(({ name }) => name)).toEqual(['run', 'kill']);
    const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations.readOnlyHint]));
    expect(hints).toMatchObject({ run: false, status: true, kill: false, operations: true, result: true, find: true, count: true, distinct: true, explain: true });
    expect(tools.find(({ name }) => name === 'kill').annotations).toMatchObject({ destructiveHint: true, idempotentHint: true });
  });

  it('is short enough to be sent with every conversation', () => {
    expect(JSON.stringify(tools).length).toBeLessThan(20_000);
  });

  it('has schemas that a validator compiles', () => {
    const ajv = new AjvJsonSchemaValidator();
    for (const tool of tools) for (const schema of [tool.inputSchema, ...(tool.outputSchema === undefined ? [] : [tool.outputSchema])]) expect(() => ajv.getValidator(schema)).not.toThrow();
  });

  it('has items in every array, enums of the type that they name, and only properties that exist as required', () => {
    for (const { schema, path } of allSchemas()) {
      const types: string[] = schema.type === undefined ? [] : [schema.type].flat();
      for (const type of types) expect(['string', 'number', 'integer', 'boolean', 'object', 'array', 'null'], path).toContain(type);
      if (types.includes('array')) expect(schema.items, path).toBeDefined();
      for (const value of [...(schema.enum ?? []), ...('const' in schema ? [schema.const] : [])]) if (types.length > 0) expect(types, path).toContain(typeOf(value));
      for (const name of schema.required ?? []) expect(Object.keys(schema.properties), path).toContain(name);
      // What has to be looked up elsewhere is lost on some clients.
      expect(Object.keys(schema), path).not.toContain('$ref');
    }
  });

  it('requires of run the database and the pipeline, and of the others nothing that another argument replaces', () => {
    const required = Object.fromEntries(tools.map(({ name, inputSchema }) => [name, inputSchema.required ?? []]));
    expect(required).toMatchObject({ run: ['database', 'pipeline'], status: [], kill: [], operations: [], result: [] });
  });
});

describe('every answer, also an error,', () => {
  it('is what the output schema of its tool promises, with the same JSON as text and a next step', async () => {
    const { server } = rig;
    const run = { database: 'app', collection: 'one', pipeline: [] };
    const slow = await startDetached(rig, { ...run, pipeline: sleeping() });
    const id = slow.operationId as string;
    const ended = await server.call('run', run);
    const calls: [string, Record<string, unknown>][] = [
      ['run', run],
      ['run', { ...run, pipeline: [{ $out: 'written' }] }],
      ['run', { ...run, pipeline: [{ $project: { x: { $divide: [1, 0] } } }] }],
      ['run', { ...run, pipeline: sleeping(), maxTimeMS: 60_000, waitMs: 50 }],
      ['run', { ...run, pipeline: sleeping() }],
      ['run', {}],
      ['run', { ...run, pipeline: [{ $currentOp: {} }] }],
      ['status', { id }],
      ['status', { id: ended.operationId }],
      ['status', { requestId: 'none' }],
      ['status', {}],
      ['result', { id }],
      ['result', { id: ended.operationId }],
      ['result', { id: '0'.repeat(26) }],
      ['operations', {}],
      ['operations', { x: 1 }],
      ['kill', { id, waitMs: 0 }],
      ['kill', { id }],
      ['kill', { id: ended.operationId }],
      ['kill', { id: '0'.repeat(26) }],
      ['kill', { id: 'nonsense' }],
      ['status', { id }],
      ['no such tool', {}],
    ];
    const ajv = new AjvJsonSchemaValidator();
    for (const [name, args] of calls) {
      const { content, structuredContent, isError } = await server.callRaw(name, args);
      const what = `${name} ${JSON.stringify(args)}: ${content[0].text}`;
      const schema = tools.find((tool) => tool.name === name)?.outputSchema;
      if (schema !== undefined) expect(ajv.getValidator(schema)(structuredContent), what).toMatchObject({ valid: true });
      expect(content, what).toEqual([{ type: 'text', text: JSON.stringify(structuredContent) }]);
      expect(structuredContent.next.length, what).toBeGreaterThan(5);
      if (isError === true) expect(structuredContent.error ?? structuredContent.outcome, what).toBeDefined();
      if (structuredContent.error !== undefined) expect(structuredContent.error.databaseState.length, what).toBeGreaterThan(5);
    }
    for (const { operationId } of (await server.call('operations')).running) expect(await server.call('kill', { id: operationId })).toMatchObject({ verdict: 'stopped' });
  });
});
