/** The vocabulary of the policy: what the operator of the server allows, and what a checked pipeline turns out to do. */

/** What the operator allows. Everything is off by default. */
export interface PolicySettings {
  /** `$out` and `$merge` may end a pipeline. */
  allowWrites: boolean;
  /** Server-side JavaScript may run. */
  allowJs: boolean;
  /** `admin`, `local`, `config`, `system.*` may be named, and the stages that show other users' work may run. */
  allowInternal: boolean;
  /** Names of further stages, as `$rerank`. What such a stage reads or writes is not known here: the operator vouches for it. */
  extraStages: readonly string[];
}

/** A collection or view; `coll: null` stands for the database itself, as in `{aggregate: 1}`. */
export interface Namespace {
  db: string;
  coll: string | null;
}

export interface PipelineFacts {
  /** What the last stage writes; null for a pipeline that only reads. */
  writes: null | { stage: '$out' | '$merge'; target: Namespace };
  /**
   * Every namespace that is read or written, once for each place that names it: first the one that the pipeline
   * runs on (path `collection`), then the others in the order in which they stand.
   */
  namespaces: { ns: Namespace; path: string }[];
}

/** The options that lift a refusal, as a refusal's text names them. */
export const liftedBy = {
  allowWrites: '--allow-writes',
  allowJs: '--allow-js',
  allowInternal: '--allow-internal',
  extraStages: '--allow-stage',
} as const;
