/** `mongo-leash history`: what ended on this machine's record: how, for whom, why, and what its kill saw. */

import type { Clock, Store } from '../core/ports.js';
import type { OperationRecord } from '../domain/operation.js';
import type { Outcome } from '../domain/words.js';
import { showDuration } from './duration.js';
import { type Colour, printJson, printTable, say } from './output.js';
import { exitCodes } from './terminal.js';

export interface HistoryOptions {
  /** Milliseconds back from now. */
  since?: number;
  outcome?: Outcome;
  json?: boolean;
}

export async function history({ store, clock }: { store: Store; clock: Clock }, { since, outcome, json }: HistoryOptions): Promise<number> {
  const from = since === undefined ? 0 : Date.parse(clock.iso()) - since;
  const records = (await store.list())
    .flatMap((record) => (record.outcome === null || record.endedAt === null ? [] : [{ record, endedAt: Date.parse(record.endedAt) }]))
    .filter(({ record, endedAt }) => endedAt >= from && (outcome === undefined || record.outcome === outcome))
    .sort((a, b) => b.endedAt - a.endedAt)
    .map(({ record }) => record);
  if (json === true) for (const record of records) printJson(record);
  else if (records.length > 0) printTable(head, records.map(rowOf), records.map((record) => (record.outcome === null ? undefined : colours[record.outcome])));
  else say('nothing that ended is on record');
  const problem = store.problem();
  if (problem === null) return exitCodes.done;
  say(`the records cannot be read: ${problem}`);
  return exitCodes.failed;
}

const colours: Record<Outcome, Colour | undefined> = { succeeded: undefined, killed: 'yellow', timed_out: 'yellow', failed: 'red', lost: 'red', never_sent: 'dim' };
const head = ['ENDED', 'OPERATION', 'OUTCOME', 'TOOK', 'PRINCIPAL', 'CAUSE', 'BY', 'KILL', 'NODE', 'NAMESPACE', 'REASON'];

function rowOf(record: OperationRecord): string[] {
  const { kill } = record;
  return [
    record.endedAt ?? '-',
    record.operationId,
    record.outcome ?? '-',
    showDuration(record.elapsedMs),
    record.principal,
    record.cause ?? '-',
    record.by ?? '-',
    kill === null ? '-' : `${kill.verdict} after ${showDuration(kill.elapsedMs)}, ${kill.sent.length} sent`,
    record.node ?? '-',
    record.collection === null ? record.database : `${record.database}.${record.collection}`,
    record.error === null ? record.reason : `${record.reason} ${record.error.message}`,
  ];
}
