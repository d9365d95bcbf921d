/** Resources: the files of exports, the records of operations, and what the deployment is. */

import { ProtocolError, ProtocolErrorCode, ResourceNotFoundError, type Server, type ServerContext } from '@modelcontextprotocol/server';
import { z } from 'zod';
import type { DescribedConnection } from '../core/describe.js';
import type { Store } from '../core/ports.js';
import type { Caller } from '../core/request.js';
import { LeashError } from '../domain/errors.js';
import { mediaTypes } from '../domain/export-text.js';
import type { OperationRecord } from '../domain/operation.js';
import { operationBody } from './answer.js';
import { nextForEnded, nextForOpen } from './next.js';
import { readResult } from './resource-result.js';
import type { ToolDeps } from './tool.js';
import { deploymentUri, readUri, recordUri, resultUri } from './uris.js';

export interface ResourceDeps extends ToolDeps {
  store: Pick<Store, 'list'>;
  /** What the deployments of this caller are, and what this server's user may do there. */
  describeDeployment(caller: Caller): Promise<DescribedConnection[]>;
}

/** Exports in one page of `resources/list`. */
const pageSize = 100;

const deployment = { uri: deploymentUri, name: 'deployment', title: 'Deployment', description: 'Nodes with role and version, what this user may do there, and the limits of this server', mimeType: 'application/json' };

const templates = [
  { uriTemplate: `${recordUri('{id}')}`, name: 'operation', title: 'Record of an operation', description: 'As status shows it', mimeType: 'application/json' },
  { uriTemplate: `${resultUri('{id}')}{?offset}`, name: 'result', title: 'File of an export', description: 'From the offset (in bytes) on; the answer says how to get the rest' },
];

const listParams = z.looseObject({ cursor: z.string().optional() });
const readParams = z.looseObject({ uri: z.string() });

/** What others have does not exist: it is not found, in the same words as what is not there. */
export function registerResources(server: Server, deps: ResourceDeps, callerFor: (context: ServerContext) => Caller): void {
  server.setRequestHandler('resources/list', { params: listParams }, async ({ cursor }, context) => {
    const exports = (await deps.store.list(callerFor(context).principal)).filter(({ export: report }) => typeof report?.file === 'string');
    const first = cursor === undefined ? 0 : exports.findIndex(({ operationId }) => operationId === cursor) + 1;
    if (cursor !== undefined && first === 0) throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'This cursor is not known any more: list from the beginning.');
    const page = exports.slice(first, first + pageSize);
    const last = page.at(-1);
    return { resources: [...(first === 0 ? [deployment] : []), ...page.map(listed)], ...(last === undefined || first + pageSize >= exports.length ? {} : { nextCursor: last.operationId }) };
  });
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: templates }));
  server.setRequestHandler('resources/read', { params: readParams }, async ({ uri }, context) => {
    const reference = readUri(uri);
    if (reference === null) throw notFound(uri);
    try {
      if (reference.kind === 'deployment') return json(uri, redacted({ connections: await deps.describeDeployment(callerFor(context)), server: serverOf(deps) }, deps));
      const { record, verdict } = await deps.leash.status({ operationId: reference.operationId }, callerFor(context), 0);
      if (reference.kind === 'result') return { contents: await readResult(uri, reference.offset, record, deps) };
      return json(uri, { ...operationBody(record, verdict), next: record.outcome === null ? nextForOpen(record) : nextForEnded(record, deps.limits) });
    } catch (error) {
      throw asProtocolError(error, uri, deps);
    }
  });
}

function listed({ operationId, export: report }: OperationRecord): { uri: string; name: string } {
  if (report === null) throw new Error('a record without an export');
  const { title, file, format, bytes, documents, complete } = report;
  return { uri: resultUri(operationId), name: file ?? operationId, ...(title === '' ? {} : { title }), description: `${documents} documents${complete === false ? ', cut at the size limit' : ''}`, mimeType: mediaTypes[format], size: bytes } as { uri: string; name: string };
}

function json(uri: string, value: Record<string, unknown>): { contents: { uri: string; mimeType: string; text: string }[] } {
  return { contents: [{ uri, mimeType: 'application/json', text: JSON.stringify(value) }] };
}

/** The operator's limits and permissions that a query meets. */
function serverOf({ limits, policy }: Pick<ToolDeps, 'limits' | 'policy'>): Record<string, unknown> {
  const { maxTimeMS, maxTimeMSCeiling, limit, maxLimit, responseBytes, maxResponseBytes, exportBytes, indexCheck } = limits;
  const { allowWrites, allowJs, allowInternal } = policy;
  return { maxTimeMS, maxTimeMSCeiling, limit, maxLimit, responseBytes, maxResponseBytes, exportBytes, indexCheck, allowWrites, allowJs, allowInternal };
}

function redacted(value: Record<string, unknown>, { redact }: Pick<ToolDeps, 'redact'>): Record<string, unknown> {
  return JSON.parse(redact(JSON.stringify(value))) as Record<string, unknown>;
}

function notFound(uri: string): ResourceNotFoundError {
  return new ResourceNotFoundError(uri, 'There is no such resource.');
}

function asProtocolError(error: unknown, uri: string, { redact }: Pick<ToolDeps, 'redact'>): unknown {
  if (!(error instanceof LeashError)) return error;
  if (error.code === 'not_found') return notFound(uri);
  const message = redact(`${error.message} ${error.database} ${error.next}`);
  const isCallers = error.code === 'expired' || error.code === 'not_ended' || error.code === 'bad_argument';
  return isCallers ? new ResourceNotFoundError(uri, message) : new ProtocolError(ProtocolErrorCode.InternalError, message);
}
