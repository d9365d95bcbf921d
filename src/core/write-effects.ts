/** What the database shows of the effects of a `$out` or `$merge`: never "rolled back" on the strength of a kill. */

import type { WriteReport } from '../domain/operation.js';
import type { CollectionInfo, Deployment, ExecutionEnd } from './ports.js';

export interface PreparedWrite {
  report: WriteReport;
  target: { db: string; coll: string };
  before: CollectionInfo;
}

/** Looks at the target before anything is written. @throws LeashError when the server does not answer */
export async function prepareWrite(deployment: Pick<Deployment, 'collectionInfo'>, report: WriteReport): Promise<PreparedWrite> {
  const dot = report.target.indexOf('.');
  const target = { db: report.target.slice(0, dot), coll: report.target.slice(dot + 1) };
  return { report, target, before: await deployment.collectionInfo(target) };
}

/** Puts one sentence about the effects into the report. Never rejects. */
export async function describeEffects(deployment: Pick<Deployment, 'collectionInfo'>, write: PreparedWrite, ended: ExecutionEnd): Promise<void> {
  write.report.effects = await effectsOf(deployment, write, ended);
}

async function effectsOf(deployment: Pick<Deployment, 'collectionInfo'>, { report, target, before }: PreparedWrite, ended: ExecutionEnd): Promise<string> {
  const name = report.target;
  if (ended.kind === 'not_sent') return `Nothing was sent, so nothing was written to ${name}.`;
  if (ended.kind === 'complete') return report.stage === '$out' ? `${name} holds the result now.` : `The result was merged into ${name}.`;
  if (ended.kind === 'no_reply' || ended.kind === 'given_up') return `The reply did not come: partial or full effects on ${name} are possible.`;
  if (report.stage === '$merge') return `What was merged into ${name} before the end stays there: partial effects are possible.`;
  const after = await deployment.collectionInfo(target).catch(() => null);
  if (after === null || after.type === 'unknown' || before.type === 'unknown') return `Whether ${name} was replaced could not be seen: full effects are possible.`;
  if (after.type === 'none' && before.type === 'none') return `${name} does not exist, as before: $out wrote nothing there.`;
  if (after.uuid !== undefined && after.uuid === before.uuid) return `${name} is the same collection as before (UUID ${after.uuid}): $out left it whole.`;
  return `${name} is another collection than before: full effects are possible.`;
}
