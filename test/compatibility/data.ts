/** What both servers read: the pipelines from the field, odd names, all kinds of collections, and a user with few rights. */

import { BSONSymbol, Binary, Code, Decimal128, Double, Int32, Long, MaxKey, MinKey, ObjectId, Timestamp } from 'bson';
import type { Db, MongoClient } from 'mongodb';
import { type PipelineCase, pipelineCases } from '../support/cases.js';

export const cases = pipelineCases();
export const databaseOf = ({ name }: PipelineCase) => `case_${name.slice(0, 2)}`;

/** Legal names that break whoever puts them into a text, a path or a pattern. */
export const oddNames = ['a.b.c', 'with space', ' lead and trail ', 'q"uote\'s', 'back\\slash', 'line\nbreak', 'tab\tstop', 'колекция', '日本', '💾', '#RES', '/group/key', '-lead', '_hidden', 'count', '__proto__', '{"n": [1]}', '<b>'];
const oddFields = { ...(JSON.parse('{"__proto__": 0}') as object), 'a.b': 1, $price: 2, '': 3, 'line\nbreak': 4, 'q"uote': 5, 'ключ': 6, '💾': 7, ' space ': 8, 'toString': 9, '2': 10, '1': 11 };

/** One document for each kind of value that BSON has and a driver can write. */
const values: Record<string, unknown> = {
  int: new Int32(7),
  'int as double': new Double(7),
  double: new Double(0.1),
  'double beyond 2^53': new Double(1e300),
  'double, not a number': new Double(Number.NaN),
  'double, infinite': new Double(Number.POSITIVE_INFINITY),
  'double, minus zero': new Double(-0),
  'long, small': Long.fromNumber(5),
  'long, negative': Long.fromNumber(-5),
  'long, 2^53 - 1': Long.fromString('9007199254740991'),
  'long, 2^53 + 1': Long.fromString('9007199254740993'),
  'long, largest': Long.MAX_VALUE,
  decimal: Decimal128.fromString('0.10'),
  'decimal, not a number': Decimal128.fromString('NaN'),
  text: 'plain',
  'text that looks like EJSON': '{"$oid": "507f1f77bcf86cd799439011"}',
  'text with what JSON escapes': 'a"b\\c\u0000d\u2028',
  'text with emoji': '👩‍👩‍👧',
  'true': true,
  'null': null,
  'date, whole second': new Date('2024-02-29T12:00:00Z'),
  'date, milliseconds': new Date('2024-02-29T12:00:00.007Z'),
  'date before 1970': new Date('1969-07-20T20:17:40Z'),
  'date beyond 9999': new Date(300_000_000_000_000),
  id: new ObjectId('507f1f77bcf86cd799439011'),
  uuid: new Binary(Buffer.from('0e1b8c1e7c3f4b8e9f8a1b2c3d4e5f60', 'hex'), 4),
  'uuid, old form': new Binary(Buffer.from('0e1b8c1e7c3f4b8e9f8a1b2c3d4e5f60', 'hex'), 3),
  binary: new Binary(Buffer.from([0, 1, 254, 255])),
  'binary, of users': new Binary(Buffer.from([1]), 128),
  regex: /^a.*\d$/im,
  timestamp: new Timestamp({ t: 1_700_000_000, i: 7 }),
  'min key': new MinKey(),
  'max key': new MaxKey(),
  code: new Code('return 1'),
  'code with scope': new Code('return x', { x: 1 }),
  symbol: new BSONSymbol('s'),
  array: [],
  'array, nested': [[1, [Long.fromNumber(2)]], { a: [new Date(0)] }],
  object: {},
  'object, deep': { a: { b: { c: { d: Long.fromNumber(1) } } } },
};

export async function loadData(client: MongoClient): Promise<void> {
  for (const each of cases) await loadCase(client.db(databaseOf(each)), each);
  await loadShop(client.db('shop'));
  const odd = client.db('odd');
  for (const name of oddNames) await odd.collection(name).insertOne({ _id: 1, name } as object);
  await odd.collection<{ _id: number }>('fields').insertMany([{ _id: 1, ...oddFields }, { _id: 2, nested: oddFields } as { _id: number }]);
  await odd.collection<{ _id: string; value: unknown }>('types').insertMany(Object.entries(values).map(([_id, value]) => ({ _id, value })), { ignoreUndefined: false });
  await client.db('shop').command({ createRole: 'readsOrders', privileges: [{ resource: { db: 'shop', collection: 'orders' }, actions: ['find'] }], roles: [] });
  await client.db('admin').command({ createUser: 'narrow', pwd: 'narrow-secret', roles: [{ role: 'readsOrders', db: 'shop' }] });
}

async function loadCase(db: Db, each: PipelineCase): Promise<void> {
  for (const { collection, docs, indexes = [] } of each.setup) {
    await db.collection(collection).insertMany(docs);
    for (const { key, options } of indexes) await db.collection(collection).createIndex(key, options ?? {});
  }
  for (const command of each.commands ?? []) await db.command(command);
}

async function loadShop(shop: Db): Promise<void> {
  const numbered = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => ({ _id: i, ...make(i) }));
  const orders = shop.collection<{ _id: number }>('orders');
  await orders.insertMany(numbered(250, (i) => ({ n: i, who: `w${i % 7}`, at: new Date(1.7e12 + i * 1_500), tags: ['a', i], nested: { deep: { x: i } } })));
  await orders.createIndexes([{ key: { n: 1 }, unique: true }, { key: { who: 1, n: -1 }, name: 'odd "name"', sparse: true }, { key: { at: 1 }, expireAfterSeconds: 1e9 }, { key: { '$**': 'text' } }]);
  await shop.collection<{ _id: number }>('fat').insertMany(numbered(20, () => ({ text: 'x'.repeat(100_000) })));
  await shop.createCollection('empty');
  await shop.createCollection('capped', { capped: true, size: 4_096 });
  await shop.createCollection('view', { viewOn: 'orders', pipeline: [{ $match: { n: { $lt: 5 } } }] });
  await shop.createCollection('series', { timeseries: { timeField: 't', metaField: 'm' } });
  await shop.collection<{ _id: number }>('series').insertMany(numbered(10, (i) => ({ t: new Date(1.7e12 + i * 1_500), m: { sensor: i % 2 }, v: i })));
  await shop.collection<{ _id: number }>('mixed').insertMany([{ _id: 1, a: 1, b: { c: [1, 'x', { d: 1 }] } }, { _id: 2, a: 'one', e: null }, { _id: 3, a: [1, 2], l: Long.fromNumber(1), f: 0.5 }, { _id: 4 }] as { _id: number }[]);
}
