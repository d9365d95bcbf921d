/** Every difference that is expected, with the reason for it: what is met and stands not here fails the tests, and so does what stands here and is not met. */

import { optionRows } from '../../src/config/options.js';
import type { Difference } from './compare.js';
import { exports, plans, values } from './differences-of-values.js';
import { type Expected, either, inAnswer, inList, onlyFor, outcome, unwrapped } from './expected.js';
import { shownNumber } from './page.js';

const defaultOf = (name: 'maxLimit' | 'responseBytes') => shownNumber(Number(optionRows[name].default));
const queries = /^(aggregate|aggregate-db|find)$/;
const refusesWell = (ours: unknown) => typeof unwrapped(unwrapped(ours, 'error'), 'code') === 'string' && typeof unwrapped(ours, 'next') === 'string';

const answers: Expected[] = [
  {
    stock: 'A sentence, then the data as JSON within a long warning.',
    ours: 'The JSON of `structuredContent`; `untrusted` says that data are no instructions.',
    why: 'Text and structure say the same: a client may read either.',
    matches: either(({ kind }) => kind === 'text', inAnswer('additional', /^untrusted$/)),
  },
  {
    stock: 'A refusal is a sentence. Errors of the database are repeated whole, with the command, its session and the signature of the cluster time.',
    ours: 'A refusal has a `code`, a `message`, often the `path` of the argument, what is known of the database, and `next`.',
    why: 'A model can act on it, and nothing of the session leaks.',
    matches: ({ kind, ours }) => kind === 'refusal' && refusesWell(ours),
  },
  {
    stock: 'An answer does not say which operation it came from.',
    ours: '`operationId` and `elapsedMs` besides, and `notes` where an argument or a value needs a word.',
    why: '`status`, `result`, `kill` and the tag in the database know the operation by its id.',
    matches: inAnswer('additional', /^(operationId|elapsedMs|notes)$/),
  },
  {
    stock: 'Counts all documents by a second query beside each `aggregate`, `aggregate-db` and `find`, and waits for it.',
    ours: 'Gives the number (`count`, `aggResultsCount`, `queryResultsCount`) when the answer holds all documents, or the call has `count: true`; otherwise `more` says whether there are more.',
    why: 'The second query costs the database as much as the first.',
    matches: either(inAnswer('missing', /^(count|aggResultsCount|queryResultsCount)$/, queries), inAnswer('additional', /^(returned|more|truncated|next)$/, queries)),
  },
  {
    stock: 'A `limit` of find above 100 is cut to 100.',
    ours: `It is taken, up to \`--max-limit\` (${defaultOf('maxLimit')}).`,
    why: 'A limit that somebody asks for is meant. `MDB_MCP_MAX_DOCUMENTS_PER_QUERY` sets both.',
    matches: onlyFor(/^a limit above 100$/, inAnswer('value', /^(documents|appliedLimits)\.length$/)),
  },
  {
    stock: '`limit` 0 fetches all documents, and a negative one goes past the maximum too.',
    ours: 'Both are refused.',
    why: 'A slip must not fetch a whole collection.',
    matches: outcome('stock', /^(limit 0|a negative limit)$/, /^find$/),
  },
  {
    stock: '`responseBytesLimit` (1 MiB when left out) counts the BSON of the documents. What does not fit is left out, the first document too.',
    ours: `It counts the bytes of the answer (${defaultOf('responseBytes')} when left out, \`--response-bytes\`). \`result\` has the rest, and \`partialDocument\` shows the beginning of a document that alone does not fit.`,
    why: 'An answer has to fit into the context of a model. `MDB_MCP_MAX_BYTES_PER_QUERY` sets the maximum.',
    matches: onlyFor(/^large documents/, either(inAnswer('value', /^documents\.length$/, queries), inAnswer('additional', /^partialDocument$/, queries))),
  },
  {
    stock: 'JSON as text, and numbers as text, are refused.',
    ours: 'They are read, with a note.',
    why: 'Small models send them.',
    matches: outcome('ours', /as text$/, queries),
  },
  {
    stock: 'An empty name of a database means the database `test`.',
    ours: 'It is refused.',
    why: 'Nobody asked for that database.',
    matches: outcome('stock', /^an empty name of a database$/, /^aggregate$/),
  },
  {
    stock: 'Reads `admin`, `local`, `config` and `system.*` as far as the user may.',
    ours: 'Only with `--allow-internal`.',
    why: 'They hold users, and the work of others.',
    matches: outcome('stock', /^(users of the deployment|\$currentOp)$/, queries),
  },
];




const typeItem = /types\{(Number|Int32|Double|Symbol)\}$/;

