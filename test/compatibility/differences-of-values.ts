/** The expected differences in how values are written: in documents, in plans and in files. */

import type { Difference } from './compare.js';
import { type Expected, inAnswer, onlyFor, outcome, unwrapped } from './expected.js';

/** Whether the two are one value in two spellings. */
const spelled = (key: string, isSame: (stock: string, ours: unknown) => boolean) => ({ kind, path, stock, ours }: Difference) => kind === 'value' && !path.startsWith('explainResult') && typeof unwrapped(stock, key) === 'string' && isSame(String(unwrapped(stock, key)), ours);

export const values: Expected[] = [
  {
    stock: 'A 64-bit integer is always `{"$numberLong": "5"}`.',
    ours: 'A plain number up to 2^53 - 1, `{"$numberLong": …}` beyond; with `canonical: true` always.',
    why: 'The value is the same, and a model reads it.',
    matches: spelled('$numberLong', (stock, ours) => ours === Number(stock) && Number.isSafeInteger(ours)),
  },
  {
    stock: 'A date of a whole second ends in `.000Z`.',
    ours: 'It ends in `Z`.',
    why: 'The same instant, as the specification of Extended JSON writes it.',
    matches: spelled('$date', (stock, ours) => stock.endsWith('.000Z') && unwrapped(ours, '$date') === stock.replace('.000Z', 'Z')),
  },
  {
    stock: 'A symbol (a type of old drivers) is shown as text.',
    ours: '`{"$symbol": …}`.',
    why: 'Text does not find it again.',
    matches: ({ kind, stock, ours }) => kind === 'value' && typeof stock === 'string' && unwrapped(ours, '$symbol') === stock,
  },
  {
    stock: 'A double beyond 2^53 is a plain number.',
    ours: '`{"$numberDouble": "1e+300"}`.',
    why: 'A plain whole number of that size would be read as an integer, and refused or changed.',
    matches: ({ kind, stock, ours }) => kind === 'value' && typeof stock === 'number' && Math.abs(stock) > Number.MAX_SAFE_INTEGER && Number(unwrapped(ours, '$numberDouble')) === stock,
  },
];

export const plans: Expected[] = [
  {
    stock: 'Values in a plan are JavaScript objects as they are printed: `{"high": 0, "low": 5, "unsigned": false}`, dates and ObjectIds as text.',
    ours: 'Extended JSON, as in documents.',
    why: 'A plan can be read, and its values used again.',
    matches: (each) => each.kind === 'value' && /^explainResult\./.test(each.path) && !/^count/.test(each.call ?? '') && isSameInPlan(each),
  },
  {
    stock: 'Replies hold the signature of the cluster time (`$clusterTime`, `operationTime`).',
    ours: 'They are left out.',
    why: 'They belong to the wire, and say nothing of what was asked.',
    matches: inAnswer('missing', /^(explainResult|stats)\.(\$clusterTime|operationTime)$/, /^(explain|db-stats)$/),
  },
  {
    stock: 'Explains a `count` command, though its tool `count` runs an aggregation.',
    ours: 'Explains the aggregation that `count` runs.',
    why: 'The plan of what is run is the one that is asked for.',
    matches: onlyFor(/^count, /, (each) => each.tool === 'explain' && /^explainResult\.\w/.test(each.path) && !/operationTime$/.test(each.path)),
  },
  {
    stock: 'Explains aggregate, find and count.',
    ours: '`distinct` too.',
    why: 'It is a tool here.',
    matches: outcome('ours', /^distinct$/, /^explain$/),
  },
];

function isSameInPlan({ stock, ours }: Difference): boolean {
  const low = unwrapped(stock, 'low');
  if (typeof low === 'number') return unwrapped(stock, 'high') === 0 && ours === low;
  if (typeof stock !== 'string') return false;
  const date = unwrapped(ours, '$date');
  return unwrapped(ours, '$oid') === stock || (typeof date === 'string' && Date.parse(date) === Date.parse(stock));
}

const relaxedLosses = ({ kind, path, stock, ours, call }: Difference) =>
  kind === 'value' && path.startsWith('file.documents[') && call === 'all types, relaxed' && ((unwrapped(ours, '$numberDouble') === '-0.0' && stock === 0) || (typeof stock === 'number' && Number(unwrapped(ours, '$numberLong')) === stock));

export const exports: Expected[] = [
  {
    stock: '`export` answers before it has read anything: whatever fails then, reading says that the export "has either expired or does not exist".',
    ours: 'Waits up to `waitMs`, then hands over the id; a failure is an error that says why.',
    why: 'An export that failed must not look like one that worked.',
    matches: outcome('stock', /^(a bad pipeline|as a user .*)$/, /^export$/),
  },
  {
    stock: 'The file is one JSON array, at `exported-data://…`; a read gives all of it, within a sentence and a warning.',
    ours: 'JSON Lines unless `format` says `json` (one array) or `csv`; at `mongo-leash://operations/<id>/result`, read by pieces, byte for byte.',
    why: 'A large file need not be in memory, and what is read can be parsed.',
    matches: inAnswer('value', /^(link\.(uri|mimeType)|file\.form)$/, /^export$/),
  },
  {
    stock: 'No `structuredContent`.',
    ours: 'Where the file is (`resource`, `path`), and how much it holds (`documents`, `bytes`, `complete`, `more`).',
    why: 'Half a file is told from a whole one.',
    matches: inAnswer('additional', /^(title|resource|path|format|documents|bytes|complete|more|next)$/, /^export$/),
  },
  {
    stock: 'A relaxed export rounds 64-bit integers beyond 2^53, and writes minus zero as 0.',
    ours: 'It does not: such values keep their type.',
    why: 'No digit of an export is lost.',
    matches: relaxedLosses,
  },
  {
    stock: 'An export writes a UUID as `$binary`.',
    ours: 'As `$uuid`, as in answers.',
    why: 'The same value, as both servers answer it elsewhere.',
    matches: ({ tool, stock, ours }) => tool === 'export' && typeof unwrapped(ours, '$uuid') === 'string' && unwrapped(unwrapped(stock, '$binary'), 'subType') === '04',
  },
];
