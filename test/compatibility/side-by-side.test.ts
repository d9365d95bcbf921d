/** The stock server and ours get the same calls on the same database: they give the same documents in the same fields, but for what is listed. */

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ConnectionIds, ask } from './ask.js';
import { type Call, calls } from './calls.js';
import { type Answer, type Difference, compareAnswers, compareValues, moving } from './compare.js';
import { loadData } from './data.js';
import { expectedDifferences, expectedFor } from './differences.js';
import type { Expected } from './expected.js';
import { type Ground, installed, startGround, whetherSkipped } from './ground.js';
import { checkPart, code, shownNumber, table } from './page.js';

type ListedTool = Awaited<ReturnType<Ground['ours']['client']['listTools']>>['tools'][number];

const differenceText = ({ kind, path, stock, ours }: Difference) => `${kind} ${path}: ${[stock, ours].map((each) => JSON.stringify(each)?.slice(0, 300) ?? 'nothing').join(' | ')}`;

describe.skipIf(installed.unavailable !== undefined)(`side by side with the stock server${whetherSkipped}`, () => {
  let ground: Ground;
  let lists: { stock: ListedTool[]; ours: ListedTool[] };
  const ids: { stock: ConnectionIds; ours: ConnectionIds } = { stock: {}, ours: {} };
  /** Tools in which each expected difference was met. */
  const met = new Map<Expected, Set<string>>();
  /** Fields of answers, by tool. */
  const fields = { stock: new Map<string, Set<string>>(), ours: new Map<string, Set<string>>() };

  beforeAll(async () => {
    ground = await startGround(({ client }) => loadData(client));
    const [stock, ours] = await Promise.all([ground.stock.client.listTools(), ground.ours.client.listTools()]);
    lists = { stock: stock.tools, ours: ours.tools };
  });
  afterAll(() => ground.stop());

  /** Each difference has its place in the list, and one only. */
  function judge(differences: readonly Difference[]): void {
    const wrong = differences.filter((difference) => {
      const expected = expectedFor(difference);
      for (const each of expected) met.set(each, (met.get(each) ?? new Set()).add(difference.tool));
      return expected.length !== 1;
    });
    expect(wrong.map((each) => `${expectedFor(each).length === 0 ? 'not listed' : 'listed twice'}: ${differenceText(each)}`)).toEqual([]);
  }

  async function askBoth(call: Call): Promise<{ stock: Answer; ours: Answer }> {
    const stock = await ask(ground.stock, call, ids.stock);
    const ours = await ask(ground.ours, call, ids.ours);
    compared(call, stock, ours);
    return { stock, ours };
  }

  function compared({ tool, title }: Call, stock: Answer, ours: Answer): void {
    for (const [side, answer] of [['stock', stock], ['ours', ours]] as const) {
      if (!answer.isError) fields[side].set(tool, new Set([...(fields[side].get(tool) ?? []), ...answer.fields]));
    }
    judge(compareAnswers(stock, ours).map((found) => ({ tool, call: title, ...found })));
  }

  const shared = () => lists.ours.flatMap((ours) => {
    const stock = lists.stock.find(({ name }) => name === ours.name);
    return stock === undefined ? [] : [{ stock, ours }];
  });

  it('the stock server has no tool for reading that ours does not have, but its search of the documentation', () => {
    const missing = lists.stock.filter(({ name }) => lists.ours.every((each) => each.name !== name)).map(({ name }) => name);
    expect(missing).toEqual(['search-knowledge', 'list-knowledge-sources']);
    expect(shared()).toHaveLength(16);
  });

  it('a tool takes every argument that the stock server\'s takes', () => {
    judge(shared().flatMap(({ stock, ours }) => compareListed(stock, ours)));
  });

  it.each(['narrow', 'searchless'] as const)('both open a further connection: %s', async (name) => {
    const both = await askBoth({ tool: 'connect', title: name, args: { connectionString: ground.uris[name], connectionName: `side-by-side-${name}` } });
    for (const side of ['stock', 'ours'] as const) ids[side][name] = String(both[side].body['connectionId']);
  });

  it.each([
    ['a wrong password', (uri: string) => ({ connectionString: uri.replace('root-secret', 'wrong') })],
    ['nothing that listens there', () => ({ connectionString: 'mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=300' })],
    ['no connection string', () => ({ connectionString: 'shop' })],
    ['a name that is taken', (uri: string) => ({ connectionString: uri, connectionName: 'preconfigured' })],
  ])('both refuse to connect: %s', async (title, argumentsFor) => {
    const { stock, ours } = await askBoth({ tool: 'connect', title, args: argumentsFor(ground.mongo.uri) });
    expect([stock.isError, ours.isError]).toEqual([true, true]);
  });

  it.each(calls.map((call) => [`${call.tool}: ${call.title}`, call] as const))('both get %s', async (_title, call) => {
    await askBoth(call);
  });

  it.each(['searchless', 'preconfigured'])('both close the connection: %s', async (name) => {
    const closed = (side: 'stock' | 'ours') => ids[side][name] ?? name;
    compared(closing(name), await ask(ground.stock, closing(closed('stock')), {}), await ask(ground.ours, closing(closed('ours')), {}));
    // What is of the configuration opens again by itself.
    if (name === 'preconfigured') await askBoth({ tool: 'count', title: 'after a disconnect', args: { database: 'shop', collection: 'orders' } });
  });

  describe('in the end', () => {
    const onSameVersion = () => ground.version.startsWith('6.0.');

    it('every listed difference was met', ({ skip }) => {
      if (!onSameVersion()) skip(`the list is that of MongoDB 6.0, and this is ${ground.version}`);
      expect(expectedDifferences.filter((each) => !met.has(each)).map(({ stock, ours }) => `${stock} / ${ours}`)).toEqual([]);
    });

    it('the page has the tools and the differences that were met', ({ skip }) => {
      if (!onSameVersion()) skip(`the page is that of MongoDB 6.0, and this is ${ground.version}`);
      checkPart('tools', toolsPart());
      checkPart('differences', differencesPart());
    });
  });

  function toolsPart(): string {
    const rows = shared().map(({ stock, ours }) => {
      const [theirs, own] = [argumentsOf(stock), argumentsOf(ours)];
      const [theirFields, ownFields] = [fields.stock.get(stock.name) ?? new Set<string>(), fields.ours.get(ours.name) ?? new Set<string>()];
      return [`\`${ours.name}\``, code(theirs), code(own.filter((name) => !theirs.includes(name))), code(theirFields), code([...ownFields].filter((name) => !theirFields.has(name)))];
    });
    const onlyHere = lists.ours.filter(({ name }) => lists.stock.every((each) => each.name !== name)).map(({ name }) => name);
    const onlyThere = lists.stock.filter(({ name }) => lists.ours.every((each) => each.name !== name)).map(({ name }) => name);
    const bytes = (tools: ListedTool[]) => shownNumber(Buffer.byteLength(JSON.stringify(tools)));
    return [
      table(['tool', 'arguments of both', 'only here', 'fields of the answer of both', 'only here'], rows.map((row) => row.map((cell) => cell || '-'))),
      '',
      `Only here: ${code(onlyHere)}. Only there (with \`--readOnly\`): ${code(onlyThere)}, Atlas and the local Atlas deployments.`,
      '',
      `The list of tools, which a model reads in every conversation, takes ${bytes(lists.ours)} bytes here (${lists.ours.length} tools) and ${bytes(lists.stock)} bytes there (${lists.stock.length} tools).`,
    ].join('\n');
  }

  function toolsText(each: Expected): string {
    const names = shared().map(({ ours }) => ours.name);
    const [theirs, others] = [true, false].map((wanted) => names.filter((name) => (met.get(each)?.has(name) ?? false) === wanted)) as [string[], string[]];
    if (others.length === 0) return 'all';
    return others.length < 5 ? `all but ${code(others)}` : code(theirs);
  }

  function differencesPart(): string {
    const rows = expectedDifferences.map((each) => [toolsText(each), each.stock, each.ours, each.why]);
    return [
      `${calls.length} calls were compared, value by value, in the order of documents, of their keys, and of lists. Not compared, since it moves between two calls of one server: ${moving.map(([what]) => what).join(', ')}.`,
      '',
      table(['tools', 'stock server', 'mongo-leash', 'why'], rows),
    ].join('\n');
  }
});

const closing = (connectionId: string): Call => ({ tool: 'disconnect', title: connectionId, args: { connectionId } });

function argumentsOf({ inputSchema }: ListedTool): string[] {
  return Object.keys(inputSchema.properties ?? {});
}

/** What the list says of a tool; descriptions are each server's own. */
function compareListed(stock: ListedTool, ours: ListedTool): Difference[] {
  const listed = ({ inputSchema, outputSchema, annotations }: ListedTool) => {
    const { title: _title, ...hints } = annotations ?? {};
    const properties = Object.entries((inputSchema.properties ?? {}) as Record<string, { type?: string; enum?: string[] }>);
    const described = properties.map(([name, { type, enum: values }]) => [name, { type: type ?? 'any', required: inputSchema.required?.includes(name) ?? false, ...(values === undefined ? {} : { enum: values.join() }) }]);
    return { arguments: Object.fromEntries(described) as object, annotations: hints, ...(outputSchema === undefined ? {} : { outputSchema: true }) };
  };
  return compareValues('', listed(stock), listed(ours)).map((found) => ({ tool: ours.name, call: null, ...found }));
}
