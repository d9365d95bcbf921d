/** Documents are shown with nothing rounded, changed or dropped (cases D15, D16), and what is shown can be sent back. */
import { Binary, BSON, BSONRegExp, BSONSymbol, Code, Decimal128, Double, EJSON, Int32, Long, MaxKey, MinKey, ObjectId, Timestamp, type Document } from 'bson';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseArgument } from '../../src/domain/ejson-in.js';
import { documentsToJson, renderDocument, renderedText } from '../../src/domain/ejson-out.js';
import { LeashError } from '../../src/domain/errors.js';

const canonical = { canonical: true };
const relaxed = { canonical: false };

/** What `v` shows as. */
const shownAs = (v: unknown, options = relaxed) => (renderDocument(BSON.serialize({ v }), options).value as { v: unknown }).v;

/** Through JSON text and back to bytes, as a caller would send it. */
const sentBack = (value: Parameters<typeof renderedText>[0]): Uint8Array =>
  BSON.serialize(parseArgument(JSON.parse(renderedText(value)), 'document') as Document);

/** A document of one element, from its type byte, its key and the bytes of its value. */
const element = (type: number, key: string | Buffer, value: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from([type]), Buffer.from(key), Buffer.from([0]), value, Buffer.from([0])]);
  const size = Buffer.alloc(4);
  size.writeInt32LE(body.length + 4);
  return Buffer.concat([size, body]);
};

const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
};

/** The documents of case pipelines/16-all-types-round-trip, and what relaxed form shows where it differs. */
const allTypes: [name: string, canonicalForm: unknown, relaxedForm?: unknown][] = [
  ['long', { $numberLong: '9223372036854775807' }],
  ['longsafe+2', { $numberLong: '9007199254740993' }],
  ['int', { $numberInt: '7' }, 7],
  ['double-whole', { $numberDouble: '7.0' }, 7],
  ['nan', { $numberDouble: 'NaN' }],
  ['inf', { $numberDouble: 'Infinity' }],
  ['ninf', { $numberDouble: '-Infinity' }],
  ['negzero', { $numberDouble: '-0.0' }],
  ['dec', { $numberDecimal: '123456789012345678901234.5678901234' }],
  ['uuid4', { $binary: { base64: 'DhuMHnw/S46fihssPU5fYA==', subType: '04' } }, { $uuid: '0e1b8c1e-7c3f-4b8e-9f8a-1b2c3d4e5f60' }],
  ['uuid3', { $binary: { base64: 'ABEiM0RVZneImaq7zN3u/w==', subType: '03' } }],
  ['bin0', { $binary: { base64: 'AAEC/w==', subType: '00' } }],
  ['regex', { $regularExpression: { pattern: '^a.*\\d$', options: 'i' } }],
  ['ts', { $timestamp: { t: 1700000000, i: 7 } }],
  ['minkey', { $minKey: 1 }],
  ['maxkey', { $maxKey: 1 }],
  ['date-1901', { $date: { $numberLong: '-2147483648000' } }],
  ['date-far', { $date: { $numberLong: '317273587200000' } }],
  ['nul', null],
  ['emoji', '😀   \\u0000 "q"'],
  ['oid-text', '507f1f77bcf86cd799439011'],
  ['oid', { $oid: '507f1f77bcf86cd799439011' }],
];

