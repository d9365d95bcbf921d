/** How `doctor` shows what it found: a column for each node, and below it what to do. */

import type { HiddenMembers } from '../core/ports.js';
import type { Checkup, NodeCheckup } from './doctor.js';
import { type Colour, paint, printLine, printTable } from './output.js';
import { type PrivilegeName, createRoleLine, grantRoleLine, privileges } from './role.js';
import { clean } from './text.js';

interface Row {
  name: string;
  of(checkup: NodeCheckup): string;
}

const yes = (able: boolean, missing: string) => (able ? 'yes' : `no (${missing})`);
const ms = (value: number | null) => (value === null ? 'unknown' : `${value} ms`);

const rows: Row[] = [
  { name: 'version', of: ({ version }) => version },
  { name: 'role', of: ({ role, set }) => (set === null ? role : `${role} of ${set}`) },
  { name: 'user', of: ({ user, authentication }) => user ?? (authentication ? 'none' : 'no authentication') },
  { name: 'control user', of: ({ user, controlUser }) => controlUser ?? (user === null ? '-' : 'the same') },
  { name: 'sees own operations', of: ({ sees }) => yes(sees.own, 'inprog') },
  { name: "sees others' operations", of: ({ sees }) => yes(sees.all, 'inprog') },
  { name: 'kills own operations', of: ({ kills, kill }) => yes(kills.own, kill.verdict ?? 'not tried') },
  { name: "kills others' operations", of: ({ kills }) => yes(kills.others, 'killop') },
  { name: "kills others' cursors", of: ({ kills }) => yes(kills.cursors, 'killAnyCursor') },
  { name: "kills others' sessions", of: ({ kills }) => yes(kills.sessions, 'killAnySession') },
  { name: 'data user can write', of: ({ dataUserCanWrite }) => (dataUserCanWrite ? 'yes' : 'no') },
  { name: 'one look', of: ({ lookMs }) => ms(lookMs) },
  { name: 'look while data waits', of: ({ control }) => (control.ownWay ? ms(control.lookMs) : 'none came') },
  { name: 'a kill, verified', of: ({ kill }) => (kill.verdict === null ? 'not tried' : `${kill.verdict} in ${ms(kill.ms)}`) },
  { name: 'clock ahead of here', of: ({ clockDifferenceMs }) => ms(clockDifferenceMs) },
  { name: 'connections of a server', of: ({ connections }) => (connections.control === null ? 'unknown' : `${connections.control}, and 1 for each operation`) },
  { name: 'connections of the node', of: ({ connections: { current, available } }) => (current === null || available === null ? 'may not ask' : `${current} of ${current + available}`) },
];

export function printCheckup(checkups: readonly Checkup[], limits: readonly string[], hidden: HiddenMembers): void {
  printTable(
    ['', ...checkups.map(({ node }) => node)],
    rows.map(({ name, of }, i) => [name, ...checkups.map((checkup) => (checkup.answered ? of(checkup) : i === 0 ? 'did not answer' : '-'))]),
  );
  const answered = checkups.filter((checkup) => checkup.answered);
  for (const checkup of checkups) if (!checkup.answered) tell('red', `${checkup.node} did not answer: ${checkup.reason}`);
  for (const { node, kill } of answered) if (kill.verdict !== 'stopped') tell('red', `${node}: the kill of a harmless operation: ${kill.reason}`);
  if (hidden.nodes.length > 0) tell('dim', `Hidden members, found in the configuration of the replica set: ${hidden.nodes.join(', ')}.`);
  if (hidden.unknownBecause !== null) tell('yellow', `Whether the replica set has hidden members is unknown: ${hidden.unknownBecause}.`);
  tellAboutWrites(answered);
  for (const limit of limits) tell('dim', limit);
  tellMissing(answered);
}

function tell(colour: Colour, text: string): void {
  printLine(paint(colour, clean(text)));
}

function tellAboutWrites(answered: readonly NodeCheckup[]): void {
  const writer = answered.find(({ dataUserCanWrite }) => dataUserCanWrite);
  if (writer === undefined) return;
  const who = writer.user === null ? 'Everybody can write: this deployment has no authentication.' : `The data user ${writer.user} can write.`;
  tell('yellow', `${who} An agent needs the role read only; mongo-leash refuses $out and $merge by itself unless it is started with --allow-writes.`);
}

function tellMissing(answered: readonly NodeCheckup[]): void {
  const missing = (Object.keys(privileges) as PrivilegeName[]).filter((privilege) => answered.some((checkup) => checkup.missing.includes(privilege)));
  if (missing.length === 0) {
    if (answered.length > 0) tell('green', 'Nothing is missing.');
    return;
  }
  tell('yellow', 'Missing, for an administrator (an agent needs none of it for its own operations):');
  for (const privilege of missing) tell('yellow', `  ${privilege}: to ${privileges[privilege]}`);
  printLine('In mongosh, as a user who may create roles:');
  printLine(`  ${createRoleLine()}`);
  const user = answered.map((checkup) => checkup.controlUser ?? checkup.user).find((each) => each !== null);
  if (user !== undefined && user !== null) printLine(`  ${grantRoleLine(user)}`);
}
