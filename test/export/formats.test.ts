/** What stands in the file of an export, held against what the driver's own library reads and writes. */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { EJSON } from 'bson';
import type { Document } from 'mongodb';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { pipelineCases, pipelineJson } from '../support/cases.js';
import { canonical } from '../support/exact.js';
import { aggregating, database, exportFiles, findAll, textOf } from '../support/exports.js';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { element, insertRaw, rawDocument, rawInt, rawText } from '../support/raw-bson.js';
import { freshFolder } from '../support/records.js';
import { type TestServer, startServer } from '../support/server.js';

let mongo: TestMongo;
let server: TestServer;
const stateFolder = freshFolder();
const allTypes = pipelineCases().find(({ name }) => name.startsWith('16'))!;
const ofTypes = { database, collection: allTypes.collection, ...aggregating(pipelineJson(allTypes.name).pipeline as Document[]) };

beforeAll(async () => {
  mongo = await startMongo();
  const db = mongo.client.db(database);
  for (const { collection, docs } of allTypes.setup) await db.collection(collection).insertMany(docs);
  await db.collection<{ _id: number; [field: string]: unknown }>('people').insertMany([
    { _id: 1, name: 'Ada', address: { city: 'London', zip: 'N1' }, tags: ['a', 'b'] },
    { _id: 2, name: 'says "hi", twice', note: 'two\nlines\r\nand more', address: { city: '' } },
    { _id: 3, name: '=1+1', note: null, score: 1.5, ok: true, big: EJSON.parse('{"$numberLong":"9007199254740993"}', { relaxed: false }) },
  ]);
  server = await startServer({ uri: mongo.uri, stateFolder });
});
afterAll(async () => {
  await server.close();
  await mongo.stop();
});

const linesOf = (text: string) => text.split('\n').slice(0, -1);
/** As the driver reads them, types kept, in the order of the export. */
const stored = async () => await mongo.client.db(database).collection(allTypes.collection!).aggregate(allTypes.pipeline, { promoteValues: false, bsonRegExp: true }).toArray();

describe('documents of all types', () => {
  it('are in canonical JSON Lines, letter for letter, what the driver writes', async () => {
    const answer = await server.call('export', { ...ofTypes, jsonExportFormat: 'canonical', exportTitle: 'all types' });
    expect(answer).toMatchObject({ title: 'all types', format: 'jsonl', documents: allTypes.expected.length, complete: true, bytes: statSync(answer.path).size });
    expect(linesOf(textOf(answer))).toEqual((await stored()).map((document) => EJSON.stringify(document, { relaxed: false })));
  });

  it('are in relaxed JSON Lines what they are, but for the type of whole doubles', async () => {
    const answer = await server.call('export', ofTypes);
    const read = linesOf(textOf(answer)).map((line) => EJSON.parse(line, { relaxed: false }) as Document);
    const expected = canonical(allTypes.expected) as Document[];
    const differing = (canonical(read) as Document[]).filter((document, at) => JSON.stringify(document) !== JSON.stringify(expected[at]));
    expect(differing.map(({ _id }) => _id as unknown)).toEqual(['double-whole']);
    // The driver's relaxed form rounds this one.
    expect(textOf(answer)).toContain('{"$numberLong":"9223372036854775807"}');
  });

  it('are in json one array, a document a line, and nothing is an empty array', async () => {
    const answer = await server.call('export', { ...ofTypes, jsonExportFormat: 'canonical', format: 'json' });
    const text = textOf(answer);
    expect(text.split('\n')).toHaveLength(allTypes.expected.length);
    expect(canonical(EJSON.parse(text, { relaxed: false }))).toEqual(canonical(allTypes.expected));
    const none = await server.call('export', { database, collection: 'people', ...findAll({ filter: { _id: 0 } }), format: 'json' });
    expect(none).toMatchObject({ documents: 0, complete: true, bytes: 2 });
    expect(textOf(none)).toBe('[]');
  });

  it('are in csv plain text where that says the value, and Extended JSON where it does not', async () => {
    const answer = await server.call('export', { ...ofTypes, format: 'csv', fields: ['_id', 'v'] });
    const rows = Object.fromEntries(textOf(answer).split('\r\n').map((row) => [row.slice(0, row.indexOf(',')), row.slice(row.indexOf(',') + 1)]));
    expect(rows).toMatchObject({
      _id: 'v',
      long: '9223372036854775807',
      int: '7',
      nan: 'NaN',
      negzero: '-0.0',
      dec: '123456789012345678901234.5678901234',
      uuid4: '0e1b8c1e-7c3f-4b8e-9f8a-1b2c3d4e5f60',
      oid: '507f1f77bcf86cd799439011',
      ts: '"{""$timestamp"":{""t"":1700000000,""i"":7}}"',
      minkey: '"{""$minKey"":1}"',
      'date-1901': '"{""$date"":{""$numberLong"":""-2147483648000""}}"',
      nul: '',
    });
  });
});

