/** Which of the tools a server offers: a set, without those that are disabled by name or by the stock server's words. */

import { LeashError } from '../domain/errors.js';
import { nearestName } from '../domain/policy/nearest.js';
import { coreTools } from './tools/all.js';
import type { Tool } from './tool.js';

export interface ToolChoice {
  tools: 'all' | 'core';
  disabledTools: readonly string[];
  allowWrites: boolean;
}

const connecting: ReadonlySet<string> = new Set(['connect', 'disconnect']);
const reading: ReadonlySet<string> = new Set(['aggregate', 'aggregate-db', 'find', 'count', 'distinct', 'export']);
/** The tools whose pipelines may write, where writes are allowed. */
const mayWrite: ReadonlySet<string> = new Set(['aggregate', 'aggregate-db']);

/** What the stock server calls kinds and categories of tools, as far as there are such tools here. */
const kinds: Record<string, (name: string) => boolean> = {
  read: (name) => reading.has(name),
  connect: (name) => connecting.has(name),
  metadata: (name) => !reading.has(name) && !connecting.has(name),
  mongodb: () => true,
};

/** Kinds and tools of the stock server that are not here: disabled already. */
const absent: ReadonlySet<string> = new Set([
  'create', 'update', 'delete', 'atlas', 'atlas-local', 'assistant', 'create-collection', 'create-index', 'delete-many', 'drop-collection',
  'drop-database', 'drop-index', 'insert-many', 'rename-collection', 'update-many', 'search-knowledge', 'list-knowledge-sources', 'switch-connection',
]);

/** Those that there are, in their order. @throws LeashError bad_argument for a name that means nothing: what was to be disabled would be there */
export function selectTools(all: readonly Tool[], { tools, disabledTools, allowWrites }: ToolChoice): Tool[] {
  const names = all.map(({ name }) => name);
  for (const word of disabledTools) {
    if (names.includes(word) || Object.hasOwn(kinds, word) || absent.has(word) || word.startsWith('atlas-')) continue;
    const near = nearestName(word, [...names, ...Object.keys(kinds)]);
    throw new LeashError('bad_argument', `there is no tool ${JSON.stringify(word)}${near === null ? '' : `; ${JSON.stringify(near)} may be meant`}.`, { path: 'disabledTools', next: `There are ${names.join(', ')}.` });
  }
  const isDisabled = ({ name }: Tool) => disabledTools.some((word) => word === name || (!isCore(name) && Object.hasOwn(kinds, word) && kinds[word]?.(name) === true));
  const chosen = all.filter((tool) => (tools === 'all' || isCore(tool.name)) && !isDisabled(tool));
  return chosen.map((tool) => (allowWrites && mayWrite.has(tool.name) ? { ...tool, annotations: { ...tool.annotations, readOnlyHint: false, destructiveHint: true, idempotentHint: false } } : tool));
}

function isCore(name: string): boolean {
  return coreTools.some((tool) => tool.name === name);
}

/** As in the stock server, whoever disables what writes means the stages of a pipeline that write, too. */
export function allowsWrites({ disabledTools, allowWrites }: ToolChoice): boolean {
  return allowWrites && !disabledTools.some((word) => word === 'create' || word === 'update' || word === 'delete');
}
