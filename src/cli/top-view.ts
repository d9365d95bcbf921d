/** What `top` shows, as pure functions: from a look at the deployment and the keys pressed to the lines of a screen. */

import type { SurveyEntry, SurveyResult } from '../core/survey.js';
import { showDuration } from './duration.js';
import { showId } from './output.js';
import { idOf, instanceOf, whoOf } from './ps.js';
import { clean, fit } from './text.js';

export interface TopState {
  /** null until the first look has come. */
  survey: SurveyResult | null;
  /** Why the last look failed altogether; null when it did not. */
  failure: string | null;
  /** ISO 8601 UTC: when the last look ended. */
  at: string | null;
  /** Key of the selected operation; null for the first one. */
  selected: string | null;
  /** Key of the operation whose kill waits for its second key. */
  confirming: string | null;
  /** What the last kills came to. */
  notes: readonly string[];
}

export const emptyState: TopState = { survey: null, failure: null, at: null, selected: null, confirming: null, notes: [] };

export interface Size {
  columns: number;
  rows: number;
}

/** One line of the screen, and how it stands out. */
export interface Line {
  text: string;
  style: 'plain' | 'head' | 'selected' | 'orphan' | 'warning' | 'dim';
}

export type Action = 'quit' | { kill: SurveyEntry } | null;

/** The same operation from one look to the next. */
export function keyOf(entry: SurveyEntry): string {
  return entry.operationId ?? `${entry.node}/${idOf(entry)}`;
}

export function entriesOf({ survey }: TopState): readonly SurveyEntry[] {
  return survey?.entries ?? [];
}

function selectedIndex(state: TopState): number {
  const index = entriesOf(state).findIndex((entry) => keyOf(entry) === state.selected);
  return Math.max(0, index);
}

export function selectedEntry(state: TopState): SurveyEntry | undefined {
  return entriesOf(state)[selectedIndex(state)];
}

