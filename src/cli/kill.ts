/** `mongo-leash kill`: finds what is meant, shows it, asks, kills it, and says what is proven. */

import { createInterface } from 'node:readline/promises';
import { killByOpid } from '../core/kill-untagged.js';
import { type SurveyEntry, type SurveyResult, takeSurvey } from '../core/survey.js';
import { LeashError } from '../domain/errors.js';
import { isOperationId } from '../domain/ids.js';
import { encodeRequestId } from '../domain/tag.js';
import type { Verdict } from '../domain/words.js';
import { type Killed, exitCodeFor, report } from './kill-report.js';
import { printJson, say, showId } from './output.js';
import { type Filters, isFiltered, matches, printEntries, tellLimits } from './ps.js';
import { type Terminal, exitCodes, terminalCaller } from './terminal.js';

export interface KillOptions extends Filters {
  /** `<session>/<request id>`, as ps shows them. */
  request?: string[];
  /** `<host:port>/<opid>` */
  opid?: string[];
  dryRun?: boolean;
  yes?: boolean;
  json?: boolean;
  /** How long each kill is verified, in milliseconds. */
  waitMs: number;
}

interface OpidTarget {
  node: string;
  opid: string;
}

/** One thing to kill: a tagged operation, or whatever runs under an opid. */
type Target = { name: string; operationId: string } | { name: string; at: OpidTarget };

export async function kill(terminal: Terminal, ids: readonly string[], options: KillOptions): Promise<number> {
  for (const id of ids) if (!isOperationId(id)) throw new LeashError('bad_argument', `${JSON.stringify(id)} is not an operation id: it has 26 digits and lower-case letters.`, { next: 'Use --opid for an opid and --request for a request id. mongo-leash ps shows all of them.' });
  const opids = (options.opid ?? []).map(readOpid);
  const requests = (options.request ?? []).map(readRequest);
  const filtered = isFiltered(options);
  if (ids.length + opids.length + requests.length === 0 && !filtered) throw new LeashError('bad_argument', 'It was not said what to kill.', { next: 'Name operation ids, --request, --opid, --older-than, --orphans, --instance, --ns or --client. mongo-leash ps shows what runs; mongo-leash kill --help shows examples.' });

  const survey = await takeSurvey(terminal, { untagged: opids.length > 0 });
  for (const { node } of opids) refuseUnknownNode(node, survey);
  const named = (entry: SurveyEntry) => ids.includes(entry.operationId ?? '') || requests.some((request) => isRequest(entry, request));
  // A filter chooses among what carries a tag only; everything else must be named by its opid.
  const tagged = survey.entries.filter((entry) => entry.operationId !== null && (named(entry) || (filtered && matches(entry, options))));
  const byOpid = opids.map((at) => ({ at, entry: survey.entries.find((entry) => entry.node === at.node && showId(entry.opid) === at.opid) }));
  const shownEntries = [...new Set([...tagged, ...byOpid.flatMap(({ entry }) => entry ?? [])])];
  const targets = uniqueTargets(ids, tagged, byOpid);
  tellLimits(survey);
  // What a look could not see may fit as well.
  const unseen: Verdict[] = survey.silent.length > 0 && (filtered || requests.length > 0) ? ['unknown'] : [];
  if (targets.length === 0) {
    say(`nothing that fits was seen on ${survey.looked.join(', ') || 'any node'}`);
    return exitCodeFor([...unseen, survey.ownOnly.length > 0 ? 'unknown' : 'not_found']);
  }
  if (options.dryRun === true) return showOnly(targets, shownEntries, options);
  if (options.json !== true && shownEntries.length > 0) printEntries(shownEntries);
  if (!(await mayKill(targets, options))) return exitCodes.aborted;
  const killed = await Promise.all(targets.map((target) => killOne(terminal, target, survey, options.waitMs)));
  for (const each of killed) report(each, options.json === true);
  return exitCodeFor([...killed.map(({ verdict }) => verdict), ...unseen]);
}

function uniqueTargets(ids: readonly string[], tagged: readonly SurveyEntry[], byOpid: readonly { at: OpidTarget; entry: SurveyEntry | undefined }[]): Target[] {
  const targets = new Map<string, Target>();
  for (const id of [...ids, ...tagged.flatMap(({ operationId }) => operationId ?? [])]) targets.set(id, { name: id, operationId: id });
  for (const { at, entry } of byOpid) {
    const name = `${at.node}/${at.opid}`;
    // With a tag, the whole operation is meant, whatever opid its next command gets.
    if (entry === undefined || entry.operationId === null) targets.set(name, { name, at });
    else if (!targets.has(entry.operationId)) targets.set(entry.operationId, { name, operationId: entry.operationId });
  }
  return [...targets.values()];
}

function isTarget(entry: SurveyEntry, target: Target): boolean {
  return 'at' in target ? entry.node === target.at.node && showId(entry.opid) === target.at.opid : entry.operationId === target.operationId;
}

