/** Arguments reach the database as they were written, or are refused with the place named (cases D13, D17, D18, D24). */
import { Binary, BSON, BSONRegExp, BSONSymbol, Code, Decimal128, Double, Int32, Long, MaxKey, MinKey, ObjectId, Timestamp, UUID } from 'bson';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jsonTextToValue, parseArgument } from '../../src/domain/ejson-in.js';
import { LeashError } from '../../src/domain/errors.js';

const parse = (value: unknown) => parseArgument(value, 'pipeline');
const parseText = (json: string) => parseArgument(JSON.parse(json), 'pipeline');

/** The error of a refused value; fails when it is taken. */
const refusal = (value: unknown, options?: { orderMatters?: boolean }): LeashError => {
  try {
    parseArgument(value, 'pipeline', options);
  } catch (error) {
    if (error instanceof LeashError) return error;
    throw error;
  }
  throw new Error(`was taken: ${JSON.stringify(value)}`);
};

describe('wrappers', () => {
  test.each<[string, unknown, unknown]>([
    ['$oid', { $oid: '507F1f77bcf86cd799439011' }, new ObjectId('507f1f77bcf86cd799439011')],
    ['$numberInt', { $numberInt: '-2147483648' }, new Int32(-2147483648)],
    ['$numberInt as a number', { $numberInt: 7 }, new Int32(7)],
    ['$numberLong', { $numberLong: '-9223372036854775808' }, Long.MIN_VALUE],
    ['$numberLong as a number', { $numberLong: 7 }, Long.fromNumber(7)],
    ['$numberDouble', { $numberDouble: '7.0' }, new Double(7)],
    ['$numberDouble -0.0', { $numberDouble: '-0.0' }, new Double(-0)],
    ['$numberDouble NaN', { $numberDouble: 'NaN' }, new Double(Number.NaN)],
    ['$numberDouble as a number', { $numberDouble: 7 }, new Double(7)],
    ['$numberDecimal', { $numberDecimal: '1.50' }, Decimal128.fromString('1.50')],
    ['$date', { $date: '2024-02-29T10:30:00.5+02:00' }, new Date('2024-02-29T08:30:00.500Z')],
    ['$date in milliseconds', { $date: { $numberLong: '-2147483648000' } }, new Date(-2147483648000)],
    ['$timestamp', { $timestamp: { t: 4294967295, i: 0 } }, new Timestamp({ t: 4294967295, i: 0 })],
    ['$binary', { $binary: { base64: 'AAEC/w==', subType: '80' } }, Binary.createFromBase64('AAEC/w==', 0x80)],
    ['legacy $binary', { $type: '3', $binary: 'AAEC/w==' }, Binary.createFromBase64('AAEC/w==', 3)],
    ['$uuid', { $uuid: '0e1b8c1e-7c3f-4b8e-9f8a-1b2c3d4e5f60' }, new UUID('0e1b8c1e-7c3f-4b8e-9f8a-1b2c3d4e5f60')],
    ['$regularExpression', { $regularExpression: { pattern: '^a/b', options: 'xi' } }, new BSONRegExp('^a/b', 'ix')],
    ['$regularExpression without options', { $regularExpression: { pattern: 'a' } }, new BSONRegExp('a', '')],
    ['$minKey', { $minKey: 1 }, new MinKey()],
    ['$maxKey', { $maxKey: 1 }, new MaxKey()],
    ['$symbol', { $symbol: 's' }, new BSONSymbol('s')],
    ['$code', { $code: 'f()' }, new Code('f()')],
    ['$code with $scope', { $scope: { n: { $numberLong: '1' } }, $code: 'f()' }, new Code('f()', { n: Long.ONE })],
  ])('%s becomes its type', (_name, json, expected) => {
    const value = parse(json);
    expect(Object.getPrototypeOf(value)).toBe(Object.getPrototypeOf(expected));
    expect(BSON.serialize({ value })).toEqual(BSON.serialize({ value: expected }));
  });

  test.each<[unknown, string]>([
    [{ $oid: '507f1f77bcf86cd79943901' }, 'is not 24 hexadecimal digits'],
    [{ $oid: 5 }, 'is not 24 hexadecimal digits'],
    [{ $oid: null }, 'is not 24 hexadecimal digits'],
    [{ $numberInt: '2147483648' }, 'Write {"$numberLong": "2147483648"}'],
    [{ $numberInt: '1.5' }, '$numberInt "1.5" is not an integer'],
    [{ $numberInt: '' }, 'is not an integer'],
    [{ $numberLong: '9223372036854775808' }, 'Write {"$numberDecimal": "9223372036854775808"}'],
    [{ $numberLong: '1e3' }, 'is not an integer'],
    [{ $numberLong: 2 ** 53 }, 'is not an integer in text'],
    [{ $numberDouble: '1e400' }, 'beyond the range of a double'],
    [{ $numberDouble: '1e-400' }, 'beyond the range of a double'],
    [{ $numberDouble: '0x10' }, 'is not a number'],
    [{ $numberDouble: ' 1' }, 'is not a number'],
    [{ $numberDecimal: 1.5 }, 'is not a decimal number in text'],
    [{ $numberDecimal: 'one' }, 'is not a decimal number'],
    [{ $numberDecimal: '12345678901234567890123456789012345' }, 'does not fit'],
    [{ $numberDecimal: '1E6145' }, 'does not fit'],
    [{ $numberDecimal: '1E-6177' }, 'does not fit'],
    [{ $date: '5' }, '$date "5" is not an ISO 8601 date'],
    [{ $date: 'not a date' }, 'is not an ISO 8601 date'],
    [{ $date: '2023-02-29T00:00:00Z' }, 'not in the calendar'],
    [{ $date: '2023-13-01' }, 'not in the calendar'],
    [{ $date: '2023-01-01T24:00:00Z' }, 'not on the clock'],
    [{ $date: '2023-01-01T23:59:60Z' }, 'not on the clock'],
    [{ $date: '2023-01-01T00:00:00+24:00' }, 'not on the clock'],
    [{ $date: '2023-01-01T10:00:00' }, 'has no time zone'],
    [{ $date: '2023-01-01T10:00:00.0001Z' }, 'finer than a millisecond'],
    [{ $date: 1700000000 }, 'may be seconds or milliseconds'],
    [{ $date: { $numberLong: '8640000000000001' } }, '8.64e15'],
    [{ $date: { $numberLong: '0', x: 1 } }, 'holds neither'],
    [{ $date: null }, 'holds neither'],
    [{ $timestamp: { t: 1, i: 4294967296 } }, '$timestamp needs'],
    [{ $timestamp: { t: -1, i: 0 } }, '$timestamp needs'],
    [{ $timestamp: { t: 1, i: 1, x: 1 } }, '$timestamp needs'],
    [{ $timestamp: 'x' }, '$timestamp needs'],
    [{ $binary: { base64: 'AAEC/w', subType: '00' } }, 'is not base64'],
    [{ $binary: { base64: 'AAEC/x==', subType: '00' } }, 'is not base64'],
    [{ $binary: { base64: 'AA', subType: 'xyz' } }, '$binary needs'],
    [{ $binary: 'AAEC' }, '$binary needs'],
    [{ $binary: { base64: 'JwEB', subType: '09' } }, 'not a valid vector'],
    [{ $uuid: '0e1b8c1e' }, '$uuid needs'],
    [{ $regularExpression: { pattern: 'a', options: 'g' } }, 'no regular expression flag "g"'],
    [{ $regularExpression: { pattern: 'a', options: 'l' } }, 'no regular expression flag "l"'],
    [{ $regularExpression: { pattern: 'a\0', options: '' } }, 'NUL'],
    [{ $regularExpression: 'a' }, '$regularExpression needs'],
    [{ $minKey: true }, 'Write {"$minKey": 1}'],
    [{ $symbol: 1 }, '$symbol holds something other than text'],
    [{ $code: 1 }, '$code holds something other than text'],
    [{ $code: 'f()', $scope: null }, 'a scope is a document'],
    [{ $code: 'f()', $scope: { $oid: '507f1f77bcf86cd799439011' } }, 'a scope is a document'],
    [{ $dbPointer: { $ref: 'c', $id: { $oid: '507f1f77bcf86cd799439011' } } }, 'Write {"$ref"'],
    [{ $undefined: true }, 'Write null'],
  ])('%j is refused', (json, reason) => {
    const error = refusal([{ $match: { a: json } }]);
    expect(error.code).toBe('bad_argument');
    expect(error.path).toMatch(/^pipeline\[0\]\.\$match\.a/);
    expect(error.message).toContain(reason);
    expect(error.message.startsWith(`${error.path}: `)).toBe(true);
  });

  test.each([
    { $date: '2024-01-01', $gt: 1 },
    { $gt: 1, $oid: '507f1f77bcf86cd799439011' },
    { $numberLong: '1', $numberInt: '1' },
    { $binary: { base64: '', subType: '00' }, $type: '00' },
    { $code: 'f()', $scope: {}, x: 1 },
    { $regularExpression: { pattern: 'a', options: '' }, $ne: 'b' },
  ])('a sibling beside a wrapper is refused: %j', (json) => {
    expect(refusal(json).message).toContain('stands for one value');
  });

  test('a date that is ISO 8601 means the same instant as in JavaScript', () => {
    const inFourDigitYears = fc.date({ min: new Date('0000-01-01T00:00:00Z'), max: new Date('9999-12-31T23:59:59.999Z'), noInvalidDate: true });
    fc.assert(fc.property(inFourDigitYears, (date) => { expect(parse({ $date: date.toISOString() })).toEqual(date); }));
    expect(parse({ $date: '2024-01-31' })).toEqual(new Date('2024-01-31T00:00:00Z'));
    expect(parse({ $date: '2024-01-31T10:00-0530' })).toEqual(new Date('2024-01-31T15:30:00Z'));
    expect(parse({ $date: '2024-01-31T10:00:00.123000Z' })).toEqual(new Date('2024-01-31T10:00:00.123Z'));
    expect(parse({ $date: 1700000000000 })).toEqual(new Date(1700000000000));
    expect(parse({ $date: 0 })).toEqual(new Date(0));
  });

  test('a decimal keeps its exact value, and is refused exactly where 34 digits do not hold it', () => {
    const digits = fc.stringMatching(/^-?0{0,6}[0-9]{1,36}(\.0{0,12}[0-9]{0,20}0{0,9})?$/);
    const text = fc.tuple(digits, fc.option(fc.integer({ min: -6300, max: 6300 }), { nil: undefined })).map(([d, e]) => (e === undefined ? d : `${d}E${e}`));
    const fits = ([, coefficient, exponent]: Reduced) => coefficient === '' || (coefficient.length <= 34 && exponent >= -6176 && exponent + coefficient.length <= 6145);
    fc.assert(
      fc.property(text, (decimal) => {
        const expected = reduced(decimal);
        if (fits(expected)) expect(reduced(String(parse({ $numberDecimal: decimal })))).toEqual(expected);
        else expect(refusal({ $numberDecimal: decimal }).message).toContain('does not fit');
      }),
      { numRuns: 5000 },
    );
    // The library rounds the first of these without a word, and refuses the second.
    expect(refusal({ $numberDecimal: '-0050400252096016000001441244600802.0000000000004' }).message).toContain('does not fit');
    expect(String(parse({ $numberDecimal: '00001680792867009323009387973571550020000.0' }))).toBe('1.680792867009323009387973571550020E+36');
    expect(String(parse({ $numberDecimal: '0.0000000000012345678901234567890123456789012340' }))).toBe('1.234567890123456789012345678901234E-12');
    expect(String(parse({ $numberDecimal: '1E6144' }))).toBe('1.000000000000000000000000000000000E+6144');
    expect(String(parse({ $numberDecimal: '-0.00' }))).toBe('-0.00');
  });
});

