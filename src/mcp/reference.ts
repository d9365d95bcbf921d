/** Reads which operation an answer is asked for: by its id, or by the id of a request of the same session. */

import type { Reference } from '../core/leash.js';
import { LeashError } from '../domain/errors.js';
import { isOperationId } from '../domain/ids.js';
import type { RequestId } from '../domain/tag.js';

/** @throws LeashError bad_argument, not_found for an id that cannot be one */
export function readReference(args: { id?: string | undefined; requestId?: RequestId | undefined }): Reference {
  if (args.id !== undefined && args.requestId !== undefined) throw new LeashError('bad_argument', 'Send id or requestId, not both.');
  if (args.requestId !== undefined) return { requestId: args.requestId };
  if (args.id === undefined) throw new LeashError('bad_argument', 'Send the id of an operation, or the requestId of a call of this session.');
  const id = args.id.trim();
  if (!isOperationId(id)) throw new LeashError('not_found', 'There is no operation with this id: an operation id has 26 characters, digits and lower-case letters.');
  return { operationId: id };
}
