/** Arguments are taken as they are meant, or refused in one sentence; never run as something else (cases D13, D14, D17, D18, D24). */
import { ObjectId } from 'bson';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Checked, startChecked } from '../support/checked.js';

let rig: Checked;
type Row = { _id: unknown; [field: string]: unknown };
const idText = '507f1f77bcf86cd799439011';
const names = ['acme', 'ACME Corp', 'xacme', '/acme/i', 'beta'];

beforeAll(async () => {
  rig = await startChecked();
  const db = rig.mongo.client.db('app');
  await db.collection<{ _id: string }>('names').insertMany(names.map((name) => ({ _id: name, name })));
  await db.collection<Row>('ids').insertMany([{ _id: new ObjectId(idText), is: 'id' }, { _id: idText, is: 'text' }]);
  await db.collection<Row>('onlyIds').insertOne({ _id: new ObjectId(idText), at: new Date('2024-05-05T00:00:00Z') });
  await db.collection<Row>('nulls').insertMany([{ _id: 1, a: null }, { _id: 2 }, { _id: 3, a: 1 }, { _id: 4, a: 0 }]);
});
afterAll(async () => {
  await rig.stop();
});

const run = (collection: string, pipeline: unknown, more: object = {}) => rig.server.call('run', { database: 'app', collection, pipeline, ...more });
const ids = (answer: any): unknown[] => answer.documents.map(({ _id }: { _id: unknown }) => _id);
/** The shell's way: the same filter through the driver, by the witness. */
const inTheShell = async (filter: object) => (await rig.mongo.client.db('app').collection<{ _id: string }>('names').find(filter).toArray()).map(({ _id }) => _id);

describe('an id', () => {
  it('written as {"$oid"} finds the ObjectId and not the same text (D13)', async () => {
    expect((await run('ids', [{ $match: { _id: { $oid: idText } } }])).documents).toEqual([{ _id: { $oid: idText }, is: 'id' }]);
  });

  it('written as text is sent as text, finds no ObjectId, and is hinted at (D14)', async () => {
    expect((await run('ids', [{ $match: { _id: idText } }])).documents).toEqual([{ _id: idText, is: 'text' }]);
    const answer = await run('onlyIds', [{ $match: { _id: idText } }]);
    expect(answer).toMatchObject({ outcome: 'succeeded', documents: [], returned: 0 });
    expect(answer.notes).toEqual([expect.stringMatching(/^pipeline\[0\]\.\$match\._id: .*looks like an ObjectId.*\{"\$oid": "507f1f77bcf86cd799439011"\}/)]);
  });

  it('that a date is taken for is hinted at in the same way (D14)', async () => {
    const answer = await run('onlyIds', [{ $match: { at: { $gte: '2024-01-01' } } }]);
    expect(answer).toMatchObject({ documents: [], notes: [expect.stringContaining('{"$date": "2024-01-01T00:00:00Z"}')] });
    expect(await run('onlyIds', [{ $match: { at: { $gte: { $date: '2024-01-01' } } } }])).toMatchObject({ returned: 1 });
  });
});

describe('null and what is missing', () => {
  it('null means null or missing, as in MongoDB (D17)', async () => {
    expect(ids(await run('nulls', [{ $match: { a: null } }, { $sort: { _id: 1 } }]))).toEqual([1, 2]);
    expect(ids(await run('nulls', [{ $match: { a: { $eq: null } } }, { $sort: { _id: 1 } }]))).toEqual([1, 2]);
  });

  it('$undefined is refused at its place instead of matching everything (D17)', async () => {
    const { error } = await run('nulls', [{ $match: { a: { $undefined: true } } }]);
    expect(error).toMatchObject({ code: 'bad_argument', path: 'pipeline[0].$match.a', message: expect.stringContaining('null') });
  });

  it('a call without optional arguments sends none of them to the database (D17)', async () => {
    const db = rig.mongo.client.db('app');
    await db.command({ profile: 2 });
    const { operationId } = await run('nulls', []);
    await db.command({ profile: 0 });
    const row = await db.collection('system.profile').findOne({ 'command.comment': { $regex: operationId } });
    expect(Object.keys(row?.['command']).filter((key) => !key.startsWith('$')).sort()).toEqual(['aggregate', 'comment', 'cursor', 'lsid', 'maxTimeMS', 'pipeline']);
    expect(row?.['command'].pipeline).toEqual([{ $limit: 101 }]);
  });
});