function readRequest(text: string): { session: string; ids: string[] } {
  const slash = text.indexOf('/');
  if (slash <= 0 || slash === text.length - 1) throw new LeashError('bad_argument', `--request ${JSON.stringify(text)} must be <session>/<request id>, as ps shows them.`);
  const id = text.slice(slash + 1);
  // As ps shows it (`n:1`), or bare, which means the number and the text.
  const asNumber = /^-?\d+$/.test(id) ? [encodeRequestId(Number(id))] : [];
  return { session: text.slice(0, slash), ids: [id, encodeRequestId(id), ...asNumber] };
}

function isRequest(entry: SurveyEntry, { session, ids }: { session: string; ids: string[] }): boolean {
  return entry.session === session && ids.includes(entry.requestId ?? '');
}

function readOpid(text: string): OpidTarget {
  const slash = text.indexOf('/');
  if (slash <= 0 || slash === text.length - 1) throw new LeashError('bad_argument', `--opid ${JSON.stringify(text)} must be <host:port>/<opid>, as ps shows them.`);
  return { node: text.slice(0, slash), opid: text.slice(slash + 1) };
}

/** Credentials go to members of the deployment only. */
function refuseUnknownNode(node: string, { looked, silent }: SurveyResult): void {
  const nodes = [...looked, ...silent.map((each) => each.node)];
  if (!nodes.includes(node)) throw new LeashError('bad_argument', `${JSON.stringify(node)} is no node of this deployment: ${nodes.join(', ')}.`);
}

function showOnly(targets: readonly Target[], entries: readonly SurveyEntry[], { json }: KillOptions): number {
  if (json === true) for (const entry of entries) printJson(entry);
  else if (entries.length > 0) printEntries(entries);
  const missing = targets.filter((target) => !entries.some((entry) => isTarget(entry, target)));
  for (const { name } of missing) say(`${name}: no look sees it now`);
  for (const { node, opid, operationId, internal } of entries) if (internal && operationId === null) say(`${node}/${showId(opid)} is the server's own, or a look of this program: it would be refused`);
  say('a dry run: nothing was killed');
  return missing.length > 0 ? exitCodes.notFound : exitCodes.done;
}

/** Asks a person; a script must have said yes. @throws LeashError bad_argument */
async function mayKill(targets: readonly Target[], { yes, json }: KillOptions): Promise<boolean> {
  if (yes === true) return true;
  if (!process.stdin.isTTY || json === true) throw new LeashError('bad_argument', 'Nothing was killed: a script must say --yes.', { database: '', next: 'Look first with --dry-run, then add --yes.' });
  const ask = createInterface({ input: process.stdin, output: process.stderr });
  const question = ask.question(`Kill ${targets.length === 1 ? 'this operation' : `these ${targets.length} operations`}? [y/N] `).catch(() => '');
  // Neither the end of the input nor Ctrl-C is a yes.
  const answer = await Promise.race([question, ...['close', 'SIGINT'].map((event) => new Promise<string>((resolve) => { ask.once(event, () => { resolve(''); }); }))]);
  ask.close();
  const agreed = /^y(es)?$/i.test(answer.trim());
  if (!agreed) say('nothing was killed');
  return agreed;
}

async function killOne(terminal: Terminal, target: Target, survey: SurveyResult, waitMs: number): Promise<Killed> {
  const { name } = target;
  try {
    if ('operationId' in target) {
      const { record, verdict } = await terminal.leash.kill({ operationId: target.operationId }, terminalCaller, waitMs, 'command_line');
      return { name, operationId: target.operationId, verdict: verdict ?? 'unknown', reason: record.reason, record };
    }
    const process = survey.processes.get(target.at.node);
    if (process === undefined) throw new LeashError('unreachable', `${target.at.node} did not answer.`);
    return { name, operationId: null, ...withReason(await killByOpid(terminal, { ...target.at, process }, waitMs)) };
  } catch (error) {
    return fromError(target, error, survey);
  }
}

function withReason({ verdict, record }: Awaited<ReturnType<typeof killByOpid>>): Pick<Killed, 'verdict' | 'reason' | 'record'> {
  return { verdict, record, reason: record.reason };
}

const verdictOfError: Partial<Record<string, Verdict>> = { not_found: 'not_found', expired: 'not_found', unreachable: 'unknown', refused_by_policy: 'refused' };

function fromError(target: Target, error: unknown, { ownOnly, entries }: SurveyResult): Killed {
  const verdict = error instanceof LeashError ? verdictOfError[error.code] : undefined;
  if (!(error instanceof LeashError) || verdict === undefined) throw error;
  const name = target.name;
  const operationId = 'operationId' in target ? target.operationId : null;
  const reason = `${error.message} ${error.database}`;
  const hereBefore = verdict === 'not_found' && entries.some((entry) => isTarget(entry, target));
  if (hereBefore) return { name, operationId, verdict: 'unknown', reason: `It was there when it was looked for, and not any more when it was to be killed: it seems to have ended by itself. ${reason}`, record: null };
  if (verdict !== 'not_found' || ownOnly.length === 0) return { name, operationId, verdict, reason, record: null };
  // Another user may run it, out of sight.
  return { name, operationId, verdict: 'unknown', reason: `${reason} On ${ownOnly.join(', ')} this user may see only its own operations: the privilege inprog is missing.`, record: null };
}
