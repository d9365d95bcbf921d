/** The product's words for states, outcomes and verdicts: one list each, used by every layer, answer and document. */

/** The client's side: what became of the call that asked for the operation. */
export const waits = ['waiting', 'answered', 'detached', 'cancelled', 'gone'] as const;
export type Wait = (typeof waits)[number];

/** The database's side: what the last look, or the reply, said. */
export const serverStates = [
  'not_sent',
  'sent',
  'running',
  'waiting_for_lock',
  'idle_cursor',
  'kill_pending',
  'not_seen',
  'ended',
  'unreachable',
] as const;
export type ServerState = (typeof serverStates)[number];

/** How an operation ended. */
export const outcomes = ['succeeded', 'failed', 'timed_out', 'killed', 'never_sent', 'lost'] as const;
export type Outcome = (typeof outcomes)[number];

/** What a kill achieved, as far as the database showed it. */
export const verdicts = [
  'stopped',
  'ended_first',
  'never_sent',
  'gone',
  'still_running',
  'refused',
  'unknown',
  'not_found',
  'pending',
] as const;
export type Verdict = (typeof verdicts)[number];

const finalVerdicts: ReadonlySet<Verdict> = new Set(['stopped', 'ended_first', 'never_sent', 'gone']);

/** A final verdict is never revised by a later kill; one that is not final may be asked for again at once. */
export function isFinal(verdict: Verdict): boolean {
  return finalVerdicts.has(verdict);
}

/** Why an operation was asked to stop; the first cause is kept. */
export const causes = [
  'client_cancelled',
  'stream_closed',
  'session_ended',
  'tasks_cancel',
  'kill_tool',
  'administrator',
  'command_line',
  'deadline',
  'shutdown',
  'disconnect',
  'connection_lost',
  'answer_complete',
  'sweep',
  'export_failed',
] as const;
export type Cause = (typeof causes)[number];

/** Causes by which whoever asked for the operation took it back; all others are somebody else's, or a limit's. */
const requestorsCauses: ReadonlySet<Cause> = new Set(['client_cancelled', 'stream_closed', 'session_ended', 'tasks_cancel', 'kill_tool']);

export function isRequestors(cause: Cause | null): boolean {
  return cause !== null && requestorsCauses.has(cause);
}

/** Who killed an operation: this server's kill, or somebody or something else. */
export type KilledBy = 'us' | 'others';

const legalWaits: Record<Wait, readonly Wait[]> = {
  waiting: ['answered', 'detached', 'cancelled', 'gone'],
  detached: ['cancelled', 'gone'],
  answered: [],
  cancelled: ['gone'],
  gone: [],
};

/**
 * Moves the client's side on.
 * @throws Error on a move that the table does not hold: that is a bug of ours, never of a caller.
 */
export function nextWait(from: Wait, to: Wait): Wait {
  if (from === to) return to;
  if (!legalWaits[from].includes(to)) throw new Error(`illegal move of wait: ${from} to ${to}`);
  return to;
}

/**
 * Settles an outcome. Only `lost` may be replaced, by what a late reply says; nothing else ever changes.
 * @throws Error when a settled outcome would be changed: that is a bug of ours.
 */
export function nextOutcome(from: Outcome | null, to: Outcome): Outcome {
  if (from === null || from === to || from === 'lost') return to;
  throw new Error(`illegal change of outcome: ${from} to ${to}`);
}
