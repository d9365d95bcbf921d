/** Turns the driver's errors into ours: what happened, what is known of the database, what to do. */

import { MongoServerError, MongoServerSelectionError } from 'mongodb';
import { LeashError } from '../domain/errors.js';

/** AuthenticationFailed, and the older code that some servers give for it. */
const authenticationCodes: ReadonlySet<unknown> = new Set([18, 8000]);

/** An error from connecting, or from before anything was sent. */
export function toLeashError(error: unknown): LeashError {
  if (error instanceof LeashError) return error;
  const authentication = findCause(error, (cause) => cause instanceof MongoServerError && authenticationCodes.has(cause.code));
  if (authentication !== null) {
    return new LeashError('authentication_failed', `The database refused the credentials: ${messageOf(authentication)}`, { cause: error });
  }
  if (error instanceof MongoServerSelectionError) return fromSelection(error);
  return new LeashError('unreachable', `The database could not be asked: ${messageOf(error)}`, { cause: error });
}

function fromSelection(error: MongoServerSelectionError): LeashError {
  const servers = [...(error.reason?.servers.values() ?? [])];
  const failing = servers.filter((server) => server.error !== null);
  const list = failing.map((server) => `${server.address} (${messageOf(server.error)})`).join(', ');
  const discovered = error.reason?.type.startsWith('ReplicaSet') === true;
  const unresolved = failing.filter((server) => /ENOTFOUND|EAI_AGAIN/.test(messageOf(server.error))).map((server) => server.address);
  if (discovered && unresolved.length > 0) {
    return new LeashError(
      'unreachable',
      `The replica set names its members by hosts that cannot be resolved from here: ${unresolved.join(', ')}.`,
      { next: 'To talk to the one member that the connection string names (through a tunnel, or a container port), add directConnection=true to it; otherwise make these names resolvable here.', cause: error },
    );
  }
  if (failing.length === 0 && servers.length > 0) {
    return new LeashError('unreachable', `No member of the deployment fits: ${messageOf(error)}.`, { next: 'Wait for an election to end, then call again; run takes another readPreference.', cause: error });
  }
  const what = list === '' ? messageOf(error) : `no suitable server answered: ${list}`;
  return new LeashError('unreachable', `The database could not be reached: ${what}.`, { cause: error });
}

function findCause(error: unknown, match: (cause: unknown) => boolean): unknown {
  const queue: unknown[] = [error];
  for (let i = 0; i < queue.length && i < 50; i += 1) {
    const current = queue[i];
    if (match(current)) return current;
    if (current instanceof Error && current.cause !== undefined) queue.push(current.cause);
    if (current instanceof MongoServerSelectionError) for (const server of current.reason?.servers.values() ?? []) if (server.error !== null) queue.push(server.error);
  }
  return null;
}

function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join(', ');
  return error instanceof Error ? error.message : String(error);
}
