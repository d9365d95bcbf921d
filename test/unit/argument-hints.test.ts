/** Hints say what an argument that is sent as written seldom means (cases D14, D18). */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hintsFor } from '../../src/domain/argument-hints.js';

const id = '507f1f77bcf86cd799439011';

describe('an id as text', () => {
  test.each<[unknown, string]>([
    [[{ $match: { _id: id } }], 'pipeline[0].$match._id'],
    [[{ $match: { _id: { $in: ['x', id, id] } } }], 'pipeline[0].$match._id.$in'],
    [[{ $match: { customerId: { $ne: id } } }], 'pipeline[0].$match.customerId.$ne'],
    [[{ $match: { 'order.customer_id': id } }], 'pipeline[0].$match["order.customer_id"]'],
    [[{ $match: { $or: [{ a: 1 }, { userID: { $not: { $eq: id } } }] } }], 'pipeline[0].$match.$or[1].userID.$not.$eq'],
    [[{ $match: { lines: { $elemMatch: { productId: id } } } }], 'pipeline[0].$match.lines.$elemMatch.productId'],
    [[{ $match: { $expr: { $eq: ['$_id', id] } } }], 'pipeline[0].$match.$expr.$eq[1]'],
    [[{ $lookup: { from: 'c', as: 'x', pipeline: [{ $match: { _id: id } }] } }], 'pipeline[0].$lookup.pipeline[0].$match._id'],
    [[{ $facet: { a: [{ $match: { _id: id } }] } }], 'pipeline[0].$facet.a[0].$match._id'],
    [[{ $geoNear: { query: { shopId: id } } }], 'pipeline[0].$geoNear.query.shopId'],
    [[{ $match: { _id: `ObjectId("${id}")` } }], 'pipeline[0].$match._id'],
  ])('%j gets one hint with its place', (pipeline, path) => {
    const hints = hintsFor(pipeline);
    expect(hints).toHaveLength(1);
    expect(hints[0]).toMatch(/looks like an ObjectId: write \{"\$oid": "507f1f77bcf86cd799439011"\}/);
    expect(hints[0]?.startsWith(`${path}: `)).toBe(true);
  });

  test('gets none where it is no id, not compared, or an ObjectId already', () => {
    for (const pipeline of [
      [{ $match: { hash: id } }],
      [{ $match: { _id: { $oid: id } } }],
      [{ $match: { _id: id.slice(1) } }],
      [{ $set: { customerId: id } }],
      [{ $match: { $expr: { $eq: ['$_id', '$customerId'] } } }],
    ]) {
      expect(hintsFor(pipeline)).toEqual([]);
    }
  });

  test('is found in a filter that stands alone, under the name it was given', () => {
    expect(hintsFor({ _id: id }, 'filter')).toEqual([expect.stringMatching(/^filter\._id: /)]);
  });
});

describe('a regular expression between slashes', () => {
  test('gets a hint that the slashes are literal', () => {
    const [hint] = hintsFor([{ $match: { name: { $regex: '/acme/i' } } }]);
    expect(hint).toBe(
      'pipeline[0].$match.name.$regex: the slashes in "/acme/i" are taken literally: write "acme" with the options "i" if they only mark a regular expression.',
    );
    expect(hintsFor([{ $match: { $expr: { $regexMatch: { input: '$n', regex: '/a/' } } } }])).toEqual([
      expect.stringMatching(/^pipeline\[0\]\.\$match\.\$expr\.\$regexMatch\.regex: .*write "a" if/),
    ]);
  });

  test('gets none for slashes that are a part of the pattern', () => {
    expect(hintsFor([{ $match: { path: { $regex: '^/home/' } } }])).toEqual([]);
  });
});

describe('a date as text', () => {
  test.each([
    ['2024-01-31', '2024-01-31T00:00:00Z'],
    ['2024-01-31T10:00:00', '2024-01-31T10:00:00Z'],
    ['2024-01-31 10:00:00.123456', '2024-01-31T10:00:00.123Z'],
    ['2024-01-31T10:00+02:00', '2024-01-31T10:00+02:00'],
  ])('%s compared by order gets the $date to write', (text, iso) => {
    const [hint] = hintsFor([{ $match: { createdAt: { $gte: text } } }]);
    expect(hint).toContain(`write {"$date": "${iso}"}`);
    expect(hint?.startsWith('pipeline[0].$match.createdAt.$gte: ')).toBe(true);
  });

  test('is found in expressions, and not where it is compared for equality', () => {
    expect(hintsFor([{ $project: { late: { $gt: ['$due', '2024-01-31'] } } }])).toHaveLength(1);
    expect(hintsFor([{ $match: { day: '2024-01-31' } }])).toEqual([]);
  });
});

test('at most five hints are given', () => {
  expect(hintsFor(Array.from({ length: 50 }, () => ({ $match: { _id: id } })))).toHaveLength(5);
});

test('whatever is given, hints never throw and change nothing', () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const before = JSON.stringify(value);
      hintsFor(value);
      expect(JSON.stringify(value)).toBe(before);
    }),
  );
  const deep: unknown = JSON.parse('{"$match":'.repeat(200_000) + '1' + '}'.repeat(200_000));
  expect(hintsFor(deep)).toEqual([]);
  expect(hintsFor([{ $regexMatch: null }, { $match: null }, { $match: { a: { $in: null } } }])).toEqual([]);
});
