/** The calls that both servers get: every shared tool, on every kind of data, with arguments that are good, odd and wrong. */

import { pipelineJson } from '../support/cases.js';
import { cases, databaseOf, oddNames } from './data.js';

export interface Call {
  /** What is asked, as a person would say it. */
  title: string;
  tool: string;
  args: Record<string, unknown>;
  /** The connection that both have opened by this name; the preconfigured one when left out. */
  connection?: 'narrow' | 'searchless';
}

type Arguments = Record<string, unknown>;
const whole = { responseBytesLimit: 1_048_576 };
const on = (collection: string, database = 'shop') => ({ database, collection });
const orders = on('orders');
const many = (tool: string, rows: Record<string, Arguments>): Call[] => Object.entries(rows).map(([title, args]) => ({ tool, title, args }));

const aggregates: Call[] = [
  ...cases.map((each): Call => {
    // The stock server takes no collation.
    const { pipeline } = pipelineJson(each.name);
    const args = { database: databaseOf(each), pipeline, ...whole };
    return each.collection === null ? { tool: 'aggregate-db', title: `case ${each.name}`, args } : { tool: 'aggregate', title: `case ${each.name}`, args: { ...args, collection: each.collection } };
  }),
  ...many('aggregate', {
    'all types': { ...on('types', 'odd'), pipeline: [{ $sort: { _id: 1 } }], ...whole },
    'odd fields': { ...on('fields', 'odd'), pipeline: [{ $sort: { _id: 1 } }] },
    'a view': { ...on('view'), pipeline: [{ $sort: { n: 1 } }] },
    'a time series': { ...on('series'), pipeline: [{ $sort: { t: 1 } }] },
    'a facet': { ...orders, pipeline: [{ $facet: { first: [{ $sort: { n: 1 } }, { $limit: 1 }], all: [{ $count: 'n' }] } }] },
    'EJSON in a stage': { ...orders, pipeline: [{ $match: { at: { $lt: { $date: '2023-11-14T22:13:25Z' } }, n: { $gte: { $numberLong: '1' } } } }, { $sort: { n: 1 } }] },
    'no document': { ...orders, pipeline: [{ $match: { n: -1 } }] },
    'an empty pipeline on an empty collection': { ...on('empty'), pipeline: [] },
    'an unknown collection': { ...on('nothing'), pipeline: [] },
    'more than 100 documents': { ...orders, pipeline: [{ $sort: { n: 1 } }], ...whole },
    'its own $limit of 3': { ...orders, pipeline: [{ $sort: { n: 1 } }, { $limit: 3 }] },
    'large documents': { ...on('fat'), pipeline: [{ $sort: { _id: 1 } }] },
    'large documents, responseBytesLimit 250000': { ...on('fat'), pipeline: [{ $sort: { _id: 1 } }], responseBytesLimit: 250_000 },
    'large documents, responseBytesLimit 0': { ...on('fat'), pipeline: [{ $sort: { _id: 1 } }, { $limit: 3 }], responseBytesLimit: 0 },
    'large documents, responseBytesLimit 10': { ...on('fat'), pipeline: [{ $sort: { _id: 1 } }], responseBytesLimit: 10 },
    'an unknown stage': { ...orders, pipeline: [{ $nope: 1 }] },
    'two stages in one': { ...orders, pipeline: [{ $match: {}, $limit: 1 }] },
    'division by zero': { ...orders, pipeline: [{ $project: { x: { $divide: [1, 0] } } }] },
    '$out': { ...orders, pipeline: [{ $out: 'copy' }] },
    '$merge': { ...orders, pipeline: [{ $merge: { into: 'copy' } }] },
    '$where': { ...orders, pipeline: [{ $match: { $where: 'true' } }] },
    '$function': { ...orders, pipeline: [{ $project: { x: { $function: { body: 'function(){return 1}', args: [], lang: 'js' } } } }] },
    '$search': { ...orders, pipeline: [{ $search: { text: { query: 'x', path: 'y' } } }] },
    'users of the deployment': { ...on('system.users', 'admin'), pipeline: [{ $project: { user: 1 } }] },
    'no pipeline': { ...orders },
    'a pipeline as text': { ...orders, pipeline: '[{"$limit": 1}]' },
    'an unknown argument': { ...orders, pipeline: [], verbose: true },
    'a database with a dot': { ...on('c', 'a.b'), pipeline: [] },
    'an empty name of a collection': { ...on(''), pipeline: [] },
    'an empty name of a database': { ...on('orders', ''), pipeline: [] },
  }),
  ...many('aggregate-db', {
    '$documents': { database: 'shop', pipeline: [{ $documents: [{ a: 1 }, { a: { $numberLong: '2' } }] }] },
    'more than 100 documents': { database: 'shop', pipeline: [{ $documents: [{}] }, { $project: { i: { $range: [0, 150] } } }, { $unwind: '$i' }], ...whole },
    'no document': { database: 'shop', pipeline: [{ $documents: [] }] },
    'a first stage that needs a collection': { database: 'shop', pipeline: [{ $match: {} }] },
    'an empty pipeline': { database: 'shop', pipeline: [] },
    '$changeStream': { database: 'shop', pipeline: [{ $changeStream: {} }] },
    '$currentOp': { database: 'admin', pipeline: [{ $currentOp: {} }, { $limit: 1 }, { $project: { _id: 1 } }] },
  }),
];

