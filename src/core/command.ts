/** What the database can be asked, in the forms that the adapter knows how to send. */

import type { Namespace } from '../domain/policy/pipeline-policy.js';

export type ReadPreference = 'primary' | 'primaryPreferred' | 'secondary' | 'secondaryPreferred' | 'nearest';

/** What a read takes besides what it looks for; BSON-ready values. */
export interface ReadOptions {
  hint?: unknown;
  collation?: unknown;
  let?: unknown;
  allowDiskUse?: boolean | undefined;
}

export interface AggregateCommand extends ReadOptions {
  kind: 'aggregate';
  on: Namespace;
  pipeline: unknown[];
  /** Writes have no documents and must not get a `$limit`. */
  writes: boolean;
}

export interface FindCommand extends ReadOptions {
  kind: 'find';
  on: Namespace & { coll: string };
  filter: unknown;
  projection?: unknown;
  sort?: unknown;
  skip?: number | undefined;
}

/** Any other command that reads: its reply is one document, or begins a cursor (`listIndexes`, `listCollections`). */
export interface PlainCommand {
  kind: 'reply' | 'cursor';
  db: string;
  /** The command's name first, as the server wants it. */
  command: Record<string, unknown>;
  /** Goes over each text of a reply, and of its lists of texts, before anybody keeps it. */
  redact?: ((text: string) => string) | undefined;
}

export type Command = AggregateCommand | FindCommand | PlainCommand;
