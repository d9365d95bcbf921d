/** What an export that has succeeded is answered with: where its file is, how much it holds, and whether that is all. */

import type { Exports } from '../core/exports.js';
import { mediaTypes } from '../domain/export-text.js';
import type { ExportReport, OperationRecord } from '../domain/operation.js';
import type { ToolAnswer, ToolLimits } from './tool.js';
import { resultUri } from './uris.js';

/** @param placeOf where else it can be had: a path over stdio, an address over HTTP */
export function exportAnswer(record: OperationRecord, report: ExportReport, limits: Pick<ToolLimits, 'exportBytes'>, placeOf: Exports['placeOf']): ToolAnswer {
  const { operationId, elapsedMs, notes } = record;
  const { title, format, file, documents, bytes, complete } = report;
  const uri = resultUri(operationId);
  const body = {
    operationId,
    elapsedMs,
    ...(title === '' ? {} : { title }),
    resource: uri,
    ...(file === null ? {} : placeOf(operationId, file)),
    format,
    documents,
    bytes,
    complete,
    ...(record.more === true && complete === true ? { more: true } : {}),
    ...(notes.length === 0 ? {} : { notes }),
    next: nextFor(record, report, limits),
  };
  const link = { type: 'resource_link' as const, uri, name: file ?? operationId, ...(title === '' ? {} : { title }), mimeType: mediaTypes[format], size: bytes };
  return { isError: false, body, content: [{ type: 'text', text: JSON.stringify(body) }, link] };
}

function nextFor({ more }: OperationRecord, { complete }: ExportReport, { exportBytes }: Pick<ToolLimits, 'exportBytes'>): string {
  if (complete !== true) return `The file was cut at the limit of ${exportBytes} bytes, after a whole document: there is more. Narrow it or project fewer fields, and export again.`;
  if (more === true) return 'The file holds as many documents as limit asked for; there are more.';
  return 'Nothing: the file holds all of them. It is kept as long as the record of the operation.';
}
