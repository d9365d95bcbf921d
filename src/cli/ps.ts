/** `mongo-leash ps`: what runs under our tags on every node, and beside it, when asked, everything else. */

import { type SurveyEntry, type SurveyResult, takeSurvey } from '../core/survey.js';
import { showDuration } from './duration.js';
import { printJson, printTable, say, showId } from './output.js';
import { type Terminal, exitCodes } from './terminal.js';

/** Which of the operations are meant. All that are given must fit. */
export interface Filters {
  /** Milliseconds. */
  olderThan?: number;
  /** A database, or a namespace. */
  ns?: string;
  /** A part of the client's address or of its application name. */
  client?: string;
  instance?: string;
  orphans?: boolean;
}

export async function ps(terminal: Terminal, options: Filters & { all?: boolean; json?: boolean }): Promise<number> {
  const result = await takeSurvey(terminal, { untagged: options.all === true });
  const entries = result.entries.filter((entry) => matches(entry, options));
  if (options.json === true) for (const entry of entries) printJson(entry);
  else if (entries.length > 0) printEntries(entries);
  else say(`nothing ${options.all === true ? 'runs' : 'runs under a tag of mongo-leash'}${isFiltered(options) ? ' that fits' : ''} on ${result.looked.join(', ') || 'any node that answered'}`);
  tellLimits(result);
  return result.silent.length > 0 ? exitCodes.unknown : exitCodes.done;
}

export function matches(entry: SurveyEntry, { olderThan, ns, client, instance, orphans }: Filters): boolean {
  if (olderThan !== undefined && (entry.seconds === null || entry.seconds * 1_000 < olderThan)) return false;
  if (ns !== undefined && entry.namespace !== ns && !entry.namespace.startsWith(`${ns}.`)) return false;
  if (client !== undefined && !`${entry.client ?? ''} ${entry.appName ?? ''}`.includes(client)) return false;
  if (instance !== undefined && entry.instance !== instance) return false;
  return orphans !== true || entry.orphan;
}

export function isFiltered({ olderThan, ns, client, instance, orphans }: Filters): boolean {
  return [olderThan, ns, client, instance].some((filter) => filter !== undefined) || orphans === true;
}

/** What a look could not see is told apart from what is not there. */
export function tellLimits({ silent, ownOnly }: Pick<SurveyResult, 'silent' | 'ownOnly'>): void {
  for (const { node, reason } of silent) say(`${node} did not answer (${reason}): what runs there is unknown`);
  if (ownOnly.length > 0) say(`on ${ownOnly.join(', ')} this user may see only its own operations: the privilege inprog is missing (mongo-leash doctor prints the role)`);
}

const head = ['OPERATION', 'SECONDS', 'LEFT', 'STATE', 'NAMESPACE', 'PLAN', 'NODE', 'OPID', 'SESSION/REQUEST', 'PRINCIPAL', 'INSTANCE', 'CLIENT', 'COMMENT'];

export function printEntries(entries: readonly SurveyEntry[]): void {
  printTable(head, entries.map(rowOf), entries.map((entry) => (entry.orphan ? 'yellow' : entry.operationId === null ? 'dim' : undefined)));
}

function rowOf(entry: SurveyEntry): string[] {
  return [
    entry.operationId ?? '-',
    entry.seconds === null ? '-' : entry.seconds.toFixed(1),
    entry.timeLeftMs === null ? '-' : showDuration(entry.timeLeftMs),
    entry.state,
    `${entry.namespace || '-'}${entry.writes === true ? ' (writes)' : ''}`,
    entry.plan ?? '-',
    entry.node,
    idOf(entry),
    entry.session === null ? '-' : `${entry.session}/${entry.requestId ?? ''}`,
    whoOf(entry),
    instanceOf(entry),
    clientOf(entry),
    entry.comment ?? '',
  ];
}

/** The application name of a tagged one only repeats its instance. */
function clientOf({ client, appName, operationId, internal }: SurveyEntry): string {
  const name = operationId === null ? appName : null;
  return [client, name, internal ? '(internal)' : null].filter((part) => part !== null).join(' ') || '-';
}

/** An idle cursor has no opid. */
export function idOf(entry: SurveyEntry): string {
  return entry.opid === null && entry.cursorId !== null ? `cursor ${showId(entry.cursorId)}` : showId(entry.opid);
}

export function whoOf(entry: SurveyEntry): string {
  return entry.principal ?? entry.users[0] ?? '-';
}

/** `(?)` where this machine cannot tell whether the server process lives. */
export function instanceOf(entry: SurveyEntry): string {
  if (entry.instance === null) return '-';
  return `${entry.instance}${entry.orphan ? ' (orphan)' : entry.liveness === 'unknown' ? ' (?)' : ''}`;
}