type Reduced = [sign: string, coefficient: string, exponent: number];

/** Sign, coefficient without trailing zeros, and exponent of a decimal's text. */
const reduced = (text: string): Reduced => {
  const [, sign = '', whole = '', fraction = '', power = '0'] = /^(-?)(\d*)\.?(\d*)(?:E([+-]?\d+))?$/.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  const trimmed = digits.replace(/0+$/, '');
  return [sign, trimmed, trimmed === '' ? 0 : Number(power) - fraction.length + digits.length - trimmed.length];
};

describe('query operators that look alike', () => {
  test.each([
    { name: { $regex: '^a', $ne: 'abc' } },
    { name: { $regex: '^a', $options: 'imsxu' } },
    { name: { $not: { $regex: 'x' } } },
    { $expr: { $regexMatch: { input: '$name', regex: '^a', options: 'i' } } },
    { a: { $type: 'string' } },
    { a: { $type: 'binData', $ne: 'x' } },
    { $ref: 'c', $id: 'x', $db: 'd' },
    { a: { $options: 'g' } },
  ])('%j stays as it is', (filter) => {
    expect(parse(filter)).toEqual(filter);
  });

  test('a wrapped regular expression keeps its siblings out and its place in $in', () => {
    const filter = parse({ name: { $in: [{ $regularExpression: { pattern: '^a', options: 'i' } }] } });
    expect(filter).toEqual({ name: { $in: [new BSONRegExp('^a', 'i')] } });
  });

  test('a flag that the server does not have is refused by its name', () => {
    const error = refusal([{ $match: { name: { $regex: 'a', $options: 'ig' } } }]);
    expect(error.path).toBe('pipeline[0].$match.name.$options');
    expect(error.message).toContain('"g"');
  });

  test('a reference holds converted values and keeps its key order', () => {
    const reference = parse({ x: 1.5, $ref: 'a.b', $id: { $oid: '507f1f77bcf86cd799439011' } }) as object;
    expect(Object.keys(reference)).toEqual(['x', '$ref', '$id']);
    expect(reference).toMatchObject({ $id: new ObjectId('507f1f77bcf86cd799439011') });
  });
});

