/** What the help of each command says below its options: examples, and what the exit codes mean. */

import { exitCodes } from './terminal.js';

type CommandName = 'ps' | 'kill' | 'top' | 'history' | 'doctor';
type ExitCode = keyof typeof exitCodes;

interface Help {
  examples: readonly (readonly [line: string, what: string])[];
  codes: Partial<Record<ExitCode, string>>;
  more?: readonly string[];
}

const common = {
  failed: 'a bug of this program',
  usage: 'the command line cannot be used',
  unreachable: 'the database cannot be reached, or refuses the credentials',
} as const;

const help: Record<CommandName, Help> = {
  ps: {
    examples: [
      ['mongo-leash ps', 'what agents run, on every node'],
      ['mongo-leash ps --older-than 30s', 'only what has run for half a minute'],
      ['mongo-leash ps --all', 'everything else as well'],
      ['mongo-leash ps --json | jq .operationId', 'for a script'],
    ],
    codes: { done: 'every node answered', ...common, unknown: 'a node did not answer: what runs there is unknown' },
    more: ['INSTANCE is the server process that started it: (orphan) when it is dead, (?) when this machine cannot tell.'],
  },
  kill: {
    examples: [
      ['mongo-leash kill 4k2v9xw1q8n3t5r7y0m6p2s4dh', 'one operation, by its id'],
      ['mongo-leash kill --older-than 5m --dry-run', 'show what a filter fits'],
      ['mongo-leash kill --orphans --yes', 'what dead server processes left, without asking'],
      ['mongo-leash kill --request q7d2ma/n:42', 'what a request started, by its session and id'],
      ['mongo-leash kill --opid db1:27017/123456', 'anything, tagged or not'],
    ],
    codes: {
      done: 'all are proven to be stopped, or ended before',
      ...common,
      stillRunning: 'one still runs when the time to verify is over',
      refused: 'one was refused: the message names the privilege, or says why',
      notFound: 'one was not found, on any node and on record',
      unknown: 'of one it is unknown whether it runs (a node did not answer), or how it ended',
      aborted: 'the answer was no: nothing was killed',
    },
    more: ['Filters choose among tagged operations only. The worst of several results gives the exit code: 3, then 4, 6, 5, 0.'],
  },
  top: {
    examples: [
      ['mongo-leash top', 'watch all nodes, refreshed each second'],
      ['mongo-leash top --json', 'the same for a script, one object a line'],
    ],
    codes: { done: 'left with q', ...common },
    more: ['Keys: up, down, j, k select; x and then y kills the selected one; q leaves.'],
  },
  history: {
    examples: [
      ['mongo-leash history --since 1h', 'what ended in the last hour'],
      ['mongo-leash history --outcome killed --json', 'the reports of kills'],
    ],
    codes: { done: 'the records were read', failed: 'a bug of this program, or records that cannot be read', usage: common.usage },
    more: ['It shows what servers of this user on this machine recorded (serve --store local), for as long as they keep it (--retention-ms).'],
  },
  doctor: {
    examples: [
      ['mongo-leash doctor', 'check every node'],
      ['MONGO_LEASH_CONTROL_URI=mongodb://dba@db1/ mongo-leash doctor', "check with an administrator's credentials for looks and kills"],
    ],
    codes: {
      done: 'all is as it should be',
      ...common,
      stillRunning: 'the kill of its own harmless operation could not be proven',
      refused: 'a privilege is missing; the role that has it is printed',
      unknown: 'a node did not answer',
    },
    more: ['It runs two harmless operations on each node (counting numbers, at most 5 s) and kills them.'],
  },
};

export function helpOf(name: CommandName): string {
  const { examples, codes, more = [] } = help[name];
  const widest = Math.max(...examples.map(([line]) => line.length));
  const codeLines = (Object.keys(exitCodes) as ExitCode[]).filter((code) => codes[code] !== undefined).map((code) => `  ${exitCodes[code]}  ${codes[code] ?? ''}`);
  return ['', 'Examples:', ...examples.map(([line, what]) => `  ${line.padEnd(widest)}  ${what}`), '', 'Exit codes:', ...codeLines, ...more.map((line) => `\n${line}`)].join('\n');
}