describe('every type', () => {
  test.each(allTypes)('%s is shown as it was written, and sent back unchanged', (name, canonicalForm, relaxedForm = canonicalForm) => {
    const bytes = BSON.serialize(parseArgument({ _id: name, v: canonicalForm }, 'document') as Document);
    const full = renderDocument(bytes, canonical);
    expect(full).toEqual({ value: { _id: name, v: canonicalForm }, notes: [] });
    expect(sentBack(full.value)).toEqual(bytes);
    const plain = renderDocument(bytes, relaxed);
    expect(plain).toEqual({ value: { _id: name, v: relaxedForm }, notes: [] });
    if (name !== 'double-whole') expect(sentBack(plain.value)).toEqual(bytes);
  });

  test.each<[unknown, unknown]>([
    [new Double(1.5), 1.5],
    [new Double(2 ** 53 - 1), 9007199254740991],
    [new Double(2 ** 53), { $numberDouble: '9007199254740992.0' }],
    [new Double(1e300), { $numberDouble: '1e+300' }],
    [new Double(5e-324), 5e-324],
    [Long.fromNumber(2 ** 53 - 1), 9007199254740991],
    [Long.fromNumber(-(2 ** 53)), { $numberLong: '-9007199254740992' }],
    [new Date(0), { $date: '1970-01-01T00:00:00Z' }],
    [new Date('9999-12-31T23:59:59.999Z'), { $date: '9999-12-31T23:59:59.999Z' }],
    [new Date(-1), { $date: { $numberLong: '-1' } }],
    [new Date('+010000-01-01T00:00:00Z'), { $date: { $numberLong: '253402300800000' } }],
    [new Binary(Buffer.from('abc'), 4), { $binary: { base64: 'YWJj', subType: '04' } }],
    [new Binary(Buffer.from('abc'), 2), { $binary: { base64: 'YWJj', subType: '02' } }],
    [new Code('f()', { a: Long.MAX_VALUE }), { $code: 'f()', $scope: { a: { $numberLong: '9223372036854775807' } } }],
    [new BSONSymbol('s'), { $symbol: 's' }],
    [[true, [new Int32(1)], {}], [true, [1], {}]],
  ])('%j is %j in relaxed form', (stored, expected) => {
    expect(shownAs(stored)).toEqual(expected);
  });

  test('what JavaScript has no class for is shown too', () => {
    const oid = Buffer.from('507f1f77bcf86cd799439011', 'hex');
    expect(renderDocument(element(0x06, 'v', Buffer.alloc(0)), relaxed).value).toEqual({ v: { $undefined: true } });
    expect(renderDocument(element(0x0c, 'v', Buffer.concat([int32(2), Buffer.from('c\0'), oid])), relaxed).value).toEqual({
      v: { $dbPointer: { $ref: 'c', $id: { $oid: '507f1f77bcf86cd799439011' } } },
    });
    const farDate = Buffer.alloc(8);
    farDate.writeBigInt64LE(2n ** 63n - 1n);
    expect(renderDocument(element(0x09, 'v', farDate), relaxed).value).toEqual({ v: { $date: { $numberLong: '9223372036854775807' } } });
    expect(renderDocument(element(0x0b, 'v', Buffer.from('a\0gl\0')), relaxed).value).toEqual({ v: { $regularExpression: { pattern: 'a', options: 'gl' } } });
    const brokenVector = Buffer.concat([int32(3), Buffer.from([9, 0x27, 1, 1])]);
    expect(renderDocument(element(0x05, 'v', brokenVector), relaxed).value).toEqual({ v: { $binary: { base64: 'JwEB', subType: '09' } } });
  });
});

describe('stored keys that look like something else', () => {
  test('a document like a type marker is shown as it is, with a note', () => {
    expect(renderDocument(BSON.serialize({ a: [{ v: { $numberLong: '5' } }] }), relaxed)).toEqual({
      value: { a: [{ v: { $numberLong: '5' } }] },
      notes: ['a[0].v.$numberLong: this key is stored data, not a type marker.'],
    });
  });

  test('operators and references stored as data need no note, and keep their keys and order', () => {
    const stored = { x: true, $ref: 'a.b', $id: 'y', q: { $regex: 'a', $options: 'i' } };
    const { value, notes } = renderDocument(BSON.serialize({ stored }), relaxed);
    expect(JSON.stringify(value)).toBe(JSON.stringify({ stored }));
    expect(notes).toEqual([]);
  });

  test('_bsontype, __proto__, toJSON and the like are own properties in the JSON text', () => {
    const json = '{"v":{"_bsontype":"ObjectId","id":"x"},"__proto__":{"a":true},"toJSON":"x","constructor":"y"}';
    const entries = new Map(Object.entries(JSON.parse(json) as object));
    entries.set('v', new Map([['_bsontype', 'ObjectId'], ['id', 'x']]));
    const { value, notes } = renderDocument(BSON.serialize(entries), relaxed);
    expect(renderedText(value)).toBe(json);
    expect(Object.getPrototypeOf(value)).toBe(Object.prototype);
    expect(notes).toEqual(['v._bsontype: this key is stored data, and nothing more.', '__proto__: this key is stored data, and nothing more.']);
  });

  test('a key stored twice is noted', () => {
    const twice = Buffer.concat([int32(19), Buffer.from([0x10]), Buffer.from('a\0'), int32(1), Buffer.from([0x10]), Buffer.from('a\0'), int32(2), Buffer.from([0])]);
    expect(renderDocument(twice, relaxed)).toEqual({ value: { a: 2 }, notes: ['a: this key is stored more than once. Its last value is shown.'] });
  });

  test('at most five notes are given, and the last says how many are left out', () => {
    const { notes } = renderDocument(BSON.serialize({ a: Array.from({ length: 9 }, () => ({ $oid: 'x' })) }), relaxed);
    expect(notes).toHaveLength(5);
    expect(notes[4]).toBe('5 more notes of this kind are left out.');
  });
});