const finds = many('find', {
  ...Object.fromEntries(oddNames.map((name) => [`the collection ${JSON.stringify(name)}`, on(name, 'odd')])),
  'all types': { ...on('types', 'odd'), sort: { _id: 1 }, limit: 100, ...whole },
  'odd fields': { ...on('fields', 'odd'), sort: { _id: 1 } },
  'a view': { ...on('view'), sort: { n: 1 } },
  'a time series': { ...on('series'), sort: { t: 1 } },
  'no limit': { ...orders, sort: { n: 1 } },
  'a limit above what there is': { ...on('view'), sort: { n: 1 }, limit: 50 },
  'a limit above 100': { ...orders, sort: { n: 1 }, limit: 200, ...whole },
  'limit 0': { ...orders, sort: { n: 1 }, limit: 0, ...whole },
  'a negative limit': { ...orders, sort: { n: 1 }, limit: -3 },
  'filter, projection, sort and limit': { ...orders, filter: { who: 'w1', n: { $gt: 10 } }, projection: { _id: 0, n: 1, 'nested.deep.x': 1 }, sort: { n: -1 }, limit: 3 },
  'an expression in the projection': { ...orders, filter: { n: 7 }, projection: { twice: { $multiply: ['$n', 2] } } },
  'sort by words': { ...orders, sort: { who: 'asc', n: 'descending' }, limit: 4 },
  'sort by text score': { ...on('articles', 'case_10'), filter: { $text: { $search: 'coffee' } }, projection: { score: { $meta: 'textScore' } }, sort: { score: { $meta: 'textScore' } } },
  'sort 0': { ...orders, sort: { n: 0 } },
  'a UUID': { ...on('types', 'odd'), filter: { value: { $uuid: '0e1b8c1e-7c3f-4b8e-9f8a-1b2c3d4e5f60' } } },
  'an ObjectId': { ...on('types', 'odd'), filter: { value: { $oid: '507f1f77bcf86cd799439011' } } },
  'a date': { ...orders, filter: { at: { $lte: { $date: '2023-11-14T22:13:21.500Z' } } }, sort: { n: 1 } },
  'a large long': { ...on('types', 'odd'), filter: { value: { $numberLong: '9223372036854775807' } } },
  'a regular expression': { ...orders, filter: { who: { $regex: '^W1', $options: 'i' } }, sort: { n: 1 }, limit: 2 },
  'a bad ObjectId': { ...orders, filter: { _id: { $oid: 'xyz' } } },
  'an unknown operator': { ...orders, filter: { n: { $nope: 1 } } },
  '$where': { ...orders, filter: { $where: 'true' } },
  'a filter as text': { ...orders, filter: '{"n": 1}' },
  'a limit as text': { ...orders, sort: { n: 1 }, limit: '2' },
  'no document': { ...orders, filter: { n: -1 } },
  'an unknown collection': { ...on('nothing') },
  'large documents, responseBytesLimit 250000': { ...on('fat'), sort: { _id: 1 }, responseBytesLimit: 250_000 },
  'no collection': { database: 'shop' },
});

const counts = many('count', {
  'a whole collection': orders,
  'a query': { ...orders, query: { n: { $lt: 10 } } },
  'an empty query': { ...orders, query: {} },
  'an odd name': on('line\nbreak', 'odd'),
  'a view': on('view'),
  'a time series': on('series'),
  'an unknown collection': on('nothing'),
  'an unknown operator': { ...orders, query: { n: { $nope: 1 } } },
});

const explained = { aggregate: { pipeline: [{ $match: { n: { $gt: 5 } } }, { $group: { _id: '$who' } }] }, find: { filter: { n: { $gt: 5 } }, sort: { n: -1 } }, count: { query: { n: { $gt: 5 } } } };
const explains = many('explain', {
  ...Object.fromEntries(Object.entries(explained).flatMap(([name, args]) => ['queryPlanner', 'executionStats', 'allPlansExecution'].map((verbosity) => [`${name}, ${verbosity}`, { ...orders, method: [{ name, arguments: args }], verbosity }]))),
  'find, without verbosity and arguments': { ...orders, method: [{ name: 'find', arguments: {} }] },
  'find with values of all kinds': { ...on('types', 'odd'), method: [{ name: 'find', arguments: { filter: { value: { $in: [{ $numberLong: '5' }, { $date: '2024-02-29T12:00:00Z' }, { $oid: '507f1f77bcf86cd799439011' }] } } } }] },
  'an unknown collection': { ...on('nothing'), method: [{ name: 'find', arguments: {} }] },
  'a bad pipeline': { ...orders, method: [{ name: 'aggregate', arguments: { pipeline: [{ $nope: 1 }] } }] },
  'no method': { ...orders, method: [] },
  queryPlannerExtended: { ...orders, method: [{ name: 'find', arguments: {} }], verbosity: 'queryPlannerExtended' },
  'distinct': { ...orders, method: [{ name: 'distinct', arguments: { field: 'who' } }] },
});