describe('bare numbers', () => {
  test('take the smallest integer type, and a double for fractions and -0', () => {
    const cases: [number, object][] = [
      [7, new Int32(7)],
      [2147483647, new Int32(2147483647)],
      [2147483648, Long.fromNumber(2147483648)],
      [-2147483649, Long.fromNumber(-2147483649)],
      [Number.MAX_SAFE_INTEGER, Long.fromNumber(Number.MAX_SAFE_INTEGER)],
      [-Number.MAX_SAFE_INTEGER, Long.fromNumber(-Number.MAX_SAFE_INTEGER)],
      [1.5, new Double(1.5)],
      [-0, new Double(-0)],
    ];
    for (const [number, expected] of cases) expect(parse(number)).toEqual(expected);
  });

  test('are refused where JSON may have rounded them', () => {
    for (const json of ['9007199254740992', '9007199254740993', '-9007199254740993', '9007199254740991.5']) {
      expect(() => parseText(`[${json}]`)).toThrow(/^pipeline\[0\]: .*"\$numberLong"/);
    }
    expect(() => parseText('[1e300]')).toThrow('{"$numberDouble": "1e+300"}');
    expect(() => parseText('[1e400]')).toThrow('"$numberDecimal"');
  });
});

describe('the order of keys', () => {
  test('is refused where JSON lost it and it matters', () => {
    for (const stage of [
      { $sort: { b: 1, '2': 1 } },
      { $setWindowFields: { sortBy: { b: 1, '2': 1 } } },
      { $group: { _id: null, top: { $topN: { n: 3, sortBy: { '0': 1, '1': -1 }, output: '$x' } } } },
      { hint: { b: 1, '2': 1 } },
    ]) {
      expect(refusal([stage]).message).toContain('order of keys is lost');
    }
    expect(refusal([{ $sort: { b: 1, '2': 1 } }]).path).toBe('pipeline[0].$sort');
    expect(refusal({ b: 1, '2': 1 }, { orderMatters: true }).message).toContain('"2"');
    expect(refusal([{ a: { b: 1, '2': 1 } }], { orderMatters: true }).path).toBe('pipeline[0].a');
  });

  test('is not a question with one key, or where it does not matter', () => {
    expect(parse([{ $sort: { '2': 1 } }])).toEqual([{ $sort: { '2': new Int32(1) } }]);
    expect(parse([{ $match: { b: true, '2': true } }])).toEqual([{ $match: { b: true, '2': true } }]);
  });

  test('is refused for exactly the keys that JavaScript moves', () => {
    for (const key of ['0', '7', '01', '-1', '1.0', '1e3', '4294967294', '4294967295', '99999999999', ' 1', 'a']) {
      const moves = Object.keys(JSON.parse(`{"x": 1, "${key}": 1}`) as object)[0] === key;
      const parseSort = () => parseArgument({ x: 1, [key]: 1 }, 'sort', { orderMatters: true });
      if (moves) expect(parseSort, key).toThrow('order of keys');
      else expect(parseSort, key).not.toThrow();
    }
  });
});