describe('a regular expression', () => {
  it.each([
    ['$regex with $options', { name: { $regex: '^ac', $options: 'i' } }, { name: /^ac/i }],
    ['$regularExpression within $in', { name: { $in: [{ $regularExpression: { pattern: '^ac', options: 'i' } }, 'beta'] } }, { name: { $in: [/^ac/i, 'beta'] } }],
    ['$regex below $not', { name: { $not: { $regex: 'x' } } }, { name: { $not: /x/ } }],
    ['$regexMatch in $expr', { $expr: { $regexMatch: { input: '$name', regex: '^ac', options: 'i' } } }, { $expr: { $regexMatch: { input: '$name', regex: /^ac/i } } }],
    ['$regex beside another operator', { name: { $regex: '^a', $ne: 'acme' } }, { name: { $regex: /^a/, $ne: 'acme' } }],
    ['$regex with nothing else', { name: { $regex: '^a' } }, { name: /^a/ }],
  ])('finds what the shell finds: %s (D18)', async (_form, sent, shell) => {
    const answer = await run('names', [{ $match: sent }]);
    expect(answer.outcome).toBe('succeeded');
    expect(ids(answer)).toEqual(await inTheShell(shell));
  });

  it.each([
    [{ name: { $regex: 'a', $options: 'g' } }, 'pipeline[0].$match.name.$options'],
    [{ name: { $regularExpression: { pattern: 'a', options: 'ig' } } }, 'pipeline[0].$match.name'],
  ])('with the flag g is refused by the name of the flag: %j (D18)', async (sent, path) => {
    const { error } = await run('names', [{ $match: sent }]);
    expect(error).toMatchObject({ code: 'bad_argument', path, message: expect.stringContaining('"g"') });
  });

  it('between slashes is taken literally, with a hint (D18)', async () => {
    const answer = await run('names', [{ $match: { name: { $regex: '/acme/i' } } }]);
    expect(ids(answer)).toEqual(['/acme/i']);
    expect(answer.notes).toEqual([expect.stringMatching(/slashes in "\/acme\/i" are taken literally.*"acme".*"i"/)]);
  });
});

describe('arguments sent as text', () => {
  const first = [{ _id: 'ACME Corp', name: 'ACME Corp' }];

  it('as a pipeline in JSON are read, and the answer says so (D24)', async () => {
    const answer = await run('names', '[{"$sort": {"_id": 1}}, {"$skip": 1}, {"$limit": 1}]');
    expect(answer).toMatchObject({ documents: first, notes: ['pipeline came as text and was read as JSON.'] });
  });

  it('as numbers and truth values are read, and the answer says so (D24)', async () => {
    const answer = await run('names', [{ $sort: { _id: 1 } }, { $skip: 1 }], { limit: '1', canonical: 'true', waitMs: '5000' });
    expect(answer).toMatchObject({ documents: first, more: true });
    expect(answer.notes.sort()).toEqual(['canonical came as text and was read as true.', 'limit came as text and was read as the number 1.', 'waitMs came as text and was read as the number 5000.']);
  });

  it('as one stage without its array is read as a pipeline of that stage, and the answer says so (D24)', async () => {
    expect(await run('names', { $match: { _id: 'ACME Corp' } })).toMatchObject({ documents: first, notes: [expect.stringContaining('one stage')] });
    expect(await run('names', '{"$match": {"_id": "ACME Corp"}}')).toMatchObject({ documents: first });
  });

  it('as let and collation and hint are read, and the answer says so (D24)', async () => {
    const answer = await run('names', [{ $match: { $expr: { $eq: ['$_id', '$$who'] } } }], { let: '{"who": "acme corp"}', collation: '{"locale": "en", "strength": 2}', hint: '{"_id": 1}' });
    expect(answer.documents).toEqual(first);
    expect(answer.notes).toHaveLength(3);
    expect(await run('names', [{ $match: { _id: 'ACME Corp' } }], { hint: '_id_' })).toMatchObject({ documents: first });
  });

  it.each([
    ['[{"$match": }]', 'pipeline'],
    ['db.names.find()', 'pipeline'],
    ['', 'pipeline'],
    ['[{"$match": {"a": 1, "a": 2}}]', 'pipeline[0].$match.a'],
    ['"[]"', 'pipeline'],
    ['7', 'pipeline'],
    [['[]'], 'pipeline[0]'],
    [[{ $match: {} }, 'x'], 'pipeline[1]'],
    [null, 'pipeline'],
  ])('that are no pipeline are refused: %j (D24)', async (pipeline, path) => {
    const { error } = await run('names', pipeline);
    expect(error).toMatchObject({ code: 'bad_argument', path });
    expect(error.message.length).toBeLessThan(250);
  });

  it.each([
    ['$mach', '$match'],
    ['match', '$match'],
    ['$Sort', '$sort'],
    ['$lokup', '$lookup'],
  ])('with the unknown stage %s are told which was meant (D24)', async (stage, meant) => {
    const { error } = await run('names', [{ [stage]: {} }]);
    expect(error).toMatchObject({ code: 'bad_argument', path: `pipeline[0].${stage}`, message: expect.stringContaining(`did you mean ${meant}?`) });
  });

  it('that do not exist, or are missing, are named', async () => {
    expect((await run('names', [], { Limit: 5, batchSize: 1 })).error.message).toMatch(/^run has no argument "Limit", "batchSize"\. It takes database, collection, pipeline, /);
    expect((await rig.server.call('run', { database: 'app', collection: 'names' })).error.message).toBe('run needs the argument pipeline.');
    expect((await rig.server.call('run', { pipeline: [] })).error.message).toBe('run needs the argument database.');
    expect((await rig.server.call('operations', { all: true })).error.message).toContain('"all"');
    expect((await rig.server.call('drop', {})).error.message).toMatch(/There are run, status, kill, operations, result, .*export.*\.$/);
  });
});

