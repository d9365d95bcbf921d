/** The answer of a call that runs an operation: the same at its end, from `tasks/get`, and from `tasks/result`. */

import type { Exports } from '../core/exports.js';
import type { RunAnswer } from '../core/request.js';
import type { AnswerForm, OperationRecord } from '../domain/operation.js';
import { operationBody, withDocuments } from './answer.js';
import { exportAnswer } from './export-answer.js';
import { nextForEnded, nextForOpen } from './next.js';
import type { ToolAnswer, ToolLimits } from './tool.js';

/** For one that has not ended. */
export function openAnswer(record: OperationRecord): ToolAnswer {
  return { isError: record.error !== null, body: { ...operationBody(record), next: nextForOpen(record) } };
}

/** For one that has ended. `documents` is null when they are not kept any more; those of an export are in its file, which is told by `placeOf`. */
export function endedAnswer(record: OperationRecord, documents: readonly Uint8Array[] | null, form: AnswerForm, limits: ToolLimits, placeOf: Exports['placeOf'] = () => ({})): ToolAnswer {
  const body = operationBody(record, record.kill?.verdict ?? null);
  if (record.outcome !== 'succeeded') return { isError: true, body: { ...body, next: nextForEnded(record, limits) } };
  if (record.export !== null) return exportAnswer(record, record.export, limits, placeOf);
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

/** For one that did not succeed, or has not ended; null for one that succeeded. */
export function failureAnswer({ kind, record }: RunAnswer, limits: ToolLimits): ToolAnswer | null {
  if (kind !== 'ended') return openAnswer(record);
  return record.outcome === 'succeeded' ? null : endedAnswer(record, null, { canonical: false, responseBytes: limits.responseBytes }, limits);
}
