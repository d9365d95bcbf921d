/** The tool list over stdio, in both protocol versions: small enough for every conversation, and in words that strict clients take. */
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { productTools } from '../../src/mcp/tools/all.js';
import { openModernRaw, openRaw } from '../support/raw-client.js';
import { type TestServer, startServer } from '../support/server.js';

interface Listed {
  /** The whole message, as it came. */
  line: string;
  tools: any[];
}

/** Whatever could make it longer. */
const everything = ['--allow-writes', '--allow-js', '--allow-internal', '--index-check', '--allow-stage', '$future', '--deny-disk-use'];
const severalConnections = { MONGO_LEASH_CONNECTIONS: '{"a": "mongodb://127.0.0.1:1/", "b": "mongodb://127.0.0.1:2/"}' };
const lists: [string, typeof openRaw, string[], Record<string, string>][] = [
  ['2025-11-25', openRaw, [], {}],
  ['2026-07-28', openModernRaw, [], {}],
  ['2025-11-25 with every option', openRaw, everything, severalConnections],
  ['2026-07-28 with every option', openModernRaw, everything, severalConnections],
];
const listed = new Map<string, Listed>();

beforeAll(async () => {
  await Promise.all(lists.map(async ([name, open, args, env]) => {
    const server: TestServer = await startServer({ raw: true, uri: 'mongodb://127.0.0.1:1/', args, env });
    const client = await open(server);
    client.request('list', 'tools/list');
    const message = await client.answer('list');
    listed.set(name, { line: JSON.stringify(message), tools: message.result.tools });
    await server.close();
  }));
});

/** Every schema within a schema, with its place. */
function* schemasIn(schema: any, path: string): Generator<{ schema: any; path: string }> {
  yield { schema, path };
  for (const [name, part] of Object.entries(schema.properties ?? {})) yield* schemasIn(part, `${path}.${name}`);
  if (schema.items !== undefined) yield* schemasIn(schema.items, `${path}.items`);
  for (const [at, part] of (schema.anyOf ?? []).entries()) yield* schemasIn(part, `${path}.anyOf[${at}]`);
}

describe.each(lists.map(([name]) => name))('in %s', (name) => {
  const of = () => listed.get(name) ?? { line: '', tools: [] };
  const roots = () => of().tools.flatMap((tool) => [{ path: `${tool.name}.input`, schema: tool.inputSchema }, ...(tool.outputSchema === undefined ? [] : [{ path: `${tool.name}.output`, schema: tool.outputSchema }])]);
  const schemas = () => roots().flatMap(({ schema, path }) => [...schemasIn(schema, path)]);

  it('holds every tool, and takes at most 20,000 bytes on the wire', () => {
    expect(of().tools.map((tool) => tool.name)).toEqual(productTools.map((tool) => tool.name));
    expect(Buffer.byteLength(of().line)).toBeLessThanOrEqual(20_000);
  });

  it('has names that every client takes, also behind the name of the server', () => {
    for (const tool of of().tools) {
      expect(tool.name).toMatch(/^[a-zA-Z][a-zA-Z0-9_-]*$/);
      expect(`mcp__mongo-leash__${tool.name}`.length).toBeLessThanOrEqual(64);
      expect(tool.description.trim().length).toBeGreaterThan(40);
    }
  });

  it('has an object with properties at each root, and nothing else there', () => {
    for (const { schema, path } of roots()) {
      expect(schema.type, path).toBe('object');
      expect(typeof schema.properties, path).toBe('object');
      expect(Object.keys(schema).filter((key) => !['type', 'properties', 'required', 'additionalProperties'].includes(key)), path).toEqual([]);
    }
  });

  it('uses only words that all dialects have in common, each where it belongs', () => {
    const ofType: Record<string, string[]> = {
      object: ['properties', 'required', 'additionalProperties'],
      array: ['items', 'minItems', 'maxItems'],
      string: ['enum', 'minLength', 'maxLength'],
      integer: ['minimum', 'maximum'],
      number: ['minimum', 'maximum'],
      boolean: [],
      null: [],
    };
    for (const { schema, path } of schemas()) {
      // Some take no word beside a choice.
      if (schema.anyOf !== undefined) {
        expect(Object.keys(schema), path).toEqual(['anyOf']);
        expect(schema.anyOf.length, path).toBeGreaterThan(1);
        continue;
      }
      expect(Object.keys(ofType), path).toContain(schema.type);
      expect(Object.keys(schema).filter((key) => key !== 'type' && key !== 'description' && !ofType[schema.type]?.includes(key)), path).toEqual([]);
    }
  });

  it('has items in every array, and enums of texts that are none of them empty or twice there', () => {
    for (const { schema, path } of schemas()) {
      if (schema.type === 'array') expect(Object.keys(schema.items), path).toContain('type');
      if (schema.enum === undefined) continue;
      expect(schema.enum.every((value: unknown) => typeof value === 'string' && value !== ''), path).toBe(true);
      expect(new Set(schema.enum).size, path).toBe(schema.enum.length);
    }
  });

  it('requires only what there is, closes what a call may send, and names properties plainly', () => {
    for (const { schema, path } of schemas()) {
      for (const required of schema.required ?? []) expect(Object.keys(schema.properties), path).toContain(required);
      for (const property of Object.keys(schema.properties ?? {})) expect(property, path).toMatch(/^[a-zA-Z][a-zA-Z0-9_]{0,63}$/);
      if (schema.additionalProperties !== undefined) expect(schema.additionalProperties, path).toBe(false);
    }
    for (const tool of of().tools) expect(tool.inputSchema.additionalProperties, tool.name).toBe(false);
  });

  it('is valid, and without a doubt, as JSON Schema draft-07 and 2020-12', () => {
    const dialects = [new Ajv({ strict: true, validateSchema: true }), new Ajv2020({ strict: true, validateSchema: true })];
    for (const { schema, path } of roots()) for (const ajv of dialects) expect(() => ajv.compile(schema), path).not.toThrow();
  });
});

it('both versions list the same tools but for what the earlier one says of tasks', () => {
  const plain = (name: string) => listed.get(name)?.tools.map(({ execution: _execution, ...tool }) => tool);
  expect(plain('2026-07-28')).toEqual(plain('2025-11-25'));
});

describe('an answer of a tool that promises a form', () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startServer({});
    // With the tools listed, the client holds every answer against its output schema.
    await server.client.listTools();
  });
  afterAll(() => server.close());

  it('has it also where there is no database', async () => {
    const promising = listed.get('2025-11-25')?.tools.filter(({ outputSchema }) => outputSchema !== undefined).map((tool) => tool.name);
    expect(promising).toEqual(['run', 'kill']);
    expect(await server.call('run', { database: 'a', pipeline: [] })).toMatchObject({ error: { code: 'not_configured' } });
    expect(await server.call('kill', { id: '0'.repeat(26) })).toMatchObject({ error: { code: 'not_configured' } });
  });
});
