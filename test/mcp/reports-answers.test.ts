/** Answers fit the model, say what they leave out, and every document can be had exactly once (case D19). */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Checked, startChecked } from '../support/checked.js';
import { taggedAs } from '../support/mongo.js';

let rig: Checked;
type Row = { _id: number; [field: string]: unknown };
/** Of 1 to 4 bytes each in UTF-8, and with what JSON escapes. */
const alphabets: Record<string, string> = { ascii: 'x', accents: 'é', chinese: '漢', emoji: '😀', quotes: '"', newlines: '\n', controls: '\u0001', lineSeparators: '\u2028' };
const oneMiB = 1_048_576;

beforeAll(async () => {
  rig = await startChecked();
  const db = rig.mongo.client.db('app');
  await db.collection<Row>('small').insertMany(Array.from({ length: 20_000 }, (_, i) => ({ _id: i, name: `number ${i}`, even: i % 2 === 0 })));
  await db.collection<Row>('large').insertMany([1, 2, 3].map((_id) => ({ _id, pad: 'p'.repeat(900_000) })));
  for (const [name, text] of Object.entries(alphabets)) await db.collection<Row>(name).insertMany(Array.from({ length: 300 }, (_, i) => ({ _id: i, text: text.repeat(1 + ((i * 7) % 900)) })));
  await db.collection<Row>('mixed').insertMany(Array.from({ length: 60 }, (_, i) => ({ _id: i, pad: 'm'.repeat(i % 20 === 7 ? 100_000 : 500) })));
  await db.collection<Row>('huge').insertOne({ _id: 1, text: 'h'.repeat(16_000_000) });
});
afterAll(async () => {
  await rig.stop();
});

/** The answer with its size: that of its text, which is the same JSON as its structure. */
async function sized(tool: string, args: Record<string, unknown>): Promise<{ body: any; bytes: number; chars: number }> {
  const { content, structuredContent } = await rig.server.callRaw(tool, args);
  return { body: structuredContent, bytes: Buffer.byteLength(content[0].text), chars: content[0].text.length };
}
const run = (collection: string, args: object = {}) => sized('run', { database: 'app', collection, pipeline: [{ $sort: { _id: 1 } }], ...args });
const ids = (body: any): number[] => body.documents.map(({ _id }: { _id: number }) => _id);
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i);

/** Follows the pages as their `next` says, and gathers what they hold. */
async function readPages(id: string, args: object = {}): Promise<{ seen: number[]; passed: number[]; pages: number }> {
  const seen: number[] = [];
  const passed: number[] = [];
  let offset = 0;
  for (let pages = 1; ; pages += 1) {
    const { body, bytes } = await sized('result', { id, offset, ...args });
    expect(bytes).toBeLessThanOrEqual((args as { responseBytesLimit?: number }).responseBytesLimit ?? 40_000);
    expect(body).toMatchObject({ operationId: id, offset, returned: body.documents.length });
    seen.push(...ids(body));
    if (body.partialDocument !== undefined) passed.push(offset);
    const next = /at offset (\d+)\.$/.exec(body.next);
    if (next === null) {
      expect(body.truncated).toBe(false);
      return { seen, passed, pages };
    }
    expect(Number(next[1])).toBeGreaterThan(offset);
    offset = Number(next[1]);
  }
}

