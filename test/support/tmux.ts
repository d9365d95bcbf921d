/** A real terminal for tests: keys go in, and what a person would see comes out. */

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { programPath } from './server.js';

/** Without tmux there is no terminal to test in: the tests that need one are skipped, and the run's last line counts them. */
export const hasTmux = spawnSync('tmux', ['-V']).status === 0;

export interface TerminalWindow {
  /** Types keys by their tmux names: `x`, `Down`, `C-c`, `Enter`. */
  press(...keys: string[]): void;
  /** The screen as it stands, line by line. */
  screen(): string[];
  /** The same with its colours, as escape sequences. */
  colours(): string;
  resize(columns: number, rows: number): void;
  /** Whether a program has the alternate screen. */
  isTakenOver(): boolean;
  /** What tmux says of the window, by the name of its format. */
  says(format: string): string;
  /** The terminal's own settings, as stty prints them. */
  settings(): string;
  /** The process of the program that runs in it; null when it has ended. */
  pid(): number | null;
  end(): void;
}

export interface TerminalOptions {
  env: Record<string, string>;
  columns?: number;
  rows?: number;
}

/** Starts `mongo-leash` with these words in a shell in a terminal; after its end the shell prints `ended with <code>`. */
export function openTerminal(args: string[], { env, columns = 160, rows = 24 }: TerminalOptions): TerminalWindow {
  // A server of its own, which no other terminal of this user has to do with.
  const folder = mkdtempSync(join(tmpdir(), 'mongo-leash-tmux-'));
  const tmux = (...words: string[]) => execFileSync('tmux', ['-S', join(folder, 'socket'), ...words], { encoding: 'utf8', env, stdio: 'pipe' });
  const quoted = [process.execPath, programPath, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ');
  tmux('-f', '/dev/null', 'new-session', '-d', '-x', String(columns), '-y', String(rows), 'sh');
  const says = (format: string) => tmux('display-message', '-p', `#{${format}}`).trim();
  tmux('send-keys', '-l', `clear; ${quoted}; echo "ended with $?"`);
  tmux('send-keys', 'Enter');
  const shell = Number(says('pane_pid'));
  return {
    press: (...keys) => { for (const key of keys) tmux('send-keys', key); },
    screen: () => tmux('capture-pane', '-p').split('\n'),
    colours: () => tmux('capture-pane', '-p', '-e'),
    resize: (wide, high) => { tmux('resize-window', '-x', String(wide), '-y', String(high)); },
    isTakenOver: () => says('alternate_on') === '1',
    says,
    settings: () => execFileSync('stty', ['-a', '-F', says('pane_tty')], { encoding: 'utf8' }),
    pid: () => {
      const children = execFileSync('ps', ['-o', 'pid=,args=', '--ppid', String(shell)], { encoding: 'utf8' }).split('\n');
      const found = children.find((line) => line.includes(programPath));
      return found === undefined ? null : Number.parseInt(found, 10);
    },
    end: () => {
      try {
        tmux('kill-server');
      } catch {
        // It has ended by itself.
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
