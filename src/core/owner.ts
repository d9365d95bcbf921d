/** Whose an operation is: by its record, or, where none is left of a dead process, by the hash in its tag. */

import type { OperationRecord } from '../domain/operation.js';
import { principalHash } from '../domain/tag.js';

/** Stands in a record for a principal of whom only the tag tells. */
export function hashedPrincipal(hash: string): string {
  return `#${hash}`;
}

export function owns(principal: string, record: Pick<OperationRecord, 'principal'>): boolean {
  return record.principal === principal || record.principal === hashedPrincipal(principalHash(principal));
}
