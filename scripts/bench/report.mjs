/** From the measured times to the table, the goals and the page. */

/** The value that a share `q` of the times does not exceed. */
export const quantile = (times, q) => {
  const sorted = [...times].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(q * sorted.length) - 1))];
};

export const median = (times) => quantile(times, 0.5);

/** How much slower than the bare server a call may be. */
const callsWithin = 1.25;

/**
 * Whether each goal was reached.
 * @returns {{goal: string, reached: boolean | null, found: string}[]} null where there was nothing to compare with
 */
export const goalsOf = ({ bare, ours, stock }) => {
  const compare = (goal, other, of, limit) => {
    if (other === undefined) return { goal, reached: null, found: 'not measured' };
    const ratio = median(of(ours)) / median(of(other));
    return { goal, reached: ratio <= limit, found: `${ratio.toFixed(2)} times` };
  };
  const one = ({ one: times }) => times;
  const many = ({ many: times }) => times;
  const start = ({ start: times }) => times;
  return [
    compare(`a call, 1 at a time: at most ${callsWithin} times the bare server`, bare, one, callsWithin),
    compare(`a call, 16 at once: at most ${callsWithin} times the bare server`, bare, many, callsWithin),
    compare('start: no slower than the bare server', bare, start, 1),
    compare('a call, 1 at a time: faster than the stock server', stock, one, 1),
    compare('a call, 16 at once: faster than the stock server', stock, many, 1),
    compare('start: faster than the stock server', stock, start, 1),
  ];
};

const ms = (value) => (value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(2));

const row = ({ who, one, many, perSecondOne, perSecondMany, start, answerBytes }) => {
  const startCells = start.length === 0 ? ['', ''] : [ms(median(start)), `${ms(Math.min(...start))} to ${ms(Math.max(...start))}`];
  return `| ${[who, ms(median(one)), ms(quantile(one, 0.99)), Math.round(perSecondOne).toLocaleString('en'), ms(median(many)), ms(quantile(many, 0.99)), Math.round(perSecondMany).toLocaleString('en'), ...startCells, answerBytes ?? ''].join(' | ')} |`;
};

/** @param measured by name: driver, bare, ours, and stock where it was there */
export const tableOf = (measured) => [
  '| | 1 at a time: median ms | p99 ms | calls/s | 16 at once: median ms | p99 ms | calls/s | start: median ms | from, to | answer, bytes |',
  '|---|---|---|---|---|---|---|---|---|---|',
  ...Object.values(measured).map(row),
].join('\n');

const word = (reached) => (reached === null ? 'not measured' : reached ? 'reached' : 'missed');

export const goalTableOf = (goals) => ['| goal | | found |', '|---|---|---|', ...goals.map(({ goal, reached, found }) => `| ${goal} | ${word(reached)} | ${found} |`)].join('\n');

export const pageOf = ({ facts, table, goals, skipped }) => `# What the leash costs

Written by \`npm run bench -- --write\`; every number is of one run.

${facts}

${table}
${skipped === null ? '' : `\nThe stock server was skipped: ${skipped}.\n`}
- The call is an aggregation that finds 10 small documents by an indexed field, over stdio, with the defaults of each server.
- The driver alone calls from the measuring process. The bare server is \`scripts/bench/bare-server.mjs\`: the same SDK and the same driver, one tool, and nothing of a leash (no tag, no limit, no record, no kill); its answers are padded to the size of ours. The stock server is mongodb-mcp-server 3.0.4 with \`--readOnly\`.
- All are asked in turn, round by round, by the same client, on the same database. A round of one server is some calls one after the other, then some with 16 under way at any time.
- The start is from the spawn of the process to the answer of the first \`tools/list\`, ${'`initialize`'} before it; started in turn as well.

${goalTableOf(goals)}
`;