describe('Extended JSON that would be changed or dropped', () => {
  it.each([
    [{ a: { $oid: idText, extra: 1 } }, 'pipeline[0].$match.a', '"extra" is beside it'],
    [{ a: { $oid: 'xyz' } }, 'pipeline[0].$match.a', '24 hexadecimal digits'],
    [{ a: { $date: 'not a date' } }, 'pipeline[0].$match.a', 'ISO 8601'],
    [{ a: { $date: '5' } }, 'pipeline[0].$match.a', 'ISO 8601'],
    [{ a: { $date: '2024-02-30T00:00:00Z' } }, 'pipeline[0].$match.a', 'calendar'],
    [{ a: { $date: '2024-01-01T00:00:00' } }, 'pipeline[0].$match.a', 'time zone'],
    [{ a: { $date: 1_700_000_000 } }, 'pipeline[0].$match.a', 'seconds or milliseconds'],
    [{ a: { $numberLong: '9223372036854775808' } }, 'pipeline[0].$match.a', '64 bits'],
    [{ a: { $numberInt: '2147483648' } }, 'pipeline[0].$match.a', '32 bits'],
    [{ a: { $numberDecimal: '12345678901234567890123456789012345' } }, 'pipeline[0].$match.a', '34 digits'],
    [{ a: { $in: [1, { b: 2 ** 60 }] } }, 'pipeline[0].$match.a.$in[1].b', '2^53'],
    [{ a: { $uuid: 'nope' } }, 'pipeline[0].$match.a', '$uuid'],
    [{ a: { $binary: { base64: '***', subType: '00' } } }, 'pipeline[0].$match.a', '$binary'],
    [{ _bsontype: 'Long' }, 'pipeline[0].$match._bsontype', 'cannot be sent'],
    [{ 'a\0b': 1 }, 'pipeline[0].$match["a\\u0000b"]', 'NUL'],
    [{ a: { $dbPointer: { $ref: 'x', $id: { $oid: idText } } } }, 'pipeline[0].$match.a', '$dbPointer'],
  ])('is refused at its place: %j', async (filter, path, says) => {
    const { error } = await run('names', [{ $match: filter }]);
    expect(error).toMatchObject({ code: 'bad_argument', path, databaseState: 'Nothing was sent to the database.' });
    expect(error.message).toContain(says);
    expect(error.message.startsWith(path)).toBe(true);
  });

  it('is refused in a sort, a hint and let as well', async () => {
    expect((await run('names', [{ $sort: { b: 1, 2: 1 } }])).error).toMatchObject({ path: 'pipeline[0].$sort', message: expect.stringContaining('order of keys') });
    expect((await run('names', [], { hint: { b: 1, 2: 1 } })).error).toMatchObject({ code: 'bad_argument', path: 'hint' });
    expect((await run('names', [], { let: { a: { $oid: 'no' } } })).error).toMatchObject({ path: 'let.a' });
    expect((await run('names', [], { collation: { locale: { $undefined: true } } })).error).toMatchObject({ path: 'collation.locale' });
  });

  it('does not come from __proto__, which stays a key like any other', async () => {
    const pipeline = JSON.parse('[{"$limit": 1}, {"$project": {"_id": 0, "v": {"$literal": {"__proto__": {"a": 1}, "b": 2}}}}]') as unknown[];
    const { documents } = await run('names', pipeline);
    expect(JSON.stringify(documents)).toBe('[{"v":{"__proto__":{"a":1},"b":2}}]');
  });
});
