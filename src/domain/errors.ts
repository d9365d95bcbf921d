/** The one table of error codes: each error says what happened, what is known of the database, and what to do next. */

/**
 * What an answer may say went wrong. Codes are stable: scripts and models may rely on them.
 * `database` is the sentence used when the thrower knows nothing more exact.
 */
export const errorCodes = {
  bad_argument: {
    database: 'Nothing was sent to the database.',
    next: 'Correct the argument that the message names and call again.',
  },
  refused_by_policy: {
    database: 'Nothing was sent to the database.',
    next: 'Rewrite the pipeline without it, or ask the operator of this server to allow it.',
  },
  busy: {
    database: 'Nothing was sent to the database.',
    next: 'Wait for a running operation to end, or stop one with kill, then call again. operations lists them.',
  },
  not_configured: {
    database: 'No database is configured, so nothing was sent.',
    next: 'Set MONGO_LEASH_URI to a connection string and start the server again.',
  },
  unreachable: {
    database: 'The database did not answer: what runs there is unknown.',
    next: 'Check that the database is up and can be reached from here, then call again.',
  },
  authentication_failed: {
    database: 'The database answered and refused the credentials. Nothing was run.',
    next: 'Correct the user, the password or the authSource of the connection string.',
  },
  not_found: {
    database: 'No operation with this id was found.',
    next: 'Check the id. operations lists what runs and what ended recently.',
  },
  expired: {
    database: 'The operation has ended, and what is asked for is kept no longer.',
    next: 'Run it again if it is still needed. operations lists what is still kept.',
  },
  not_ended: {
    database: 'The operation has not ended.',
    next: 'Ask status with its id until it has ended.',
  },
  operation_failed: {
    database: 'The database ended the operation with an error.',
    next: 'Read the error, correct the operation and run it again.',
  },
  export_failed: {
    database: 'The operation is not to blame: what it read could not be kept.',
    next: 'Mend what the error names on the machine of this server, then export again.',
  },
  timed_out: {
    database: 'A time limit ended the operation.',
    next: 'Make it cheaper (an index, an earlier $match), or ask for more time with maxTimeMS.',
  },
  killed: {
    database: 'The operation was killed.',
    next: 'Run it again only if it is still wanted.',
  },
  shutting_down: {
    database: 'Nothing was sent to the database.',
    next: 'Start the server again and repeat the call.',
  },
  internal: {
    database: 'What the database did is not known from this error.',
    next: 'Ask status or operations what still runs, and report this error.',
  },
} as const;

export type ErrorCode = keyof typeof errorCodes;

export interface LeashErrorOptions {
  /** What is known of the database's state; the table's sentence when left out. */
  database?: string | undefined;
  /** What to do now; the table's sentence when left out. */
  next?: string | undefined;
  /** The place in the arguments, as `pipeline[0].$match.a`. */
  path?: string | undefined;
  /** The error code of the server, where the database said it. */
  serverCode?: number | undefined;
  cause?: unknown;
}

/** The one error that may leave a module: anything else that reaches a caller is an `internal` bug. */
export class LeashError extends Error {
  readonly code: ErrorCode;
  readonly database: string;
  readonly next: string;
  readonly path: string | undefined;
  readonly serverCode: number | undefined;

  constructor(code: ErrorCode, message: string, options: LeashErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'LeashError';
    this.code = code;
    this.database = options.database ?? errorCodes[code].database;
    this.next = options.next ?? errorCodes[code].next;
    this.path = options.path;
    this.serverCode = options.serverCode;
  }
}

/** What an error says, whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