const metadata: Call[] = [
  ...many('collection-schema', {
    'like documents': { ...on('orders'), sampleSize: 5 },
    'mixed documents': on('mixed'),
    'all types': on('types', 'odd'),
    'odd fields': on('fields', 'odd'),
    'an odd name': on('q"uote\'s', 'odd'),
    'a view': on('view'),
    'a time series': on('series'),
    'an empty collection': on('empty'),
    'an unknown collection': on('nothing'),
    'sampleSize 0': { ...orders, sampleSize: 0 },
  }),
  ...many('collection-indexes', { 'a collection': orders, 'a view': on('view'), 'an unknown collection': on('nothing') }),
  ...['orders', 'articles', 'empty', 'view', 'nothing'].map((collection): Call => ({ tool: 'collection-indexes', title: `${collection}, where the database says that it has no search`, args: on(collection, collection === 'articles' ? 'case_10' : 'shop'), connection: 'searchless' })),
  ...many('collection-storage-size', { 'a collection': orders, 'large documents': on('fat'), 'an odd name': on('💾', 'odd'), 'a time series': on('series'), 'an empty collection': on('empty'), 'a view': on('view'), 'an unknown collection': on('nothing') }),
  ...many('db-stats', { 'a database': { database: 'shop' }, 'an unknown database': { database: 'nothing' }, 'a database with a dot': { database: 'a.b' } }),
  ...many('list-databases', { all: {} }),
  ...many('list-collections', { 'a database': { database: 'shop' }, 'odd names': { database: 'odd' }, 'an unknown database': { database: 'nothing' } }),
  ...many('mongodb-logs', { 'warnings of the start': { type: 'startupWarnings' }, 'the last 5 lines': { limit: 5 }, 'limit 0': { limit: 0 } }),
];

const target = (name: string, args: Arguments) => ({ exportTitle: 'side by side', exportTarget: [{ name, arguments: args }] });
const exports = many('export', {
  'a find, relaxed': { ...orders, ...target('find', { filter: { n: { $lt: 150 } }, sort: { n: 1 } }) },
  'a find, canonical': { ...orders, ...target('find', { filter: { n: { $lt: 3 } }, projection: { tags: 0 }, sort: { n: 1 }, limit: 2 }), jsonExportFormat: 'canonical' },
  'all types, relaxed': { ...on('types', 'odd'), ...target('find', { sort: { _id: 1 } }) },
  'all types, canonical': { ...on('types', 'odd'), ...target('aggregate', { pipeline: [{ $sort: { _id: 1 } }] }), jsonExportFormat: 'canonical' },
  'odd fields': { ...on('fields', 'odd'), ...target('find', { sort: { _id: 1 } }) },
  'an aggregation': { ...orders, ...target('aggregate', { pipeline: [{ $group: { _id: '$who', n: { $sum: 1 } } }, { $sort: { _id: 1 } }] }) },
  'no document': { ...on('nothing'), ...target('find', {}) },
  'a bad pipeline': { ...orders, ...target('aggregate', { pipeline: [{ $nope: 1 }] }) },
  '$out': { ...orders, ...target('aggregate', { pipeline: [{ $out: 'copy' }] }) },
});

/** By a user who may read one collection. */
const fat = on('fat');
const shop = { database: 'shop' };
const narrow: Call[] = [
  ...many('find', { 'the one collection': { ...orders, sort: { n: 1 }, limit: 2 }, 'another collection': fat }),
  ...many('aggregate', { 'another collection': { ...fat, pipeline: [] } }),
  ...many('aggregate-db', { '$documents': { ...shop, pipeline: [{ $documents: [{}] }] } }),
  ...many('explain', { 'another collection': { ...fat, method: [{ name: 'find', arguments: {} }] } }),
  ...many('export', { 'another collection': { ...fat, ...target('find', {}) } }),
  ...['count', 'collection-schema', 'collection-indexes', 'collection-storage-size'].flatMap((tool) => many(tool, { 'another collection': fat })),
  ...['db-stats', 'list-collections'].flatMap((tool) => many(tool, { 'the database of the collection': shop })),
  ...['list-databases', 'mongodb-logs'].flatMap((tool) => many(tool, { 'all there is': {} })),
].map((call) => ({ ...call, title: `as a user who may read one collection: ${call.title}`, connection: 'narrow' }));

const others = [
  ...many('delete-many', { 'a tool that neither offers': { ...orders, filter: {} } }),
  ...many('list-connections', { 'those that were opened': {} }),
  ...['disconnect', 'find'].flatMap((tool) => many(tool, { 'an unknown connection': { ...(tool === 'find' ? orders : {}), connectionId: 'nothing' } })),
];

export const calls: readonly Call[] = [...aggregates, ...finds, ...counts, ...explains, ...metadata, ...exports, ...narrow, ...others];
