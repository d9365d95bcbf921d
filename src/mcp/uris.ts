/** The addresses of resources, made and read in one place. */

import { isOperationId } from '../domain/ids.js';

export const deploymentUri = 'mongo-leash://deployment';

export function recordUri(operationId: string): string {
  return `mongo-leash://operations/${operationId}`;
}

export function resultUri(operationId: string): string {
  return `${recordUri(operationId)}/result`;
}

export type ResourceReference = { kind: 'deployment' } | { kind: 'record'; operationId: string } | { kind: 'result'; operationId: string; offset: number };

/** null for what is no address of a resource here. `offset` is in bytes. */
export function readUri(uri: string): ResourceReference | null {
  if (uri === deploymentUri) return { kind: 'deployment' };
  const [, operationId, rest] = /^mongo-leash:\/\/operations\/([^/?#]+)(.*)$/.exec(uri) ?? [];
  if (operationId === undefined || !isOperationId(operationId)) return null;
  if (rest === '') return { kind: 'record', operationId };
  const [, offset = '0'] = /^\/result(?:\?offset=(\d{1,15}))?$/.exec(rest ?? '') ?? [undefined, null];
  return offset === null ? null : { kind: 'result', operationId, offset: Number(offset) };
}