describe('keys and texts that BSON cannot send', () => {
  test('__proto__ is a key like any other', () => {
    const value = parseText('{"__proto__": {"a": 1}, "constructor": 2, "toString": "x", "toBSON": {"b": true}}') as object;
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    const stored = BSON.deserialize(BSON.serialize({ value })).value as object;
    expect(Object.entries(stored)).toEqual([
      ['__proto__', { a: 1 }],
      ['constructor', 2],
      ['toString', 'x'],
      ['toBSON', { b: true }],
    ]);
  });

  test.each([[{ _bsontype: 'ObjectId' }], [{ _bsontype: null }], [{ $code: 'f()', $scope: { _bsontype: 1 } }]])('%j is refused: bson takes it for a class', (document) => {
    const error = refusal([{ $match: { a: document } }]);
    expect(error.path).toMatch(/_bsontype$/);
  });

  test('a lone surrogate is refused in values, keys, code and patterns', () => {
    for (const value of ['a\ud800', { 'a\udc00': 1 }, { $code: '\ud800' }, { $symbol: '\ud800' }, { $regularExpression: { pattern: '\ud800', options: '' } }]) {
      expect(refusal(value).message).toContain('surrogate');
    }
    expect(parse('😀 \0 "q"')).toBe('😀 \0 "q"');
  });

  test('a NUL in a key is refused', () => {
    expect(refusal({ 'a\0b': 1 }).message).toContain('NUL');
  });

  test('what is not JSON is refused', () => {
    for (const value of [undefined, () => 1, 1n, Symbol('x'), new Date(), new Map(), new ObjectId(), [undefined]]) {
      expect(refusal(value).message).toContain('is not JSON');
    }
  });

  test('more than 100 levels are refused, however many there are', () => {
    const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));
    expect(parse(nested(100))).toEqual(nested(100));
    expect(refusal(nested(101)).message).toContain('more than 100 levels');
    expect(refusal(nested(200_000)).message).toContain('more than 100 levels');
  });
});