describe('a default answer', () => {
  it('of a large collection holds 100 documents, says that there are more, and leaves no cursor (D19)', async () => {
    const { body, chars } = await run('small', { pipeline: [] });
    expect(body).toMatchObject({ outcome: 'succeeded', returned: 100, more: true, truncated: false });
    expect(body.documents).toHaveLength(100);
    expect(body.next).toContain('raise limit');
    expect(chars).toBeLessThanOrEqual(40_000);
    expect(await taggedAs(rig.mongo.client, body.operationId)).toEqual([]);
  });

  it('of documents that are each larger than it shows the beginning of the first, and how to go on (D19)', async () => {
    const { body, chars } = await run('large');
    expect(chars).toBeLessThanOrEqual(40_000);
    expect(body).toMatchObject({ outcome: 'succeeded', documents: [], returned: 0, more: true, truncated: true, partialDocument: { position: 0 } });
    expect(body.partialDocument.json.startsWith('{"_id":1,"pad":"ppp')).toBe(true);
    expect(body.partialDocument.json.length).toBeGreaterThan(30_000);
    expect(body.partialDocument.bytes).toBeGreaterThan(900_000);
    expect(body.next).toContain('larger responseBytesLimit');
    expect(await taggedAs(rig.mongo.client, body.operationId)).toEqual([]);
  });

  it('says when what was asked for is all there is', async () => {
    const { body } = await run('small', { pipeline: [{ $match: { _id: { $lt: 5 } } }], limit: 5 });
    expect(body).toMatchObject({ returned: 5, more: false, truncated: false, next: 'Nothing: these are all.' });
    expect(await run('small', { pipeline: [{ $match: { _id: -1 } }] })).toMatchObject({ body: { returned: 0, documents: [], more: false } });
  });

  it('to a limit of 100 says whether there is a 101st', async () => {
    expect((await run('small', { pipeline: [{ $limit: 101 }], limit: 100 })).body).toMatchObject({ returned: 100, more: true });
    expect((await run('small', { pipeline: [{ $limit: 100 }], limit: 100 })).body).toMatchObject({ returned: 100, more: false });
  });

  it.each(Object.keys(alphabets))('never passes 40,000 bytes, and uses most of them: %s', async (collection) => {
    const { body, bytes, chars } = await run(collection, { limit: 300 });
    expect(bytes).toBeLessThanOrEqual(40_000);
    expect(chars).toBeLessThanOrEqual(40_000);
    expect(bytes).toBeGreaterThan(30_000);
    expect(body).toMatchObject({ more: true, truncated: true });
    expect(ids(body)).toEqual(upTo(body.returned));
    expect(body.next).toContain(`offset ${body.returned}`);
    const pages = await readPages(body.operationId);
    expect(pages).toMatchObject({ seen: upTo(300), passed: [] });
  });

  it('of an error that repeats a stored value of a megabyte stays short', async () => {
    const { body, chars } = await run('large', { pipeline: [{ $set: { number: { $toInt: '$pad' } } }] });
    expect(body).toMatchObject({ outcome: 'failed', error: { serverCode: 241, message: expect.stringContaining('Failed to parse number') } });
    expect(chars).toBeLessThan(10_000);
    const status = await sized('status', { id: body.operationId });
    expect(status.body).toMatchObject({ outcome: 'failed', error: { serverCode: 241 } });
    expect(status.chars).toBeLessThan(10_000);
  });
});

describe('an answer about arguments that are huge', () => {
  const huge = 'g'.repeat(500_000);
  const wide = Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`key${i}`, huge.slice(0, 50)]));
  it.each<[string, string, Record<string, unknown>]>([
    ['database', 'run', { database: huge, collection: 'small', pipeline: [] }],
    ['collection', 'run', { database: 'app', collection: huge, pipeline: [] }],
    ['unknown argument', 'run', { database: 'app', pipeline: [], [huge]: 1 }],
    ['unknown arguments', 'run', { database: 'app', pipeline: [], ...wide }],
    ['stage', 'run', { database: 'app', collection: 'small', pipeline: [{ [`$${huge}`]: 1 }] }],
    ['key', 'run', { database: 'app', collection: 'small', pipeline: [{ $match: { [huge]: { $oid: huge } } }] }],
    ['pipeline that is text', 'run', { database: 'app', collection: 'small', pipeline: `[{"$match": ${huge}}]` }],
    ['comment', 'run', { database: 'app', collection: 'small', pipeline: [{ $limit: 1 }], comment: huge }],
    ['hint', 'run', { database: 'app', collection: 'small', pipeline: [], hint: huge }],
    ['collation', 'run', { database: 'app', collection: 'small', pipeline: [], collation: { locale: huge } }],
    ['operand', 'run', { database: 'app', collection: 'small', pipeline: [{ $match: { _id: { [`$${huge}`]: 1 } } }] }],
    ['id', 'status', { id: huge }],
    ['request id', 'kill', { requestId: huge }],
    ['name of a tool', huge, {}],
  ])('stays short: %s', async (_what, tool, args) => {
    const { chars } = await sized(tool, args);
    expect(chars).toBeLessThan(5_000);
  });
});