describe('bytes that are not as they should be', () => {
  test('a text that is not UTF-8 is shown with replacements and a note', () => {
    const text = Buffer.concat([int32(4), Buffer.from([0x61, 0xff, 0x62, 0])]);
    expect(renderDocument(element(0x02, 'name', text), relaxed)).toEqual({
      value: { name: 'a\ufffdb' },
      notes: ['name: the stored text is not valid UTF-8. What could not be read shows as U+FFFD.'],
    });
    expect(renderDocument(element(0x0a, Buffer.from([0x6b, 0xff]), Buffer.alloc(0)), relaxed).notes).toHaveLength(1);
  });

  test('a stored U+FFFD and a byte order mark are texts like any other', () => {
    expect(renderDocument(BSON.serialize({ v: '\ufffd', w: '\ufeffx' }), relaxed)).toEqual({ value: { v: '\ufffd', w: '\ufeffx' }, notes: [] });
  });

  test('a binary of subtype 02 without its inner length is shown with a note', () => {
    const { value, notes } = renderDocument(element(0x05, 'v', Buffer.concat([int32(3), Buffer.from([2, 1, 2, 3])])), relaxed);
    expect(value).toEqual({ v: { $binary: { base64: 'AQID', subType: '02' } } });
    expect(notes).toHaveLength(1);
  });

  test('bytes that are not one whole document are an internal error', () => {
    const good = Buffer.from(BSON.serialize({ a: 'text', b: [1, 2] }));
    const bad = [Buffer.alloc(0), good.subarray(0, -1), Buffer.concat([good, Buffer.from([0])]), element(0x20, 'a', Buffer.alloc(0)), element(0x02, 'a', int32(-1))];
    for (const bytes of bad) {
      expect(() => renderDocument(bytes, relaxed)).toThrow(expect.objectContaining({ code: 'internal' }));
    }
  });

  test('whatever the bytes are, the only error is a LeashError', () => {
    const good = BSON.serialize({ a: 'text', b: [1, { c: new Code('f()', { d: 1 }) }], e: new Binary(Buffer.from('abc'), 2) });
    const damaged = fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(damaged, (changes) => {
        const bytes = Uint8Array.from(good);
        for (const [at, byte] of changes) bytes[at] = byte;
        try {
          renderDocument(bytes, relaxed);
        } catch (error) {
          expect(error).toBeInstanceOf(LeashError);
        }
      }),
      { numRuns: 3000 },
    );
  });
});

