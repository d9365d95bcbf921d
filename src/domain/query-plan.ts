/** Reads what an explain (queryPlanner) says: which collections would be scanned whole, and which joins it tells nothing of. */

/** A join whose plan the explain leaves out: it is found by an explain of what runs on the joined collection. */
export interface UnseenJoin {
  stage: '$lookup' | '$graphLookup';
  from: { db: string | null; coll: string };
  /** What finds the joined documents, as a pipeline on the joined collection. */
  pipeline: unknown[];
  /** Variables that the pipeline uses. */
  variables: readonly string[];
}

export interface PlanReading {
  /** Namespaces that would be scanned whole. */
  scans: string[];
  unseen: UnseenJoin[];
  /** Whether there was a plan in it that could be read. */
  readable: boolean;
}

type Fields = Readonly<Record<string, unknown>>;

const children = ['inputStage', 'outerStage', 'innerStage', 'thenStage', 'elseStage', 'queryPlan', 'winningPlan'];
const lists = ['inputStages', 'shards'];
/** Strategies by which a join that the query engine runs itself reads the whole of the joined collection. */
const scanningJoins: ReadonlySet<unknown> = new Set(['HashJoin', 'NestedLoopJoin']);
/** Stages that, without a filter, hand on each document that they read: below a limit, no more is read than the limit says. */
const passing = /^(PROJECTION|SHARDING_FILTER|FETCH)/;

/** @param most documents that may be read without an index: a limit beyond it is none */
export function readPlan(explain: unknown, most = Number.POSITIVE_INFINITY): PlanReading {
  const reading: Reading = { scans: [], unseen: [], readable: false, most };
  readExplain(fieldsOf(explain), reading);
  return { scans: [...new Set(reading.scans)], unseen: reading.unseen, readable: reading.readable };
}

interface Reading extends PlanReading {
  readonly most: number;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function readExplain(explain: Fields, reading: Reading): void {
  const planner = fieldsOf(explain['queryPlanner']);
  if ('winningPlan' in planner) {
    reading.readable = true;
    readStage(fieldsOf(planner['winningPlan']), textOf(planner['namespace']), reading, Number.POSITIVE_INFINITY);
  }
  if (Array.isArray(explain['stages'])) {
    reading.readable = true;
    readStages(explain['stages'], reading);
  }
  for (const shard of Object.values(fieldsOf(explain['shards']))) readExplain(fieldsOf(shard), reading);
}

/** @param limit documents at which a limit above stops it */
function readStage(stage: Fields, namespace: string, reading: Reading, limit: number): void {
  const name = stage['stage'];
  const filtered = Object.keys(fieldsOf(stage['filter'])).length > 0;
  const stops = !filtered && Number.isFinite(limit) && limit <= reading.most;
  if ((name === 'COLLSCAN' || readsWholeIndex(stage)) && !stops) reading.scans.push(namespace);
  if (name === 'EQ_LOOKUP' && scanningJoins.has(stage['strategy'])) reading.scans.push(textOf(stage['foreignCollection']));
  const below = limitBelow(stage, filtered, limit);
  for (const key of children) if (key in stage) readStage(fieldsOf(stage[key]), namespace, reading, below);
  for (const key of lists) for (const each of Array.isArray(stage[key]) ? stage[key] : []) readStage(fieldsOf(each), namespace, reading, below);
}

function limitBelow(stage: Fields, filtered: boolean, limit: number): number {
  const name = stage['stage'];
  if (name === 'LIMIT') return Number(stage['limitAmount'] ?? 0);
  // What is skipped has been read.
  if (name === 'SKIP') return limit + Number(stage['skipAmount'] ?? 0);
  return name === undefined || (!filtered && passing.test(textOf(name))) ? limit : Number.POSITIVE_INFINITY;
}

/** An index that is read from its one end to the other for want of any bound costs no less than the collection: a hint or a sort asks for that. */
function readsWholeIndex(stage: Fields): boolean {
  const bounds = fieldsOf(stage['indexBounds']);
  // One that does not hold all documents may be small.
  if (stage['isPartial'] === true || stage['isSparse'] === true) return false;
  if (stage['stage'] === 'COUNT_SCAN') return isEnd(bounds['startKey'], 'MinKey') && isEnd(bounds['endKey'], 'MaxKey');
  if (stage['stage'] !== 'IXSCAN') return false;
  const all = Object.values(bounds);
  return all.length > 0 && all.every((each) => Array.isArray(each) && (each[0] === '[MinKey, MaxKey]' || each[0] === '[MaxKey, MinKey]'));
}

function isEnd(key: unknown, end: 'MinKey' | 'MaxKey'): boolean {
  const values = Object.values(fieldsOf(key));
  return values.length > 0 && values.every((value) => fieldsOf(value)['_bsontype'] === end);
}

function readStages(stages: readonly unknown[], reading: Reading): void {
  for (const each of stages) {
    for (const [name, spec] of Object.entries(fieldsOf(each))) {
      const fields = fieldsOf(spec);
      if (name === '$cursor' || name === '$geoNearCursor') readExplain(fields, reading);
      else if (name === '$unionWith' && Array.isArray(fields['pipeline'])) readStages(fields['pipeline'], reading);
      else if (name === '$facet') for (const pipeline of Object.values(fields)) readStages(Array.isArray(pipeline) ? pipeline : [], reading);
      else if (name === '$lookup') addLookup(fields, reading);
      else if (name === '$graphLookup') addGraphLookup(fields, reading);
    }
  }
}

/** Any value stands for those of the documents: whether there is an index does not depend on it. */
const someValue = 1;

function addLookup(spec: Fields, { unseen }: Reading): void {
  const from = joined(spec['from']);
  const inner = Array.isArray(spec['pipeline']) ? (spec['pipeline'] as unknown[]) : [];
  // Without a collection it begins with $documents.
  if (from === null) return;
  const byField = typeof spec['foreignField'] === 'string' ? [{ $match: { [spec['foreignField']]: { $eq: someValue } } }] : [];
  unseen.push({ stage: '$lookup', from, pipeline: [...byField, ...inner], variables: Object.keys(fieldsOf(spec['let'])) });
}

function addGraphLookup(spec: Fields, { unseen }: Reading): void {
  const from = joined(spec['from']);
  if (from === null) return;
  const restriction = spec['restrictSearchWithMatch'];
  const match = { [textOf(spec['connectToField'])]: { $eq: someValue } };
  unseen.push({ stage: '$graphLookup', from, pipeline: [{ $match: restriction === undefined ? match : { $and: [match, restriction] } }], variables: [] });
}

function joined(from: unknown): UnseenJoin['from'] | null {
  if (typeof from === 'string') return { db: null, coll: from };
  const { db, coll } = fieldsOf(from);
  return typeof coll === 'string' ? { db: typeof db === 'string' ? db : null, coll } : null;
}