describe('the path of a place', () => {
  test('names indexes, keys and keys that need quotes', () => {
    expect(refusal([1, { $match: { 'a.b': [{ $oid: 'x' }] } }]).path).toBe('pipeline[1].$match["a.b"][0]');
  });

  test('stays short for a long key', () => {
    expect(refusal({ ['k'.repeat(100_000)]: { $oid: 'x'.repeat(100_000) } }).message.length).toBeLessThan(400);
  });
});

describe('JSON text', () => {
  test('becomes the value that it says', () => {
    const text = ' [{"$match": {"a": "x,{\\"b\\": 1}", "n": [1, {"a": 2}, {"a": 3}]}}, {"$limit": 5}] ';
    expect(jsonTextToValue(text, 'pipeline')).toEqual(JSON.parse(text));
    expect(jsonTextToValue('10', 'limit')).toBe(10);
  });

  test('that is not JSON is refused in one short sentence', () => {
    for (const text of ['', '[{$match: {}}]', "[{'a': 1}]", '[1,]', '{"_id": ObjectId("507f1f77bcf86cd799439011")}', 'x'.repeat(10_000)]) {
      expect(() => jsonTextToValue(text, 'pipeline')).toThrow(/^pipeline: the text is not JSON .{1,300}$/s);
    }
  });

  test('that gives a key twice is refused, with the place', () => {
    const text = '[{"$match": {"a": {"$gt": 1}, "b": [{"x": 1}, {"x": 2}], "\\u0061": {"$lt": 5}}}]';
    expect(() => jsonTextToValue(text, 'pipeline')).toThrow('pipeline[0].$match.a: the key "a" is given twice');
    expect(() => jsonTextToValue('[1, [2, {"__proto__": 1, "__proto__": 2}]]', 'pipeline')).toThrow('pipeline[1][1].__proto__');
  });

  test('is taken whenever no key is given twice', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value, null, 1);
        expect(jsonTextToValue(text, 'pipeline')).toEqual(JSON.parse(text));
      }),
    );
  });

  test('is read however long its strings are', () => {
    const value = { a: '\\"\n'.repeat(1_000_000), b: '\\' };
    expect(jsonTextToValue(JSON.stringify(value), 'pipeline')).toEqual(value);
  });

  test('with a large integer is refused by the number check', () => {
    expect(() => parseArgument(jsonTextToValue('[{"$match": {"n": 9007199254740993}}]', 'pipeline'), 'pipeline')).toThrow('pipeline[0].$match.n: the integer');
  });
});

