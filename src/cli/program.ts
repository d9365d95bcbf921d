/** The command line: its commands, and its options as the one table has them. */

import { Command, InvalidArgumentError, Option } from 'commander';
import { ConfigError, type LoadedConfig, loadConfig } from '../config/load.js';
import { type OptionName, type OptionRow, optionRows } from '../config/options.js';
import { LeashError } from '../domain/errors.js';
import { createRedactor } from '../domain/redact.js';
import { addTerminalCommands } from './commands.js';
import { usageExitCode } from './usage.js';

/** Loaded only to serve: the commands for a terminal have no use for MCP. */
const serve = async (loaded: LoadedConfig, version: string) => { await (await import('./serve.js')).serve(loaded, version, (error) => refusalOf(error, loaded)); };

export function createProgram(version: string): Command {
  const program = new Command('mongo-leash')
    .description('An MCP server for MongoDB that keeps every query on a leash')
    .version(version)
    .showHelpAfterError('(mongo-leash --help lists the options)')
    .configureOutput({ writeErr: (text) => process.stderr.write(redactArguments(text)) })
    .exitOverride((error) => {
      process.exit(error.exitCode === 0 ? 0 : usageExitCode);
    });
  const command = program.command('serve', { isDefault: true }).description('Serve MCP over stdio (the default)').argument('[words...]');
  command.usage('[options]').allowExcessArguments(false);
  for (const [name, option] of Object.entries(optionRows) as [OptionName, OptionRow][]) {
    if (option.flag === null) command.addHelpText('after', `\nOnly from the environment:\n  ${option.env}  ${option.about}`);
    else command.addOption(toOption(name, option.flag, option));
  }
  command.action(async (words: string[], flags: Partial<Record<OptionName, unknown>>) => {
    const [word] = words;
    if (word !== undefined) command.error(`error: unknown command or extra word ${JSON.stringify(word)}`);
    await start(flags, version);
  });
  addTerminalCommands(program, redactArguments);
  return program;
}

function toOption(name: OptionName, flag: string, row: OptionRow): Option {
  const flags = row.value === undefined ? `--${flag}` : `--${flag} <${row.value}>`;
  const option = new Option(flags, `${row.about} (${row.env}${row.default === 'none' ? '' : `, default ${row.default}`})`);
  // The names of the table are the names of the configuration: commander's own camel case differs (maxTimeMs).
  option.attributeName = () => name;
  // A list that is given twice is joined: the last one alone would drop the others in silence.
  if (row.list === true) option.argParser((value: string, before: string[] | undefined) => [...(before ?? []), ...(name === 'allowStage' ? [stageName(value)] : value.split(',').map((each) => each.trim()))]);
  return option;
}

function stageName(value: string): string {
  if (!/^\$[a-zA-Z]+$/.test(value)) throw new InvalidArgumentError('It must be the name of a stage, as $name.');
  return value;
}

async function start(flags: Partial<Record<OptionName, unknown>>, version: string): Promise<void> {
  let loaded: LoadedConfig | undefined;
  try {
    loaded = loadConfig(flags, process.env);
    await serve(loaded, version);
  } catch (error) {
    const refusal = refusalOf(error, loaded);
    if (refusal !== null) fail(refusal);
    throw error;
  }
}

/** Names the option that it is about, and none of its secrets; null for an error that is not of the configuration. */
function refusalOf(error: unknown, loaded: LoadedConfig | undefined): string | null {
  if (error instanceof ConfigError) return error.message;
  if (!(error instanceof LeashError) || loaded === undefined) return null;
  const { config, uriFrom, controlUriFrom, disabledToolsFrom } = loaded;
  const redact = createRedactor([config.uri, config.controlUri].filter((uri) => uri !== undefined));
  const from = error.path === 'controlUri' ? controlUriFrom : error.path === 'disabledTools' ? disabledToolsFrom : uriFrom;
  return `${from}: ${redact(error.message)} ${error.next}`;
}

function fail(message: string): never {
  process.stderr.write(`mongo-leash: ${message}\n`);
  process.exit(usageExitCode);
}

/** Messages about the command line repeat parts of it, and a connection string may be one of them, also a misspelled one. */
function redactArguments(text: string): string {
  let clean = text;
  const words = process.argv.slice(2).flatMap((argument) => [argument, argument.replace(/^-[\w-]*=/, '')]);
  for (const argument of words.filter((each) => each.includes('@'))) {
    const shown = argument.replace(/^(-[\w-]*=)?([^/@]*:\/\/)?.*@/s, '$1$2<credentials>@');
    for (const [as, safe] of [[argument, shown], [JSON.stringify(argument), JSON.stringify(shown)]] as const) clean = clean.replaceAll(as, () => safe);
  }
  return createRedactor(process.argv.slice(2))(clean);
}
