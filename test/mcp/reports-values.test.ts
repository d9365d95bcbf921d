/** Stored values are shown with every digit and every type that matters, whatever their keys are called (cases D15, D16). */
import { Binary, BSON, BSONRegExp, BSONSymbol, Code, Decimal128, Double, EJSON, Int32, Long, MaxKey, MinKey, ObjectId, Timestamp, UUID } from 'bson';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Checked, startChecked } from '../support/checked.js';
import { canonical, readCanonical } from '../support/exact.js';
import { element, insertRaw, rawDocument, rawInt, rawText } from '../support/raw-bson.js';

let rig: Checked;
const uuid = '0e1b8c1e-7c3f-4b8e-9f8a-1b2c3d4e5f60';

/** What is stored, and what relaxed form shows of it. */
const values: Record<string, [stored: unknown, shown: unknown]> = {
  'the first integer that JSON rounds': [Long.fromString('9007199254740993'), { $numberLong: '9007199254740993' }],
  'the largest plain 64-bit integer': [Long.fromString('9007199254740991'), 9_007_199_254_740_991],
  'an id of another service': [Long.fromString('7578014686129131386'), { $numberLong: '7578014686129131386' }],
  'the largest Int64': [Long.MAX_VALUE, { $numberLong: '9223372036854775807' }],
  'the smallest Int64': [Long.MIN_VALUE, { $numberLong: '-9223372036854775808' }],
  'a small Int64': [Long.fromNumber(7), 7],
  'an Int32': [new Int32(-2_147_483_648), -2_147_483_648],
  'NaN': [new Double(Number.NaN), { $numberDouble: 'NaN' }],
  'infinity': [new Double(Number.POSITIVE_INFINITY), { $numberDouble: 'Infinity' }],
  'minus infinity': [new Double(Number.NEGATIVE_INFINITY), { $numberDouble: '-Infinity' }],
  'minus zero': [new Double(-0), { $numberDouble: '-0.0' }],
  'a fraction': [new Double(0.1), 0.1],
  'a double beyond 2^53': [new Double(1e21), { $numberDouble: '1e+21' }],
  'a decimal of 34 digits': [Decimal128.fromString('1234567890123456789012345678901.234'), { $numberDecimal: '1234567890123456789012345678901.234' }],
  'a decimal with its trailing zeros': [Decimal128.fromString('1.500'), { $numberDecimal: '1.500' }],
  'a decimal that is no number': [Decimal128.fromString('NaN'), { $numberDecimal: 'NaN' }],
  'a huge decimal': [Decimal128.fromString('9.999999999999999999999999999999999E+6144'), { $numberDecimal: '9.999999999999999999999999999999999E+6144' }],
  'a date': [new Date('2024-02-29T12:34:56.789Z'), { $date: '2024-02-29T12:34:56.789Z' }],
  'a date before 1970': [new Date(-1), { $date: { $numberLong: '-1' } }],
  'a date after 9999': [new Date(317_273_587_200_000), { $date: { $numberLong: '317273587200000' } }],
  'a UUID': [new UUID(uuid), { $uuid: uuid }],
  'a legacy UUID': [new Binary(Buffer.from(uuid.replaceAll('-', ''), 'hex'), 3), { $binary: { base64: 'DhuMHnw/S46fihssPU5fYA==', subType: '03' } }],
  'binary data': [new Binary(Buffer.from([0, 255])), { $binary: { base64: 'AP8=', subType: '00' } }],
  'no bytes': [new Binary(Buffer.alloc(0), 128), { $binary: { base64: '', subType: '80' } }],
  'a regular expression': [new BSONRegExp('^a/b\\d+"$', 'im'), { $regularExpression: { pattern: '^a/b\\d+"$', options: 'im' } }],
  'an ObjectId': [new ObjectId('507f1f77bcf86cd799439011'), { $oid: '507f1f77bcf86cd799439011' }],
  'a timestamp': [new Timestamp({ t: 4_294_967_295, i: 7 }), { $timestamp: { t: 4_294_967_295, i: 7 } }],
  'the smallest key': [new MinKey(), { $minKey: 1 }],
  'the largest key': [new MaxKey(), { $maxKey: 1 }],
  'code': [new Code('return 1'), { $code: 'return 1' }],
  'a symbol': [new BSONSymbol('s'), { $symbol: 's' }],
  'null': [null, null],
  'truth': [true, true],
  'text with everything in it': ['\u0000"\\\n\u2028😀\ufeff', '\u0000"\\\n\u2028😀\ufeff'],
};
const nested = (value: unknown) => ({ list: [value, [value]], within: { deeper: value } });

beforeAll(async () => {
  rig = await startChecked();
  const stored = Object.entries(values).map(([_id, [v]]) => ({ _id, v, ...nested(v) }));
  await rig.mongo.client.db('app').collection<{ _id: string }>('values').insertMany(stored);
});
afterAll(async () => {
  await rig.stop();
});

