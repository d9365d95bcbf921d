/** The file of an export as a resource: a piece of bounded size, with the address of the next one. */

import { LeashError } from '../domain/errors.js';
import { mediaTypes } from '../domain/export-text.js';
import type { OperationRecord } from '../domain/operation.js';
import { untrustedNote } from './answer.js';
import type { ToolDeps } from './tool.js';
import { resultUri } from './uris.js';

export interface TextContent {
  uri: string;
  mimeType: string;
  text: string;
}

const newLine = 0x0a;

/**
 * The pieces put together are the file, byte for byte: one ends behind a line where it can, and never inside a character.
 * @throws LeashError not_found for what is no export, not_ended, expired; bad_argument for an offset beyond the end
 */
export async function readResult(uri: string, offset: number, record: OperationRecord, { exports, limits }: Pick<ToolDeps, 'exports' | 'limits'>): Promise<TextContent[]> {
  const { operationId, export: report, outcome } = record;
  if (report === null) throw new LeashError('not_found', 'There is no such resource.');
  if (outcome === null) throw new LeashError('not_ended', `The export ${operationId} has not ended: ${report.documents} documents so far.`);
  const part = report.file === null ? null : await exports.read(report.file, offset, limits.maxResponseBytes);
  if (part === null || report.file === null) {
    const why = outcome === 'succeeded' ? 'its file was removed to make room for later ones' : `it did not come to its end (${outcome}), and its half file was removed`;
    throw new LeashError('expired', `The export ${operationId} has no file: ${why}.`);
  }
  if (offset > 0 && offset >= part.size) throw new LeashError('bad_argument', `The file ends at ${part.size} bytes.`, { database: 'It has ended.', next: `Read ${resultUri(operationId)}.` });
  const end = offset + part.bytes.byteLength;
  const bytes = end < part.size ? wholeLines(part.bytes) : part.bytes;
  const next = offset + bytes.byteLength;
  const content = { uri, mimeType: mediaTypes[report.format], text: Buffer.from(bytes).toString('utf8') };
  const place = Object.entries(exports.placeOf(operationId, report.file)).map(([name, value]) => ` The whole file: ${name} ${value}`).join('');
  const about = [
    ...(offset > 0 || next < part.size ? [`Bytes ${offset} to ${next} of ${part.size}.`] : []),
    ...(next < part.size ? [`The rest: read ${resultUri(operationId)}?offset=${next}.${place}`] : []),
    ...(report.complete === true ? [] : ['The export was cut at the size limit of this server: there are more documents than these.']),
    `The ${untrustedNote}.`,
  ];
  return [content, { uri: `${resultUri(operationId)}#about`, mimeType: 'text/plain', text: about.join(' ') }];
}

function wholeLines(bytes: Uint8Array): Uint8Array {
  const lastLine = bytes.lastIndexOf(newLine) + 1;
  if (lastLine > 0) return bytes.subarray(0, lastLine);
  // One line that is longer: the bytes 10xxxxxx are inside a character.
  let end = bytes.byteLength;
  while (end > 0 && ((bytes[end] ?? 0x80) & 0xc0) === 0x80) end -= 1;
  return bytes.subarray(0, end);
}
