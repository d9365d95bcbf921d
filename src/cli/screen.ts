/** A terminal taken over whole, and given back as it was whatever happens. */

import type { Size } from './top-view.js';

export interface Screen {
  size(): Size;
  /** Writes one frame over the last, without a moment in which the screen is empty. */
  draw(lines: readonly string[]): void;
  /** Gives the terminal back; further calls do nothing. */
  restore(): void;
}

export interface ScreenEvents {
  input(text: string): void;
  resized(): void;
  /** The terminal, or this process, is to end; the terminal has been given back. */
  gone(reason: string, exitCode: number): void;
}

const enter = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[2J';
const leave = '\u001b[?2026l\u001b[?7h\u001b[?25h\u001b[0m\u001b[?1049l';
/** A terminal that knows synchronized updates shows a frame only when it is complete; others ignore these. */
const beginFrame = '\u001b[?2026h\u001b[H';
const endFrame = '\u001b[J\u001b[?2026l';
const suspendKey = '\u001a';
/** Exit codes of a process that a signal ended, as shells count them. */
const signalCodes = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129, SIGQUIT: 131 } as const;

/** Both streams must be terminals. */
export function openScreen(events: ScreenEvents, input: NodeJS.ReadStream = process.stdin, output: NodeJS.WriteStream = process.stdout): Screen {
  let taken = false;
  let ended = false;

  function take(): void {
    if (taken) return;
    taken = true;
    input.setRawMode(true);
    output.write(enter);
  }

  function release(): void {
    if (!taken) return;
    taken = false;
    try {
      output.write(leave);
      input.setRawMode(false);
    } catch {
      // The terminal itself is gone: nothing is left to give back.
    }
  }

  function suspend(): void {
    release();
    process.once('SIGCONT', () => {
      if (ended) return;
      take();
      events.resized();
    });
    process.kill(process.pid, 'SIGSTOP');
  }

  function restore(): void {
    ended = true;
    release();
    input.pause();
  }

  function end(reason: string, exitCode: number): void {
    if (ended) return;
    restore();
    events.gone(reason, exitCode);
  }

  take();
  // The last chance, for whatever ends the process.
  process.on('exit', release);
  for (const [signal, code] of Object.entries(signalCodes)) process.on(signal as keyof typeof signalCodes, () => { end(signal, code); });
  process.on('SIGTSTP', suspend);
  for (const event of ['uncaughtException', 'unhandledRejection']) process.on(event, (error: unknown) => { end(`an error of this program: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`, 1); });
  for (const stream of [input, output]) stream.on('error', (error: Error) => { end(`the terminal is gone: ${error.message}`, 1); });
  for (const event of ['end', 'close']) input.on(event, () => { end('the terminal is gone', 1); });
  output.on('resize', () => { if (taken) events.resized(); });
  input.setEncoding('utf8');
  input.on('data', (text: string) => {
    if (!text.includes(suspendKey)) events.input(text);
    else suspend();
  });
  input.resume();

  return {
    size: () => ({ columns: output.columns || 80, rows: output.rows || 24 }),
    draw(lines) {
      if (taken && !ended) output.write(`${beginFrame}${lines.map((line) => `${line}\u001b[K`).join('\r\n')}${endFrame}`);
    },
    restore,
  };
}
