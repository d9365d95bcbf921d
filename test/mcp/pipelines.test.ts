import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type PipelineCase, pipelineCases, pipelineJson } from '../support/cases.js';
import { canonical, readCanonical } from '../support/exact.js';
import { type TestMongo, eventually, startMongo, taggedAs } from '../support/mongo.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;
const cases = pipelineCases();
const databaseOf = ({ name }: PipelineCase) => `case_${name.slice(0, 2)}`;
const named = (start: string) => {
  const found = cases.find(({ name }) => name.startsWith(start));
  if (found === undefined) throw new Error(`no pipeline case ${start}`);
  return found;
};

beforeAll(async () => {
  mongo = await startMongo();
  server = await startServer({ uri: mongo.uri, args: ['--allow-js'] });
  for (const each of cases) await setUp(each);
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

async function setUp(each: PipelineCase): Promise<void> {
  const db = mongo.client.db(databaseOf(each));
  for (const { collection, docs, indexes = [] } of each.setup) {
    await db.collection(collection).insertMany(docs);
    for (const { key, options } of indexes) await db.collection(collection).createIndex(key, options ?? {});
  }
  for (const command of each.commands ?? []) await db.command(command);
}

/** The case as a client sends it: plain JSON, and no collection for one on the database. */
function argumentsOf(each: PipelineCase): Record<string, unknown> {
  const { pipeline, collation } = pipelineJson(each.name);
  return {
    database: databaseOf(each),
    ...(each.collection === null ? {} : { collection: each.collection }),
    pipeline,
    ...(collation === undefined ? {} : { collation }),
    limit: 1_000,
    responseBytesLimit: 1_048_576,
  };
}

describe('a pipeline from the field, run in canonical form,', () => {
  it.each(cases.map((each) => [each.name, each] as const))('gives its exact documents: %s', async (_name, each) => {
    const answer = await server.call('run', { ...argumentsOf(each), canonical: true });
    expect(answer).toMatchObject({ outcome: 'succeeded', server: 'ended', wait: 'answered', returned: each.expected.length, more: false, truncated: false });
    // All of them say that their order counts.
    expect(each.ordered).toBe(true);
    expect(canonical(readCanonical(answer.documents))).toEqual(canonical(each.expected));
  });
});

describe('documents of all types in relaxed form', () => {
  const allTypes = named('16');
  const shown: Record<string, unknown> = {
    long: { $numberLong: '9223372036854775807' },
    'longsafe+2': { $numberLong: '9007199254740993' },
    int: 7,
    'double-whole': 7,
    nan: { $numberDouble: 'NaN' },
    inf: { $numberDouble: 'Infinity' },
    ninf: { $numberDouble: '-Infinity' },
    negzero: { $numberDouble: '-0.0' },
    dec: { $numberDecimal: '123456789012345678901234.5678901234' },
    uuid4: { $uuid: '0e1b8c1e-7c3f-4b8e-9f8a-1b2c3d4e5f60' },
    uuid3: { $binary: { base64: 'ABEiM0RVZneImaq7zN3u/w==', subType: '03' } },
    bin0: { $binary: { base64: 'AAEC/w==', subType: '00' } },
    regex: { $regularExpression: { pattern: '^a.*\\d$', options: 'i' } },
    ts: { $timestamp: { t: 1_700_000_000, i: 7 } },
    minkey: { $minKey: 1 },
    maxkey: { $maxKey: 1 },
    'date-1901': { $date: { $numberLong: '-2147483648000' } },
    'date-far': { $date: { $numberLong: '317273587200000' } },
    nul: null,
    emoji: '😀 \u2028 \\u0000 "q"',
    'oid-text': '507f1f77bcf86cd799439011',
    oid: { $oid: '507f1f77bcf86cd799439011' },
  };

  async function relaxed(): Promise<{ _id: string; v: unknown; t: string }[]> {
    return (await server.call('run', argumentsOf(allTypes))).documents;
  }

  it('are shown plain where plain JSON says the same, and with their type where it does not', async () => {
    const documents = await relaxed();
    expect(Object.fromEntries(documents.map(({ _id, v }) => [_id, v]))).toEqual(shown);
  });

  it('lose no digit and no type but that of a whole double, which JSON has no other spelling for', async () => {
    const expected = canonical(allTypes.expected) as { _id: string }[];
    const read = canonical(readCanonical(await relaxed())) as { _id: string }[];
    const differing = expected.filter((document, at) => JSON.stringify(document) !== JSON.stringify(read[at]));
    expect(differing.map(({ _id }) => _id)).toEqual(['double-whole']);
    expect(read.find(({ _id }) => _id === 'double-whole')).toEqual({ _id: 'double-whole', v: { $numberInt: '7' }, t: 'double' });
  });

  it('are found again by the very values that were shown', async () => {
    const documents = await relaxed();
    const pipeline = [{ $match: { $or: documents.map(({ _id, v }) => ({ _id, v: { $eq: v } })) } }, { $count: 'found' }];
    const answer = await server.call('run', { database: databaseOf(allTypes), collection: 'types', pipeline });
    expect(answer.documents).toEqual([{ found: Object.keys(shown).length }]);
  });
});

describe('a pipeline with 5,000 ids in it', () => {
  it('is found by its tag, told of, and stopped', async () => {
    const huge = named('12');
    const { pipeline, ...rest } = argumentsOf(huge) as { pipeline: unknown[] };
    const slow = { $match: { $expr: { $function: { body: 'function(){sleep(20000);return true}', args: [], lang: 'js' } } } };
    const handle = await server.call('run', { ...rest, pipeline: [pipeline[0], slow], waitMs: 0 });
    await eventually('the database shows it', async () => (await taggedAs(mongo.client, handle.operationId)).length > 0);
    expect(await server.call('status', { id: handle.operationId })).toMatchObject({ server: 'running', outcome: null });
    expect(await server.call('kill', { id: handle.operationId })).toMatchObject({ verdict: 'stopped', outcome: 'killed' });
    expect(await taggedAs(mongo.client, handle.operationId)).toEqual([]);
  });
});

describe('a collation', () => {
  it('is passed on as it was given', async () => {
    const pipeline = [{ $match: { _id: 'BIN0' } }];
    const request = { database: 'case_16', collection: 'types', pipeline };
    expect((await server.call('run', request)).documents).toEqual([]);
    const answer = await server.call('run', { ...request, collation: { locale: 'en', strength: 2 } });
    expect(answer.documents.map(({ _id }: { _id: string }) => _id)).toEqual(['bin0']);
  });
});
