/** The answer of a call that runs an operation: the same at its end, from `tasks/get`, and from `tasks/result`. */

import type { AnswerForm, OperationRecord } from '../domain/operation.js';
import { operationBody, withDocuments } from './answer.js';
import { nextForEnded, nextForOpen } from './next.js';
import type { ToolAnswer, ToolLimits } from './tool.js';

/** For one that has not ended. */
export function openAnswer(record: OperationRecord): ToolAnswer {
  return { isError: record.error !== null, body: { ...operationBody(record), next: nextForOpen(record) } };
}

/** For one that has ended. `documents` is null when they are not kept any more. */
export function endedAnswer(record: OperationRecord, documents: readonly Uint8Array[] | null, form: AnswerForm, limits: ToolLimits): ToolAnswer {
  const body = operationBody(record, record.kill?.verdict ?? null);
  if (record.outcome !== 'succeeded') return { isError: true, body: { ...body, next: nextForEnded(record, limits) } };
  const part = { documents: documents ?? [], more: record.more, offset: 0, canonical: form.canonical, responseBytesLimit: form.responseBytes };
  return {
    isError: false,
    body: withDocuments(body, part, ({ returned, left }) => {
      if (record.writes !== null) return record.writes.effects;
      if (documents === null && record.documentsRead > 0) return 'Its documents are not kept any more: run it again if they are needed.';
      if (returned === 0 && left > 0) return 'The first document alone is larger than the answer: project fewer fields, or call again with a larger responseBytesLimit.';
      if (left > 0) return `${left} more were read and did not fit: call result with id "${record.operationId}" and offset ${returned}.`;
      return record.more === true ? 'There are more documents: raise limit, or narrow the pipeline.' : 'Nothing: these are all.';
    }),
  };
}