const run = async (collection: string, pipeline: object[], more: object = {}) => await rig.server.call('run', { database: 'app', collection, pipeline, ...more });

describe('a stored value', () => {
  it.each(Object.entries(values))('is shown exactly, at any depth: %s (D15) (D16)', async (_id, [v, shown]) => {
    const relaxed = await run('values', [{ $match: { _id } }]);
    expect(relaxed.documents).toEqual([{ _id, v: shown, ...nested(shown) }]);
    expect(relaxed.notes).toBeUndefined();
    const exact = await run('values', [{ $match: { _id } }], { canonical: true });
    expect(canonical(readCanonical(exact.documents))).toEqual(canonical([{ _id, v, ...nested(v) }]));
  });

  it.each(Object.entries(values).filter(([, [v]]) => !(v instanceof BSONSymbol || v instanceof Code)))('is found again by what was shown: %s', async (_id, [, shown]) => {
    const answer = await run('values', [{ $match: { v: { $eq: shown }, _id } }, { $project: { _id: 1 } }]);
    expect(answer.documents).toEqual([{ _id }]);
  });

  it('has its type in canonical form even where relaxed form shows a plain number', async () => {
    const { documents } = await run('values', [{ $match: { _id: { $in: ['a small Int64', 'an Int32', 'a fraction'] } } }, { $sort: { _id: 1 } }, { $project: { _id: 0, v: 1 } }], { canonical: true });
    expect(documents).toEqual([{ v: { $numberDouble: '0.1' } }, { v: { $numberLong: '7' } }, { v: { $numberInt: '-2147483648' } }]);
  });

  it('is the same in run, status and result', async () => {
    const first = await run('values', [{ $sort: { _id: 1 } }]);
    for (const args of [{}, { canonical: true }]) {
      const status = await rig.server.call('status', { id: first.operationId, ...args });
      const result = await rig.server.call('result', { id: first.operationId, ...args });
      expect(result.documents).toEqual(status.documents);
      if ('canonical' in args) expect(status.documents).not.toEqual(first.documents);
      else expect(status.documents).toEqual(first.documents);
    }
  });
});

describe('keys that a program could take for its own', () => {
  const cases: [string, Buffer, unknown, string | null][] = [
    ['_bsontype', rawDocument(element(0x02, '_bsontype', rawText('Long')), element(0x10, 'low', rawInt(1))), { _bsontype: 'Long', low: 1 }, '_bsontype'],
    ['_bsontype within a document', rawDocument(element(0x03, 'a', rawDocument(element(0x02, '_bsontype', rawText('ObjectId'))))), { a: { _bsontype: 'ObjectId' } }, 'a._bsontype'],
    ['$oid', rawDocument(element(0x03, 'a', rawDocument(element(0x02, '$oid', rawText('not an id'))))), { a: { $oid: 'not an id' } }, 'a.$oid'],
    ['$numberLong', rawDocument(element(0x03, 'a', rawDocument(element(0x02, '$numberLong', rawText('5'))))), { a: { $numberLong: '5' } }, 'a.$numberLong'],
    ['$date with a sibling', rawDocument(element(0x03, 'a', rawDocument(element(0x10, '$date', rawInt(1)), element(0x10, 'b', rawInt(2))))), { a: { $date: 1, b: 2 } }, 'a.$date'],
    ['an operator', rawDocument(element(0x03, 'a', rawDocument(element(0x10, '$gt', rawInt(1))))), { a: { $gt: 1 } }, null],
    ['constructor and toString', rawDocument(element(0x10, 'constructor', rawInt(1)), element(0x10, 'toString', rawInt(2))), { constructor: 1, toString: 2 }, null],
    ['toJSON and toBSON', rawDocument(element(0x02, 'toJSON', rawText('x')), element(0x02, 'toBSON', rawText('y'))), { toJSON: 'x', toBSON: 'y' }, null],
    ['no name, dots and numbers', rawDocument(element(0x10, '', rawInt(1)), element(0x10, 'a.b', rawInt(2)), element(0x10, '0', rawInt(3))), { '': 1, 'a.b': 2, '0': 3 }, null],
  ];

  it.each(cases)('are shown as the data they are: %s', async (name, bytes, shown, notedAt) => {
    const collection = `keys ${name.replaceAll('$', '')}`;
    await insertRaw(rig.mongo.hosts[0] ?? '', 'app', collection, [bytes]);
    const { documents, notes } = await run(collection, [{ $project: { _id: 0 } }]);
    expect(documents).toEqual([shown]);
    if (notedAt === null) expect(notes).toBeUndefined();
    else expect(notes).toEqual([expect.stringMatching(new RegExp(`^documents\\[0\\]\\.${notedAt.replaceAll(/[.$]/g, '\\$&')}: .*stored data`))]);
  });

  it('and __proto__ is one of them, in the text and in the structure', async () => {
    await insertRaw(rig.mongo.hosts[0] ?? '', 'app', 'proto', [rawDocument(element(0x03, '__proto__', rawDocument(element(0x08, 'isAdmin', Buffer.from([1])))), element(0x10, 'b', rawInt(2)))]);
    const { content, structuredContent } = await rig.server.callRaw('run', { database: 'app', collection: 'proto', pipeline: [{ $project: { _id: 0 } }] });
    expect(content[0].text).toContain('"documents":[{"__proto__":{"isAdmin":true},"b":2}]');
    expect(JSON.stringify(structuredContent.documents)).toBe('[{"__proto__":{"isAdmin":true},"b":2}]');
    expect(structuredContent.documents[0].isAdmin).toBeUndefined();
    expect(structuredContent.notes).toEqual([expect.stringMatching(/^documents\[0\]\.__proto__: .*stored data/)]);
  });
});

