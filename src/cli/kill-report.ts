/** How `kill` says what it achieved: the verdict with its evidence, and one exit code for all. */

import { mongoshLines } from '../domain/mongosh.js';
import type { Evidence, OperationRecord } from '../domain/operation.js';
import { type Verdict, isFinal } from '../domain/words.js';
import { showDuration } from './duration.js';
import { type Colour, paint, printJson, printLine } from './output.js';
import { exitCodes } from './terminal.js';
import { clean } from './text.js';

export interface Killed {
  /** As it was named. */
  name: string;
  /** null for one without a tag. */
  operationId: string | null;
  verdict: Verdict;
  reason: string;
  record: OperationRecord | null;
}

/** An operation of many commands may take as many kills. */
const shownKills = 5;
const colours: Partial<Record<Verdict, Colour>> = { stopped: 'green', ended_first: 'green', never_sent: 'green', gone: 'yellow', not_found: 'yellow' };

export function report({ name, operationId, verdict, reason, record }: Killed, json: boolean): void {
  const kill = record?.kill ?? null;
  const byHand = operationId === null || isFinal(verdict) || verdict === 'not_found' ? null : mongoshLines(operationId);
  if (json) {
    printJson({ target: name, operationId, verdict, reason, kill, evidence: record?.evidence ?? [], writes: record?.writes ?? null, ...(byHand === null ? {} : { mongosh: byHand }) });
    return;
  }
  printLine(`${clean(name)}  ${paint(colours[verdict] ?? 'red', verdict)}${kill === null ? '' : `  after ${showDuration(kill.elapsedMs)}`}`);
  const lines = [reason];
  if (record?.writes !== undefined && record.writes !== null) lines.push(record.writes.effects);
  const sent = kill?.sent ?? [];
  for (const { at, node, method, target, error } of sent.slice(0, shownKills)) lines.push(`${at}  ${method} ${target} sent to ${node}${error === undefined ? '' : `: ${error}`}`);
  if (sent.length > shownKills) lines.push(`and ${sent.length - shownKills} more`);
  for (const seen of kill?.after ?? []) lines.push(`${seen.at}  ${seen.node} ${sawOf(seen)}`);
  if (verdict === 'refused' && record !== null) lines.push('mongo-leash doctor prints the role that has the privilege; the user whose operation it is needs none');
  if (byHand !== null) lines.push(`by hand, in mongosh on its node, as the user it runs as: ${byHand.kill}`);
  for (const line of lines) printLine(`  ${clean(line)}`);
}

function sawOf({ saw, detail, opid, cursorId, killPending }: Evidence): string {
  switch (saw) {
    case 'nothing':
      return 'does not show it any more';
    case 'no_answer':
      return `did not answer: ${detail ?? ''}`;
    case 'reply':
      return `replied to the call: ${detail ?? ''}`;
    default:
      return `still shows it: ${opid === undefined ? `cursor ${cursorId ?? ''}` : `opid ${opid}`}${killPending === true ? ', told to stop' : ''}`;
  }
}

/** The worst of all verdicts tells. */
export function exitCodeFor(verdicts: readonly Verdict[]): number {
  const has = (...wanted: Verdict[]) => verdicts.some((verdict) => wanted.includes(verdict));
  if (has('still_running', 'pending')) return exitCodes.stillRunning;
  if (has('refused')) return exitCodes.refused;
  if (has('unknown', 'gone')) return exitCodes.unknown;
  return has('not_found') ? exitCodes.notFound : exitCodes.done;
}