/** The keys of one piece of input: a sequence that begins with Escape is one key. */
export function keysOf(input: string): string[] {
  return input.match(/\u001b(?:\[[0-9;]*[A-Za-z~]|O[A-Za-z])|[^]/gu) ?? [];
}

/** Input that came at once: a kill that is asked for in it is not confirmed in it as well, whatever was pasted. */
export function pressAll(state: TopState, input: string): { state: TopState; actions: Exclude<Action, null>[] } {
  const mayConfirm = state.confirming !== null;
  const actions: Exclude<Action, null>[] = [];
  let next = state;
  for (const [i, key] of keysOf(input).entries()) {
    const pressed = press(next, key === 'y' && !(mayConfirm && i === 0) ? '' : key);
    next = pressed.state;
    if (pressed.action !== null) actions.push(pressed.action);
  }
  return { state: next, actions };
}

/** @param key as the terminal sent it */
export function press(state: TopState, key: string): { state: TopState; action: Action } {
  const still = { ...state, confirming: null };
  switch (key) {
    case 'q':
    case '\u0003':
      return { state: still, action: 'quit' };
    case '\u001b[A':
    case '\u001bOA':
    case 'k':
      return { state: move(still, -1), action: null };
    case '\u001b[B':
    case '\u001bOB':
    case 'j':
      return { state: move(still, 1), action: null };
    case 'x':
    case 'K':
      return { state: askToKill(state), action: null };
    case 'y':
      return confirm(state);
    default:
      return { state: still, action: null };
  }
}

function move(state: TopState, by: number): TopState {
  const entries = entriesOf(state);
  const to = entries[Math.min(entries.length - 1, Math.max(0, selectedIndex(state) + by))];
  return to === undefined ? state : { ...state, selected: keyOf(to) };
}

function askToKill(state: TopState): TopState {
  const entry = selectedEntry(state);
  if (entry === undefined) return state;
  // What is asked about stays selected, also when another becomes the longest meanwhile.
  return { ...state, selected: keyOf(entry), confirming: keyOf(entry) };
}

/** The second key counts for the operation that was asked about, while a look still shows it, and for no other. */
function confirm(state: TopState): { state: TopState; action: Action } {
  const { confirming } = state;
  const entry = entriesOf(state).find((each) => keyOf(each) === confirming);
  const next = { ...state, confirming: null };
  if (confirming === null) return { state: next, action: null };
  if (entry === undefined) return { state: { ...next, notes: [`${confirming}: no look sees it any more`, ...state.notes] }, action: null };
  return { state: next, action: { kill: entry } };
}

const columns: { head: string; width: number; of(entry: SurveyEntry): string }[] = [
  { head: 'SECONDS', width: 8, of: ({ seconds }) => (seconds === null ? '-' : seconds.toFixed(1)) },
  { head: 'LEFT', width: 7, of: ({ timeLeftMs }) => (timeLeftMs === null ? '-' : showDuration(timeLeftMs)) },
  { head: 'STATE', width: 16, of: ({ state }) => state },
  { head: 'OPERATION', width: 26, of: ({ operationId }) => operationId ?? '-' },
  { head: 'NAMESPACE', width: 24, of: ({ namespace, writes }) => `${writes === true ? '(writes) ' : ''}${namespace}` },
  { head: 'NODE', width: 21, of: ({ node }) => node },
  { head: 'OPID', width: 10, of: idOf },
  { head: 'PRINCIPAL', width: 20, of: whoOf },
  { head: 'INSTANCE', width: 19, of: instanceOf },
  { head: 'CLIENT', width: 21, of: ({ client }) => client ?? '-' },
  { head: 'PLAN', width: 16, of: ({ plan }) => plan ?? '-' },
];

/** The mark is for those without colours. */
const rowOf = (entry: SurveyEntry, isSelected: boolean) => `${isSelected ? '>' : ' '} ${columns.map(({ of, width }) => fit(clean(of(entry)), width)).join(' ')}`;
const keysLine = 'up/down or j/k select   x kill   q quit';

/** Just as many lines as the screen has, each just as wide. */
export function render(state: TopState, { columns: wide, rows: high }: Size): Line[] {
  const entries = entriesOf(state);
  const above: Line[] = [{ text: summary(state), style: 'head' }, ...warnings(state).map((text): Line => ({ text, style: 'warning' }))];
  const below: Line[] = [...state.notes.slice(0, 3).map((text): Line => ({ text, style: 'dim' })), footer(state)];
  const space = Math.max(1, high - above.length - below.length - 1);
  const first = Math.max(0, Math.min(selectedIndex(state) - space + 1, entries.length - space));
  const chosen = selectedEntry(state);
  const visible = entries.slice(first, first + space);
  const rows = visible.map((entry): Line => ({ text: rowOf(entry, entry === chosen), style: entry === chosen ? 'selected' : entry.orphan ? 'orphan' : 'plain' }));
  const blank = Array.from({ length: Math.max(0, space - rows.length) }, (): Line => ({ text: '', style: 'plain' }));
  const head: Line = { text: `  ${columns.map(({ head: name, width }) => fit(name, width)).join(' ')}`, style: 'dim' };
  const lines = [...above, head, ...rows, ...blank, ...below];
  // On a screen that is too small for all, what is asked of the person is shown.
  const kept = lines.length <= high ? lines : [...lines.slice(0, Math.max(0, high - 1)), ...below.slice(-1)].slice(-high);
  return kept.map(({ text, style }) => ({ text: fit(clean(text), wide), style }));
}

function summary({ survey, at, failure }: TopState): string {
  if (survey === null) return failure === null ? 'mongo-leash top: looking' : 'mongo-leash top: no look has succeeded yet';
  const orphans = survey.entries.filter(({ orphan }) => orphan).length;
  const count = survey.entries.length;
  return `mongo-leash top: ${count} tagged operation${count === 1 ? '' : 's'}${orphans > 0 ? `, ${orphans} orphaned` : ''} on ${survey.looked.length} of ${survey.looked.length + survey.silent.length} nodes, seen ${at ?? ''}`;
}

/** What the rows do not say: which of them are old, and what may run besides. */
function warnings({ survey, failure, at }: TopState): string[] {
  const lines: string[] = [];
  if (failure !== null) lines.push(`no look succeeded since ${at ?? 'the start'}: ${failure}`);
  for (const { node, reason } of survey?.silent ?? []) lines.push(`${node} did not answer (${reason}): what runs there is unknown`);
  if (survey !== null && survey.ownOnly.length > 0) lines.push("only this user's own operations are shown: the privilege inprog is missing");
  return lines;
}

function footer(state: TopState): Line {
  const entry = entriesOf(state).find((each) => keyOf(each) === state.confirming);
  if (state.confirming === null) return { text: keysLine, style: 'dim' };
  const what = entry === undefined ? '' : ` (${entry.namespace} on ${entry.node}, opid ${showId(entry.opid)})`;
  return { text: `kill ${state.confirming}${what}? y to kill, any other key not to`, style: 'warning' };
}
