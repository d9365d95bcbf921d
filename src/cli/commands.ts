/** The commands for a terminal: what runs, stop it, what ended, and whether all is as it should be. */

import { type Command, Option } from 'commander';
import type { Log } from '../core/ports.js';
import { createRedactor } from '../domain/redact.js';
import { outcomes } from '../domain/words.js';
import { type ConnectionFlags, nameSource, readConnection, stateFolderOf } from './connection.js';
import { parseDuration } from './duration.js';
import { helpOf } from './help.js';
import type { HistoryOptions } from './history.js';
import type { KillOptions } from './kill.js';
import { say } from './output.js';
import type { Filters } from './ps.js';
import { type Terminal, closeWithin, tellError } from './terminal.js';

type Flags<T> = T & ConnectionFlags;

/** @param redact takes the secrets of the command line out of a text */
export function addTerminalCommands(program: Command, redact: (text: string) => string): void {
  const connected = (flags: ConnectionFlags, command: (terminal: Terminal) => Promise<number>) => finish(() => connect(flags, command), redact);

  addFilters(addConnection(program.command('ps').description('Show what runs under the tags of mongo-leash on every node')))
    .option('--all', 'show operations without a tag as well, to compare')
    .option('--json', 'one JSON object a line')
    .addHelpText('after', helpOf('ps'))
    .action((flags: Flags<Filters & { all?: boolean; json?: boolean }>) => connected(flags, async (terminal) => (await import('./ps.js')).ps(terminal, flags)));

  addFilters(addConnection(program.command('kill').description('Kill operations, verify, and say what is proven').argument('[operation id...]')))
    .option('--request <session/id>', 'the operation of a request, as ps shows it; may be given again', collect)
    .option('--opid <host:port/opid>', 'whatever runs under an opid, tagged or not; may be given again', collect)
    .option('--dry-run', 'only show what would be killed')
    .option('--yes', 'do not ask')
    .addOption(new Option('--wait <duration>', 'how long each kill is verified').argParser(parseDuration).default(10_000, '10s'))
    .option('--json', 'one JSON object a line')
    .addHelpText('after', helpOf('kill'))
    .action((ids: string[], { wait, ...flags }: Flags<Omit<KillOptions, 'waitMs'> & { wait: number }>) => connected(flags, async (terminal) => (await import('./kill.js')).kill(terminal, ids, { ...flags, waitMs: wait })));

  addConnection(program.command('top').description('Watch what runs, live, and kill what is selected'))
    .option('--json', 'no view, but one JSON object a line for each operation, each second')
    .addHelpText('after', helpOf('top'))
    .action((flags: ConnectionFlags & { json?: boolean }) => connected(flags, async (terminal) => (flags.json === true ? (await import('./top-json.js')).topJson(terminal) : (await import('./top.js')).top(terminal))));

  addStateFolder(program.command('history').description('Show what ended, as this machine has it on record'))
    .addOption(new Option('--since <duration>', 'only what ended since then, such as 30m').argParser(parseDuration))
    .addOption(new Option('--outcome <outcome>', 'only what ended in this way').choices(outcomes))
    .option('--json', 'one JSON object a line')
    .addHelpText('after', helpOf('history'))
    .action((flags: Flags<HistoryOptions>) => finish(async () => {
      const [{ wireStore }, { history }] = await Promise.all([import('../wire-terminal.js'), import('./history.js')]);
      const { store, clock } = wireStore(stateFolderOf(flags, process.env), terminalLog(redact));
      try {
        return await history({ store, clock }, flags);
      } finally {
        await closeWithin(clock, [store.close()]);
      }
    }, redact));

  addConnection(program.command('doctor').description('Check the connection, the privileges and what a kill takes, on every node'))
    .option('--json', 'one JSON object a line, one for each node')
    .addHelpText('after', helpOf('doctor'))
    .action((flags: Flags<{ json?: boolean }>) => connected(flags, async (terminal) => (await import('./doctor.js')).doctor(terminal, flags)));
}

async function connect(flags: ConnectionFlags, command: (terminal: Terminal) => Promise<number>): Promise<number> {
  const connection = await readConnection(flags, process.env);
  const redact = createRedactor([connection.uri, connection.controlUri ?? '']);
  // Loaded only now: the driver takes longer to load than all the rest.
  const { wireTerminal } = await import('../wire-terminal.js');
  let terminal: Terminal | null = null;
  try {
    terminal = wireTerminal(connection, terminalLog(redact));
    return await command(terminal);
  } catch (error) {
    return tellError(terminal === null ? nameSource(error, connection) : error, redact);
  } finally {
    if (terminal !== null) await closeWithin(terminal.clock, [terminal.deployment.close(), terminal.store.close()]);
  }
}

/** Ends the process with the exit code, when all output has left. */
async function finish(work: () => Promise<number>, redact: (text: string) => string): Promise<never> {
  // A reader of the output that goes away (`| head`) does not stop a kill that is being verified.
  for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);
  const code = await work().catch((error: unknown) => tellError(error, redact));
  await new Promise((resolve) => { process.stdout.write('', resolve); });
  process.exit(code);
}

/** Of the engine's log, a person at a terminal is told what went wrong. */
function terminalLog(redact: (text: string) => string): Log {
  const tell = (fields: object, message: string) => {
    const { error, next } = fields as { error?: unknown; next?: unknown };
    say(redact([message, error, next].filter((part) => typeof part === 'string').join('. ')));
  };
  return { debug: () => undefined, info: () => undefined, warn: tell, error: tell };
}

function addConnection(command: Command): Command {
  command
    .option('--uri <connection string>', 'the database (MONGO_LEASH_URI); a password that it leaves out is asked for')
    .option('--control-uri <connection string>', 'other credentials for looks and kills (MONGO_LEASH_CONTROL_URI)');
  return addStateFolder(command);
}

function addStateFolder(command: Command): Command {
  return command.option('--state-folder <folder>', "where this machine's records are (MONGO_LEASH_STATE_FOLDER)");
}

function addFilters(command: Command): Command {
  return command
    .addOption(new Option('--older-than <duration>', 'only what has run that long, such as 30s or 5m').argParser(parseDuration))
    .option('--ns <database or namespace>', 'only on this database or collection')
    .option('--client <text>', "only where the client's address or application name holds this text")
    .option('--instance <id>', 'only of this server process')
    .option('--orphans', 'only of server processes of this machine that are dead');
}

function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}