describe('whatever is sent', () => {
  const wrapperKeys = ['$oid', '$numberInt', '$numberLong', '$numberDouble', '$numberDecimal', '$date', '$timestamp', '$binary', '$uuid', '$regularExpression'];
  const oddKeys = ['$minKey', '$maxKey', '$symbol', '$code', '$scope', '$type', '$regex', '$options', '$undefined', '__proto__', '_bsontype', 'toBSON', '$sort', '0', '1'];
  const leaf = fc.oneof(
    fc.constantFrom<unknown>('', '5', '1e400', '-0', 'AAEC', '00', 'i', '2024-01-01', '2024-02-30', '507f1f77bcf86cd799439011', 1, 0, -0, 1e300, 1e12, null, '\ud800', '\0'),
    fc.double(),
    fc.string({ unit: 'binary' }),
  );
  const { json } = fc.letrec((tie) => ({
    json: fc.oneof({ maxDepth: 5 }, leaf, fc.array(tie('json'), { maxLength: 3 }), tie('document'), fc.anything()),
    document: fc
      .array(fc.tuple(fc.constantFrom(...wrapperKeys, ...oddKeys, 'a', 't', 'i', 'base64', 'subType', 'pattern', 'options'), tie('json')), { maxLength: 3 })
      .map((entries) => Object.fromEntries(entries)),
  }));

  test('the only error is a bad_argument, and what is taken can be sent', () => {
    fc.assert(
      fc.property(json, fc.boolean(), (value, orderMatters) => {
        let taken: unknown;
        try {
          taken = parseArgument(value, 'pipeline', { orderMatters });
        } catch (error) {
          expect(error).toBeInstanceOf(LeashError);
          expect((error as LeashError).code).toBe('bad_argument');
          return;
        }
        BSON.serialize({ taken });
      }),
      { numRuns: 5000 },
    );
  });
});