describe('a csv', () => {
  const people = { database, collection: 'people', ...findAll({ sort: { _id: 1 } }), format: 'csv' };

  it('has the fields of the documents as columns, nested ones with dots, and quotes what needs it', async () => {
    const answer = await server.call('export', people);
    expect(textOf(answer)).toBe([
      '_id,name,address.city,address.zip,tags,note,score,ok,big',
      '1,Ada,London,N1,"[""a"",""b""]",,,,',
      '2,"says ""hi"", twice","",,,"two\nlines\r\nand more",,,',
      // What a spreadsheet takes for a formula is data, and is left as it is.
      '3,=1+1,,,,,1.5,true,9007199254740993',
      '',
    ].join('\r\n'));
    expect(answer.notes).toBeUndefined();
  });

  it('has the columns that were named, whole documents among them', async () => {
    const answer = await server.call('export', { ...people, fields: ['address', 'address.city', 'none'] });
    expect(textOf(answer)).toBe('address,address.city,none\r\n"{""city"":""London"",""zip"":""N1""}",London,\r\n"{""city"":""""}","",\r\n,,\r\n');
  });

  it('says what had no place in it, when nobody named the columns', async () => {
    const collection = mongo.client.db(database).collection<{ _id: number; late?: boolean }>('growing');
    await collection.insertMany(Array.from({ length: 1_500 }, (_, i) => (i === 1_400 ? { _id: i, late: true } : { _id: i })));
    const answer = await server.call('export', { ...people, collection: 'growing' });
    expect(answer).toMatchObject({ documents: 1_500, complete: true, notes: [expect.stringMatching(/1 later ones have fields without a column, such as late/)] });
  });
});

describe('in the file', () => {
  it('every key keeps its place, and what no driver would write is there and said', async () => {
    const [host = ''] = mongo.hosts;
    await insertRaw(host, database, 'raw', [
      rawDocument(element(0x10, '_id', rawInt(1)), element(0x10, 'b', rawInt(1)), element(0x10, '7', rawInt(2)), element(0x10, 'b', rawInt(3))),
      rawDocument(element(0x10, '_id', rawInt(2)), element(0x02, 't', rawText(Buffer.from([0xff])))),
    ]);
    const answer = await server.call('export', { database, collection: 'raw', ...findAll({ sort: { _id: 1 } }) });
    expect(textOf(answer)).toBe('{"_id":1,"b":1,"7":2,"b":3}\n{"_id":2,"t":"\ufffd"}\n');
    expect(answer.notes).toEqual([expect.stringMatching(/^Document 2, t: the stored text is not valid UTF-8/)]);
  });

  it('is what limit, projection, skip and sort ask for, and more is said', async () => {
    const answer = await server.call('export', { database, collection: 'people', ...findAll({ sort: { _id: 'desc' }, limit: 1, skip: 1, projection: { name: 1 } }) });
    expect(answer).toMatchObject({ documents: 1, complete: true, more: true, next: expect.stringMatching(/there are more/) });
    expect(JSON.parse(textOf(answer))).toEqual({ _id: 2, name: 'says "hi", twice' });
  });

  it('are the documents of a pipeline on the database', async () => {
    const answer = await server.call('export', { database, ...aggregating([{ $documents: [{ a: 1 }, { a: 2 }] }]) });
    expect(textOf(answer)).toBe('{"a":1}\n{"a":2}\n');
  });

  it('only its owner can read', () => {
    const files = exportFiles(stateFolder);
    expect(files.length).toBeGreaterThan(3);
    for (const { name } of files) expect(statSync(join(stateFolder, 'exports', name)).mode & 0o777).toBe(0o600);
    expect(statSync(join(stateFolder, 'exports')).mode & 0o777).toBe(0o700);
    expect(files.filter(({ name }) => name.endsWith('.half'))).toEqual([]);
  });
});
