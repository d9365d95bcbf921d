/** Processes of this machine, as the system lists them. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';

export interface ProcessRow {
  pid: number;
  parent: number;
  /** The program and its arguments. */
  command: string[];
}

/** Whether it runs; one that has ended and that nobody has asked for its exit code (a zombie) does not. */
export function isAlive(pid: number): boolean {
  return isListed(pid) && (!existsSync('/proc/self') || statOf(pid)?.state !== 'Z');
}

/** Whether the system knows it: for a child of this process, until its end has been taken notice of. */
export function isListed(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** What runs now. */
export function processes(): ProcessRow[] {
  return existsSync('/proc/self') ? fromProc() : fromPs();
}

function fromProc(): ProcessRow[] {
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    const pid = Number(name);
    const stat = statOf(pid);
    return stat === null ? [] : [{ pid, parent: stat.parent, command: stat.command }];
  });
}

/** null when there is no such process (any more). */
function statOf(pid: number): { state: string; parent: number; command: string[] } | null {
  try {
    const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
    // The name of the program stands in brackets and may hold anything; the fields come after it.
    const [state = '', parent] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? [];
    return { state, parent: Number(parent), command };
  } catch {
    return null;
  }
}

function fromPs(): ProcessRow[] {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).trim().split('\n');
  return lines.map((line) => {
    const [pid, parent, ...command] = line.trim().split(/\s+/);
    return { pid: Number(pid), parent: Number(parent), command };
  });
}

/** Every process that this one started, directly or through others. */
export function descendants(pid: number): ProcessRow[] {
  const all = processes();
  const found: ProcessRow[] = [];
  for (let parents = [pid]; parents.length > 0; ) {
    const children = all.filter(({ parent }) => parents.includes(parent));
    found.push(...children);
    parents = children.map((child) => child.pid);
  }
  return found;
}

/** The process that holds the store of this server. */
export function storeProcessOf(pid: number): number | null {
  return processes().find(({ parent, command }) => parent === pid && command.some((word) => word.includes('isolated-process')))?.pid ?? null;
}
