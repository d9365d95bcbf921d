/** What the readers of single stages get to work with, so that they need not know the pipeline around them. */

import type { Place } from './place.js';
import type { Namespace } from './settings.js';
import type { Position } from './values.js';

export interface StageContext {
  /** The namespace that the pipeline of this stage runs on: names without a database belong to its database. */
  on: Namespace;
  /** Checks a namespace and adds it to the facts. */
  name(ns: Namespace, place: Place): void;
  /** Checks a pipeline within the stage, which can never write. `on` has been checked before. */
  nested(pipeline: unknown, on: Namespace, place: Place): void;
  /** Checks everything else that the stage holds. */
  values(value: unknown, place: Place, position: Position): void;
}

/** Checks what a stage holds. @throws LeashError */
export type StageReader = (spec: unknown, place: Place, context: StageContext) => void;
