/** Runs what the tools read by other names than `run`: through the same leash, and waited for to its end. */

import { createHash } from 'node:crypto';
import { BSON } from 'bson';
import type { Command, ReadPreference } from '../core/ports.js';
import type { RunAnswer } from '../core/request.js';
import type { WriteReport } from '../domain/operation.js';
import type { Namespace } from '../domain/policy/pipeline-policy.js';
import type { ToolCaller, ToolDeps } from './tool.js';

export interface Read {
  tool: string;
  /** Which of several connections; may be left out where the caller has one. */
  connectionId?: string | undefined;
  on: Namespace;
  /** Every collection that it reads, for the resolution of views. */
  namespaces: readonly { ns: Namespace; path: string }[];
  command: Command;
  /** What a pipeline writes; null, as when left out, for one that only reads. */
  writes?: WriteReport | null;
  /** Documents to keep. */
  limit: number;
  maxTimeMS?: number | undefined;
  /** Bytes of BSON to keep; the operator's limit when left out. */
  maxResultBytes?: number | undefined;
  comment?: string | undefined;
  /** The operator's when left out. */
  readPreference?: ReadPreference | undefined;
  canonical?: boolean | undefined;
  /** Size of the answer in bytes. */
  responseBytes: number;
  notes: string[];
}

/** The longest timer that Node has, in milliseconds. */
const longestMs = 2_147_483_647;

/**
 * Waits until it has ended or its deadline has passed and been verified; what is not proven by then is handed over by its id.
 * @throws LeashError when nothing was sent
 */
export function runRead(read: Read, caller: ToolCaller, { leash, limits }: Pick<ToolDeps, 'leash' | 'limits'>): Promise<RunAnswer> {
  const asked = read.maxTimeMS ?? limits.maxTimeMS;
  const maxTimeMS = Math.min(asked, limits.maxTimeMSCeiling);
  if (maxTimeMS < asked) read.notes.push(`maxTimeMS was ${asked}; this server allows at most ${maxTimeMS}, which was used.`);
  return leash.run(
    {
      tool: read.tool,
      connectionId: read.connectionId,
      on: read.on,
      namespaces: read.namespaces,
      writes: read.writes ?? null,
      execute: { command: read.command, maxTimeMS, readPreference: read.readPreference ?? limits.readPreference, limit: read.limit, maxResultBytes: read.maxResultBytes ?? limits.resultBytes },
      ownComment: read.comment ?? '',
      waitMs: Math.min(maxTimeMS + limits.deadlineGraceMs + limits.verifyMs, longestMs),
      asTask: 'never',
      answerAs: { canonical: read.canonical ?? false, responseBytes: read.responseBytes },
      digest: createHash('sha256').update(BSON.serialize({ command: read.command, limit: read.limit, maxTimeMS })).digest('hex'),
      startAnother: true,
      notes: read.notes,
    },
    caller,
  );
}
