/** The control of one node: its user's own connection, and a second one where separate control credentials are given. */

import type { KillReply, Look, Origin, Survey } from '../core/ports.js';
import type { Sighting } from '../domain/facts.js';
import type { Control } from './control.js';

export interface NodeControl {
  warm(): Promise<void>;
  look(): Promise<Look>;
  survey(): Promise<Survey>;
  kill(sighting: Sighting, origin: Origin): Promise<KillReply>;
  killSessions(sessions: unknown[]): Promise<KillReply>;
  hiddenMembers(): Promise<string[]>;
  close(): Promise<void>;
}

/**
 * Looks are made with the control credentials, which may see more. A kill is tried with the data user's own first: that
 * one needs no privilege for its own operations.
 */
export function createNodeControl(own: Control, privileged: Control | null): NodeControl {
  const looking = privileged ?? own;

  /** Each way is tried only after the one before was refused, which did nothing. */
  async function kill(sighting: Sighting, origin: Origin): Promise<KillReply> {
    const first = await own.kill(sighting);
    if (!first.refused) return first;
    const second = privileged === null ? first : await privileged.kill(sighting);
    if (!second.refused || sighting.kind === 'operation') return second;
    // A cursor also falls with its session. Named without `uid`, another user's session is answered with ok and nothing happens.
    const { id, uid } = (origin.lsid ?? {}) as { id?: unknown; uid?: unknown };
    if (id === undefined || uid === undefined) return second;
    const third = await looking.killSessions([{ id, uid }]);
    return third.refused ? { ...third, missing: `${second.missing} (or ${third.missing})` } : { ...third, method: 'killSessions' };
  }

  return {
    warm: async () => {
      await Promise.all([own.warm(), privileged?.warm()]);
    },
    look: () => looking.look(),
    survey: () => looking.survey(),
    kill,
    killSessions: (sessions) => own.killSessions(sessions),
    hiddenMembers: () => looking.hiddenMembers(),
    close: async () => {
      await Promise.all([own.close(), privileged?.close()]);
    },
  };
}
