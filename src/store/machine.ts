/** Reads from the system which machine and process this is, and what became of another one's pid. */

import { createHash } from 'node:crypto';
import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import type { Here, ProbedProcess } from '../core/liveness.js';
import type { InstanceRecord } from '../core/ports.js';

/** Null in all that the system does not tell: then nothing is said of whether a process lives. */
export function readMachine(): Here {
  return {
    hostname: hostname(),
    machineId: machineId(),
    bootId: readOrNull('/proc/sys/kernel/random/boot_id'),
    pidNamespace: namespaces(),
  };
}

/** @param startedAt ISO 8601 UTC */
export function describeInstance(instance: string, startedAt: string): InstanceRecord {
  const own = probeProcess(process.pid);
  return { instance, startedAt, pid: process.pid, processStart: own.kind === 'started' ? own.at : null, ...readMachine() };
}

/** When the process with this pid started, in the system's own count; `none` only when both ways to ask agree. */
export function probeProcess(pid: number): ProbedProcess {
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (stat !== null) return parseStat(stat);
  // A /proc that hides other users' processes shows no file either.
  try {
    process.kill(pid, 0);
    return { kind: 'unknown' };
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH' ? { kind: 'none' } : { kind: 'unknown' };
  }
}

/** proc_pid_stat(5): the name of the program, field 2, may hold spaces and parentheses. */
export function parseStat(stat: string): ProbedProcess {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, threads, start] = [fields[0], fields[17], fields[19]];
  // One that nobody has waited for yet keeps its pid, and runs nothing any more.
  if ((state === 'Z' || state === 'X') && Number(threads) <= 1) return { kind: 'none' };
  return start !== undefined && /^\d+$/.test(start) ? { kind: 'started', at: start } : { kind: 'unknown' };
}

/** A start is counted from another zero in another time namespace, so that one belongs to the name. */
function namespaces(): string | null {
  try {
    const pid = readlinkSync('/proc/self/ns/pid');
    let time = '';
    try {
      time = ` ${readlinkSync('/proc/self/ns/time')}`;
    } catch {
      // A kernel without time namespaces.
    }
    return pid + time;
  } catch {
    return null;
  }
}

/** Hashed, as machine-id(5) asks of whoever keeps it. */
function machineId(): string | null {
  const id = readOrNull('/etc/machine-id') ?? readOrNull('/var/lib/dbus/machine-id');
  return id === null || id === '' ? null : createHash('sha256').update(`mongo-leash:${id}`).digest('hex').slice(0, 16);
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return null;
  }
}
