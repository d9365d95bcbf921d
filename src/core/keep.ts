/** Keeps a record, and says in it when it, or its documents, did not reach the disk. */

import type { OperationRecord } from '../domain/operation.js';
import type { Store } from './ports.js';

const beginning = 'Its record, or what it read, is kept in this process only: ';

export async function keepRecord(store: Store, record: OperationRecord): Promise<void> {
  await store.put(record);
  noteProblem(store, record);
}

/** Brings the record's note about where it is kept up to date. */
export function noteProblem(store: Pick<Store, 'problem'>, record: OperationRecord): void {
  const why = store.problem(record.operationId);
  const others = record.notes.filter((note) => !note.startsWith(beginning));
  record.notes = why === null ? others : [...others, `${beginning}${why}.`];
}
