/** Everything that runs on a deployment, for whoever may see it: no principal, no MCP. */

import type { OperationRecord } from '../domain/operation.js';
import { stateOf } from '../domain/verdict.js';
import type { ServerState } from '../domain/words.js';
import { hashedPrincipal } from './owner.js';
import type { ProcessIdentity } from '../domain/facts.js';
import type { Clock, Deployment, Liveness, Store, SurveyRow } from './ports.js';

/** One operation or idle cursor as `ps` shows it. */
export interface SurveyEntry {
  /** null for an operation without a tag of ours, like everything else that stands in the tag. */
  operationId: string | null;
  /** Typed as in the tag: `n:1`, `s:abc`. */
  requestId: string | null;
  /** In full where a record of this machine tells, else `#` and its hash. */
  principal: string | null;
  session: string | null;
  instance: string | null;
  /** Whether the server process that started it lives; `unknown` for one that this machine cannot ask about. */
  liveness: Liveness | null;
  orphan: boolean;
  /** Address of the client, `host:port`. */
  client: string | null;
  appName: string | null;
  /** `user@database`; empty without authentication. */
  users: string[];
  node: string;
  /** `command`, `getmore`, `update`, ... as the server says. */
  op: string | null;
  opid: unknown;
  cursorId: unknown;
  namespace: string;
  /** Since it began. */
  seconds: number | null;
  plan: string | null;
  state: ServerState;
  /** Until its deadline, or until its maxTimeMS where only that is known; negative when it is past. */
  timeLeftMs: number | null;
  /** Whether it can write; null where that is not known. */
  writes: boolean | null;
  /** The caller's own comment behind the tag, or the whole comment of an operation without a tag. */
  comment: string | null;
  /** Of the server itself, of another server, or a look of this program. */
  internal: boolean;
}

export interface SurveyResult {
  /** The longest first. */
  entries: SurveyEntry[];
  looked: string[];
  /** Nodes where this user may see only its own operations. */
  ownOnly: string[];
  /** Nodes that did not answer: what runs there is unknown. */
  silent: { node: string; reason: string }[];
  /** The server process that answered at each node. */
  processes: ReadonlyMap<string, ProcessIdentity>;
}

export interface SurveyDeps {
  deployment: Pick<Deployment, 'ready' | 'nodes' | 'survey'>;
  store: Pick<Store, 'get'>;
  clock: Pick<Clock, 'iso'>;
  livenessOf(instance: string): Promise<Liveness>;
}

/** Looks at every node. @throws LeashError when the deployment cannot be reached at all */
export async function takeSurvey({ deployment, store, clock, livenessOf }: SurveyDeps, options: { untagged: boolean }): Promise<SurveyResult> {
  await deployment.ready();
  const surveys = await Promise.all(deployment.nodes().map((node) => deployment.survey(node)));
  const answered = surveys.filter((survey) => survey.ok);
  const rows = answered.flatMap((survey) => survey.rows).filter((row) => row.tag !== null || options.untagged);
  const lives = new Map<string, Promise<Liveness>>();
  const liveness = (instance: string) => {
    const known = lives.get(instance) ?? livenessOf(instance).catch((): Liveness => 'unknown');
    lives.set(instance, known);
    return known;
  };
  const entries = await Promise.all(rows.map(async (row) => {
    if (row.tag === null) return entryOf(row, null, null);
    // A store that cannot be read leaves names out, and nothing else.
    const record = await store.get(row.tag.operationId).catch(() => null);
    return entryOf(row, record, await liveness(row.tag.instance));
  }));
  entries.sort((a, b) => (b.seconds ?? -1) - (a.seconds ?? -1));
  return {
    entries,
    looked: answered.map(({ node }) => node),
    ownOnly: answered.filter(({ ownOnly }) => ownOnly === true).map(({ node }) => node),
    silent: surveys.flatMap((survey) => (survey.ok ? [] : [{ node: survey.node, reason: survey.reason }])),
    processes: new Map(answered.map(({ node, process }) => [node, process])),
  };

  function entryOf(row: SurveyRow, record: OperationRecord | null, alive: Liveness | null): SurveyEntry {
    const { tag, sighting, origin } = row;
    return {
      operationId: tag?.operationId ?? null,
      requestId: tag?.request ?? null,
      principal: record?.principal ?? (tag === null ? null : hashedPrincipal(tag.principal)),
      session: tag?.session ?? null,
      instance: tag?.instance ?? null,
      liveness: alive,
      orphan: alive === 'dead',
      client: origin.client,
      appName: origin.appName,
      users: origin.users,
      node: row.node,
      op: sighting.op ?? null,
      opid: sighting.opid ?? null,
      cursorId: sighting.cursorId ?? null,
      namespace: sighting.namespace,
      seconds: ageOf(row, record, Date.parse(clock.iso())),
      plan: sighting.planSummary ?? null,
      state: stateOf(row),
      timeLeftMs: timeLeft(row, record, Date.parse(clock.iso())),
      writes: tag === null ? (row.reads ? false : null) : tag.kind === 'w',
      comment: tag === null ? row.comment : tag.own === '' ? null : tag.own,
      internal: row.internal,
    };
  }
}

/** The server counts a `$merge` anew with each of its inner updates: where a record tells when it was sent, that counts. */
function ageOf({ ageSeconds }: SurveyRow, record: OperationRecord | null, now: number): number | null {
  if (record === null || record.sentAt === null) return ageSeconds;
  return Math.max(ageSeconds ?? 0, Math.round(now - Date.parse(record.sentAt)) / 1_000);
}

/** With a cursor it is not known: maxTimeMS counts the server's working time over all commands, and not the time between them. */
function timeLeft({ sighting, origin, ageSeconds }: SurveyRow, record: OperationRecord | null, now: number): number | null {
  if (record !== null && record.deadlineAt !== null) return Date.parse(record.deadlineAt) - now;
  if (origin.maxTimeMS === null || origin.maxTimeMS === 0 || sighting.cursorId !== undefined || ageSeconds === null) return null;
  return Math.round(origin.maxTimeMS - ageSeconds * 1_000);
}