describe('any document', () => {
  const text = fc.string({ unit: 'binary', maxLength: 30 });
  const markers = new Set(['_bsontype']);
  const key = fc
    .oneof(text, fc.constantFrom('__proto__', 'constructor', 'toBSON', 'toString', '0', '17', '$ref', '$id', '$type', '$gt'))
    .filter((name) => !name.includes('\0') && !markers.has(name));
  const bytes = (length?: number) =>
    fc.uint8Array(length === undefined ? { maxLength: 40 } : { minLength: length, maxLength: length }).map((array) => Buffer.from(array));
  const decimal = fc
    .tuple(fc.constantFrom('', '-'), fc.stringMatching(/^([1-9][0-9]{0,33}|0)$/), fc.integer({ min: -6176, max: 6111 }))
    .map(([sign, digits, exponent]) => Decimal128.fromString(`${sign}${digits}E${exponent}`));
  const leaf = fc.oneof(
    text,
    fc.boolean(),
    fc.constantFrom<unknown>(null, new MinKey(), new MaxKey(), new Double(-0), Decimal128.fromString('NaN'), Decimal128.fromString('-Infinity')),
    fc.integer().map((value) => new Int32(value)),
    fc.double().map((value) => new Double(value)),
    fc.maxSafeInteger().map((value) => new Double(value)),
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => Long.fromBigInt(value)),
    fc.integer().map((value) => Long.fromNumber(value)),
    decimal,
    fc.date({ noInvalidDate: true }),
    bytes(12).map((value) => new ObjectId(value)),
    bytes(16).map((value) => new Binary(value, 4)),
    fc.tuple(bytes(), fc.nat(255).filter((subType) => subType !== 9)).map(([value, subType]) => new Binary(value, subType)),
    fc.tuple(fc.nat(0xffffffff), fc.nat(0xffffffff)).map(([t, i]) => new Timestamp({ t, i })),
    fc.tuple(text.filter((pattern) => !pattern.includes('\0')), fc.subarray(['i', 'm', 's', 'u', 'x'])).map(([pattern, flags]) => new BSONRegExp(pattern, flags.join(''))),
    text.map((value) => new BSONSymbol(value)),
    text.map((value) => new Code(value)),
  );
  const { document } = fc.letrec<{ document: Document; value: unknown }>((tie) => ({
    value: fc.oneof({ maxDepth: 4, withCrossShrink: true }, leaf, fc.array(tie('value'), { maxLength: 4 }), tie('document'), fc.tuple(text, tie('document')).map(([code, scope]) => new Code(code, scope))),
    document: fc.dictionary(key, tie('value'), { maxKeys: 5, noNullPrototype: true }),
  }));

  test('comes back with the same bytes from its canonical form', () => {
    fc.assert(
      fc.property(document, (stored) => {
        const original = BSON.serialize(stored);
        expect(Buffer.from(sentBack(renderDocument(original, canonical).value)).equals(Buffer.from(original))).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });

  test('comes back with the same values from its relaxed form', () => {
    fc.assert(
      fc.property(document, (stored) => {
        const original = BSON.serialize(stored);
        const again = sentBack(renderDocument(original, relaxed).value);
        expect(withoutNumberTypes(renderDocument(again, canonical).value)).toBe(withoutNumberTypes(renderDocument(original, canonical).value));
      }),
      { numRuns: 1000 },
    );
  });

  test('has the canonical form that the library gives, where the library keeps the document', () => {
    const withoutReferences = document.filter((stored) => !/"\$(ref|id)"/.test(JSON.stringify(renderDocument(BSON.serialize(stored), canonical).value)));
    fc.assert(
      fc.property(withoutReferences, (stored) => {
        const original = BSON.serialize(stored);
        const library = EJSON.stringify(BSON.deserialize(original, { promoteValues: false, bsonRegExp: true }), { relaxed: false });
        expect(renderedText(renderDocument(original, canonical).value)).toBe(library);
      }),
      { numRuns: 500 },
    );
  });
});

/** Canonical text in which equal numbers of different types are equal: relaxed form keeps the value and not the type. */
const withoutNumberTypes = (value: unknown): string =>
  JSON.stringify(value).replace(/\{"\$number(?:Int|Long|Double)":"(-?\d+)(?:\.0)?"\}/g, (match, digits: string) =>
    Number.isSafeInteger(Number(digits)) && digits !== '-0' ? `{"number":"${digits}"}` : match,
  );

describe('an answer of limited size', () => {
  const docs = [{ a: 'x' }, { b: 'yy' }, { c: 'zzz' }].map((document) => BSON.serialize(document));
  const whole = '{"a":"x"},{"b":"yy"},{"c":"zzz"}';

  test('holds all documents that fit, and says how long their JSON is', () => {
    expect(documentsToJson(docs, { ...relaxed, maxChars: whole.length })).toEqual({
      documents: [{ a: 'x' }, { b: 'yy' }, { c: 'zzz' }],
      chars: whole.length,
      notes: [],
    });
    expect(documentsToJson([], { ...relaxed, maxChars: 10 })).toEqual({ documents: [], chars: 0, notes: [] });
  });

  test('ends before the first document that does not fit', () => {
    expect(documentsToJson(docs, { ...relaxed, maxChars: whole.length - 1 })).toEqual({ documents: [{ a: 'x' }, { b: 'yy' }], chars: 20, notes: [] });
  });

  test('shows the beginning of a first document that is too long, without half a character', () => {
    const big = BSON.serialize({ a: '😀'.repeat(100) });
    const answer = documentsToJson([big, ...docs], { ...relaxed, maxChars: 9 });
    expect(answer).toEqual({ documents: [], chars: 8, notes: [], partial: { position: 0, bytes: big.length, json: '{"a":"😀' } });
  });

  test('names the document in its notes, and gives at most 20', () => {
    const odd = BSON.serialize({ a: { $oid: 'x' }, 'b.c': { $oid: 'y' } });
    const { notes } = documentsToJson([docs[0] as Uint8Array, odd], { ...relaxed, maxChars: 1000 });
    expect(notes).toEqual([
      'documents[1].a.$oid: this key is stored data, not a type marker.',
      'documents[1]["b.c"].$oid: this key is stored data, not a type marker.',
    ]);
    const many = documentsToJson(Array.from({ length: 30 }, () => odd), { ...relaxed, maxChars: 10_000 });
    expect(many.notes).toHaveLength(20);
    expect(many.notes[19]).toBe('41 more notes of this kind are left out.');
  });

  test('never is longer than the limit, and holds as many documents as fit', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme', maxLength: 20 }), { maxLength: 8 }), fc.nat(120), (texts, maxChars) => {
        const answer = documentsToJson(
          texts.map((v) => BSON.serialize({ v })),
          { ...relaxed, maxChars },
        );
        const length = JSON.stringify(answer.documents).length - 2;
        expect(answer.chars).toBe(answer.partial === undefined ? length : answer.partial.json.length);
        expect(answer.chars).toBeLessThanOrEqual(maxChars);
        const next = texts[answer.documents.length];
        if (next !== undefined) expect(JSON.stringify([...answer.documents, { v: next }]).length - 2).toBeGreaterThan(maxChars);
      }),
    );
  });
});