describe('responseBytesLimit', () => {
  it.each([[2_000, 'ascii'], [5_000, 'chinese'], [40_000, 'emoji'], [100_000, 'accents'], [100_000, 'controls'], [300_000, 'quotes'], [oneMiB, 'small'], [oneMiB, 'emoji']])('of %i is kept in bytes, and used: %s', async (responseBytesLimit, collection) => {
    const { body, bytes } = await run(collection, { limit: 10_000, responseBytesLimit });
    expect(bytes).toBeLessThanOrEqual(responseBytesLimit);
    if (body.truncated) expect(bytes).toBeGreaterThan(responseBytesLimit * 0.6);
    else expect(body.returned).toBe(collection === 'small' ? 10_000 : 300);
    expect(ids(body)).toEqual(upTo(body.returned));
    const status = await sized('status', { id: body.operationId, responseBytesLimit });
    expect(status.bytes).toBeLessThanOrEqual(responseBytesLimit);
    expect(ids(status.body)).toEqual(upTo(status.body.returned));
  });

  it('above a mebibyte is lowered to it, and the answer says so', async () => {
    const { body, bytes } = await run('large', { responseBytesLimit: 5_000_000 });
    expect(body.notes).toEqual([expect.stringMatching(/responseBytesLimit was 5000000.*at most 1048576/)]);
    expect(bytes).toBeLessThanOrEqual(oneMiB);
    expect(body).toMatchObject({ returned: 1, truncated: true, more: true });
    for (const tool of ['status', 'result']) {
      const again = await sized(tool, { id: body.operationId, responseBytesLimit: 5_000_000 });
      expect(again.body.notes).toContainEqual(expect.stringContaining('at most 1048576'));
      expect(again.bytes).toBeLessThanOrEqual(oneMiB);
    }
  });

  it.each([0, 1_999, 2_000.5, 'all', null])('of %j is refused', async (responseBytesLimit) => {
    for (const tool of ['run', 'status', 'result']) {
      const args = tool === 'run' ? { database: 'app', collection: 'small', pipeline: [] } : { requestId: 1 };
      expect((await rig.server.call(tool, { ...args, responseBytesLimit })).error).toMatchObject({ code: 'bad_argument', path: 'responseBytesLimit' });
    }
  });

  it('shows of a document of 16 MB its beginning, and its size', async () => {
    const { body, bytes } = await run('huge', { responseBytesLimit: oneMiB });
    expect(bytes).toBeLessThanOrEqual(oneMiB);
    expect(body).toMatchObject({ documents: [], returned: 0, more: true, truncated: true, partialDocument: { position: 0 } });
    expect(body.partialDocument.bytes).toBeGreaterThan(16_000_000);
    expect(body.partialDocument.json.startsWith('{"_id":1,"text":"hhh')).toBe(true);
    expect(bytes).toBeGreaterThan(oneMiB * 0.6);
  });
});

describe('result', () => {
  it('gives every document exactly once, whatever the size of its pages', async () => {
    const { body } = await run('small', { limit: 3_000 });
    for (const args of [{}, { responseBytesLimit: 3_000 }, { limit: 77 }, { limit: 1_000, responseBytesLimit: 20_000 }, { responseBytesLimit: oneMiB }]) {
      const { seen, passed, pages } = await readPages(body.operationId, args);
      expect(passed).toEqual([]);
      expect(pages).toBeLessThan(200);
      expect(seen).toEqual(upTo(3_000));
    }
  });

  it('shows the beginning of one that no page has room for, and goes on behind it', async () => {
    const { body } = await run('mixed');
    const { seen, passed } = await readPages(body.operationId);
    expect(passed).toEqual([7, 27, 47]);
    expect([...seen, ...passed].sort((a, b) => a - b)).toEqual(upTo(60));
    const page = await sized('result', { id: body.operationId, offset: 7, responseBytesLimit: 200_000 });
    expect(ids(page.body)[0]).toBe(7);
  });

  it('asks the database nothing, and says at its end whether the database has more', async () => {
    const { body } = await run('small', { limit: 150 });
    const db = rig.mongo.client.db('app');
    await db.command({ profile: 2 });
    const last = await sized('result', { id: body.operationId, offset: 140 });
    await db.command({ profile: 0 });
    expect(last.body).toMatchObject({ returned: 10, more: true, documentsRead: 150, next: expect.stringContaining('larger limit') });
    expect(await db.collection('system.profile').countDocuments({ ns: 'app.small' })).toBe(0);
  });

  it('of an offset behind the end is empty, and of what is no offset is refused', async () => {
    const { body } = await run('small', { limit: 5, pipeline: [{ $limit: 5 }] });
    expect((await sized('result', { id: body.operationId, offset: 500 })).body).toMatchObject({ documents: [], returned: 0, more: false, truncated: false });
    for (const offset of [-1, 1.5, 'x']) expect((await rig.server.call('result', { id: body.operationId, offset })).error).toMatchObject({ path: 'offset' });
    expect((await rig.server.call('result', { id: body.operationId, limit: 0 })).error).toMatchObject({ path: 'limit' });
  });
});
