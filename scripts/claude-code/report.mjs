/** What a scenario showed, as text: on the wire, on the database, before the model. */
import { linesOf, senderOf } from './wire.mjs';

const shortened = (text, length) => (text.length > length ? `${text.slice(0, length)}...` : text);
const ms = (value) => String(Math.round(value)).padStart(7);

/** Those that say the same in a row become one line, with how many they were and over what time. */
function folded(lines) {
  const folds = [];
  for (const line of lines) {
    // A poll and its answer alternate.
    const earlier = [folds.at(-1), folds.at(-2)].find((fold) => fold?.repeatable !== undefined && fold.repeatable === line.repeatable);
    const last = folds.at(-1);
    if (earlier !== undefined && last.repeatable !== undefined) {
      earlier.count += 1;
      earlier.until = line.at;
    } else folds.push({ ...line, count: 1, until: line.at });
  }
  return folds;
}

const startOf = (entries) => (callOf(entries) ?? entries[0])?.at ?? 0;
const callOf = (entries) => entries.find(({ way, message }) => way === 'to server' && message?.method === 'tools/call');

/** What passed, a line for each; times are in ms from `zero`. */
export const wireReport = (entries, zero = startOf(entries)) =>
  folded(linesOf(entries)).map(({ at, text, count, until }) => `${ms(at - zero)}  ${shortened(text, 150)}${count > 1 ? ` (${count} times until ${Math.round(until - zero)})` : ''}`);

/**
 * @param {object} seen what `play` returned
 * @param {{ what: string, at: number | undefined }} action of the client
 * @param {{ what: string, holds: boolean }[]} checks
 * @returns {string[]} lines; times are in ms from the call of `run` on the wire
 */
export function reportOf(seen, action, checks) {
  const { entries, sighting, told } = seen;
  const call = callOf(entries);
  const zero = startOf(entries);
  const at = (time) => ms(time - zero);
  const wire = wireReport(entries, zero);
  const sender = call === undefined ? [] : [`         the call said: protocol ${senderOf(call).protocolVersion}, capabilities ${JSON.stringify(senderOf(call).capabilities)}`];
  const headers = call?.headers === undefined ? [] : [`         with the headers ${Object.entries(call.headers).map(([name, value]) => `${name}: ${value}`).join(', ')}`];
  const { first, last, seenAt, goneAt } = sighting;
  const database = first === undefined
    ? ['         never seen']
    : [
      `${at(seenAt)}  opid ${first.opid}, ${first.kind} on ${first.ns}, operation ${first.operationId}`,
      `${at(action.at)}  (${action.what}; last seen running for ${last.runningMs} ms, ${last.plan})`,
      goneAt === undefined ? '         still there' : `${at(goneAt)}  nothing: gone ${Math.round(goneAt - action.at)} ms after that`,
    ];
  const model = told.map(({ at: time, name, isError, text }) => `${at(time)}  ${name}${isError ? ' (error)' : ''}: ${shortened(text.replaceAll(/\s+/g, ' '), 420)}`);
  return [
    '  On the wire (-> to the server, <- to Claude Code; ms from the call of run)',
    ...wire, ...sender, ...headers,
    '  On the database ($currentOp of an independent connection)',
    ...database,
    `         the end of the server: ${seen.serverEnd}`,
    '  Before the model',
    ...(model.length > 0 ? model : ['         nothing: it was gone']),
    ...checks.map(({ what, holds }) => `  ${holds ? 'holds' : 'FAILS'}: ${what}`),
  ];
}
