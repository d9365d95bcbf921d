/** What asks a process of this program to end: one list for all that have something to put in order first. */

export const endSignals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