describe('bytes that are no text', () => {
  const bad = Buffer.from([0x61, 0xff, 0xfe, 0x62]);
  const halfPair = Buffer.from([0xed, 0xa0, 0x80]);

  it('show as U+FFFD with a note, and the documents around them are whole', async () => {
    const id = (n: number) => element(0x10, '_id', rawInt(n));
    await insertRaw(rig.mongo.hosts[0] ?? '', 'app', 'bytes', [
      rawDocument(id(1), element(0x02, 'a', rawText('before'))),
      rawDocument(id(2), element(0x02, 'a', rawText(bad)), element(0x03, 'b', rawDocument(element(0x02, 'c', rawText(halfPair))))),
      rawDocument(id(3), element(0x10, bad, rawInt(7))),
      rawDocument(id(4), element(0x02, 'a', rawText('\ufffd'))),
    ]);
    const { documents, notes, outcome } = await run('bytes', [{ $sort: { _id: 1 } }]);
    expect(outcome).toBe('succeeded');
    expect(documents).toEqual([{ _id: 1, a: 'before' }, { _id: 2, a: 'a\ufffd\ufffdb', b: { c: '\ufffd\ufffd\ufffd' } }, { _id: 3, 'a\ufffd\ufffdb': 7 }, { _id: 4, a: '\ufffd' }]);
    expect(notes).toEqual([expect.stringMatching(/^documents\[1\]\.a: .*UTF-8/), expect.stringMatching(/^documents\[1\]\.b\.c: .*UTF-8/), expect.stringMatching(/^documents\[2\].*UTF-8/)]);
  });

  it('and a key that is stored twice is noted, with the last value shown', async () => {
    await insertRaw(rig.mongo.hosts[0] ?? '', 'app', 'twice', [rawDocument(element(0x10, '_id', rawInt(1)), element(0x10, 'a', rawInt(1)), element(0x10, 'a', rawInt(2)))]);
    const { documents, notes } = await run('twice', []);
    expect(documents).toEqual([{ _id: 1, a: 2 }]);
    expect(notes).toEqual([expect.stringMatching(/^documents\[0\]\.a: .*more than once/)]);
  });

  it('and two bytes that claim to be a UUID are shown as two bytes', async () => {
    await rig.mongo.client.db('app').collection<{ _id: number }>('short').insertOne({ _id: 1, v: new Binary(Buffer.from([1, 2]), 4) } as object as { _id: number });
    for (const args of [{}, { canonical: true }]) expect((await run('short', [{ $unset: '_id' }], args)).documents).toEqual([{ v: { $binary: { base64: 'AQI=', subType: '04' } } }]);
  });

  it('and types that no driver writes any more are shown and told apart', async () => {
    const pointer = Buffer.concat([rawText('app.ids'), Buffer.from('507f1f77bcf86cd799439011', 'hex')]);
    const withScope = BSON.serialize({ c: new Code('f()', { x: Long.MAX_VALUE }) });
    await insertRaw(rig.mongo.hosts[0] ?? '', 'app', 'old types', [rawDocument(element(0x10, '_id', rawInt(1)), element(0x06, 'u', Buffer.alloc(0)), element(0x0c, 'p', pointer)), withScope]);
    const { documents } = await run('old types', [{ $sort: { p: -1 } }, { $unset: '_id' }]);
    expect(documents).toEqual([{ u: { $undefined: true }, p: { $dbPointer: { $ref: 'app.ids', $id: { $oid: '507f1f77bcf86cd799439011' } } } }, { c: { $code: 'f()', $scope: { x: { $numberLong: '9223372036854775807' } } } }]);
    expect(EJSON.stringify(EJSON.parse(JSON.stringify(documents[1].c)))).toContain('f()');
  });
});