const facts: Expected[] = [
  {
    stock: 'Types of numbers are `Number` (32-bit integers and doubles together), `Long` and `Decimal128`; a symbol is a `String`.',
    ours: '`Int32`, `Double`, `Long`, `Decimal128`, `Symbol`.',
    why: 'A field that holds integers and doubles is a common mistake, and should be seen.',
    matches: either(inAnswer('missing', typeItem, /^collection-schema$/), inAnswer('additional', typeItem, /^collection-schema$/), inAnswer('value', /types\.order$/, /^collection-schema$/)),
  },
  {
    stock: 'A schema says which types there are.',
    ours: 'Their shares too, `optional`, `mixed`, and what the sample was (`sample`, `summary`).',
    why: 'A guess from a sample should say how good it is.',
    matches: inAnswer('additional', /(^|\.|\})(share|optional|mixed|sample|summary)$/, /^collection-schema$/),
  },
  {
    stock: '`sampleSize` 0 says that the schema cannot be deduced.',
    ours: 'It is refused.',
    why: 'The collection is not at fault.',
    matches: outcome('stock', /^sampleSize 0$/, /^collection-schema$/),
  },
  {
    stock: 'On MongoDB 6.0 `collection-indexes` always fails: the server asks for search indexes, which 6.0 does not know.',
    ours: 'It answers.',
    why: 'The classic indexes are there.',
    matches: outcome('ours', /^a collection$/, /^collection-indexes$/),
  },
  {
    stock: 'Indexes have a name and a key.',
    ours: 'Their options too: `unique`, `sparse`, `expireAfterSeconds`, `weights`, ...',
    why: 'Whether an index is unique or expires documents is why one asks.',
    matches: inAnswer('additional', /^classicIndexes\{[^}]*\}\.\w+$/, /^collection-indexes$/),
  },
  {
    stock: 'The size of the data of a collection.',
    ours: 'Also in bytes, with that of its files and indexes (`bytes`, `storageBytes`, `indexBytes`).',
    why: 'That is what takes room.',
    matches: inAnswer('additional', /^(bytes|storageBytes|indexBytes)$/, /^collection-storage-size$/),
  },
  {
    stock: 'Lists collections by name.',
    ours: 'With their `type`: collection, view or timeseries.',
    why: 'A view has no indexes, and reading one may be slow.',
    matches: inAnswer('additional', /^collections\{[^}]*\}\.type$/, /^list-collections$/),
  },
  {
    stock: 'Lists `system.views` and `system.buckets.*` as well.',
    ours: 'Leaves out what the database keeps for itself; `--allow-internal` shows it.',
    why: 'They cannot be queried as they are.',
    matches: either(inAnswer('missing', /^collections\{system\./, /^list-collections$/), onlyFor(/^a database$/, inAnswer('value', /^totalCount$/, /^list-collections$/))),
  },
  {
    stock: '`list-collections` fails for a user with rights on some collections only.',
    ours: 'It lists those.',
    why: 'They are what this user can read.',
    matches: outcome('ours', /^as a user/, /^list-collections$/),
  },
  {
    stock: '`mongodb-logs` gives the oldest lines that the database keeps.',
    ours: 'The newest.',
    why: 'Its own description says "most recent".',
    matches: inAnswer('value', /^logs\[\d+\]$/, /^mongodb-logs$/),
  },
];



const connections: Expected[] = [
  {
    stock: 'Puts four random digits behind the name of a connection.',
    ours: 'Keeps the name.',
    why: 'Ids are unique; names are for people.',
    matches: inAnswer('value', /^connections\{[^}]*\}\.name$/, /^list-connections$/),
  },
  {
    stock: '`connect` and `disconnect` answer the id, or how it ended.',
    ours: 'Name, description, and what to do `next` besides.',
    why: 'The next call is the one that fails otherwise.',
    matches: inAnswer('additional', /^(name|description|next)$/, /^(connect|disconnect)$/),
  },
];

const lists: Expected[] = [
  {
    stock: '`connectionId` is required in every call.',
    ours: 'It may be left out where there is one connection (never in `disconnect`).',
    why: 'Most have one.',
    matches: inList('value', /^arguments\.connectionId\.required$/),
  },
  {
    stock: '`exportTitle` and the connection string are required.',
    ours: '`exportTitle` may be left out; `connect` takes a `connectionName` of the configuration in place of a string. `collection` may be left out of an export of a pipeline on a database.',
    why: 'A secret need not pass through a model.',
    matches: inList('value', /^arguments\.(exportTitle|connectionString|collection)\.required$/),
  },
  {
    stock: 'A limit, a size or a sample may be any number.',
    ours: 'Where it counts something it must be a whole one.',
    why: 'Half a document is a slip.',
    matches: inList('value', /^arguments\.\w+\.type$/),
  },
  {
    stock: '`verbosity` may be `queryPlannerExtended`.',
    ours: 'It is refused.',
    why: 'MongoDB 6.0 refuses it itself.',
    matches: inList('value', /^arguments\.verbosity\.enum$/),
  },
  {
    stock: 'No time limit, no comment, no count of the call\'s own.',
    ours: 'Further arguments, all optional: see the table of tools.',
    why: 'Each operation has a time limit on the server, and a comment that people find.',
    matches: inList('additional', /^arguments\.\w+$/),
  },
  {
    stock: 'All tools say `readOnlyHint: true`, `openWorldHint: true`, and nothing of repetition.',
    ours: 'Hints are per tool: `disconnect` kills, and is no reader; what reads is idempotent, and open to the world only where it connects elsewhere.',
    why: 'Clients ask their users by these hints.',
    matches: either(inList('value', /^annotations\./), inList('additional', /^annotations\./)),
  },
  {
    stock: 'Each tool but `export` has an output schema.',
    ours: 'None of these has.',
    why: 'The list of tools is read by every model in every conversation.',
    matches: inList('missing', /^outputSchema$/),
  },
];

export const expectedDifferences: readonly Expected[] = [...answers, ...values, ...plans, ...facts, ...exports, ...connections, ...lists];

/** Those that the difference is told by: one, when all is well. */
export function expectedFor(difference: Difference): Expected[] {
  return expectedDifferences.filter(({ matches }) => matches(difference));
}
