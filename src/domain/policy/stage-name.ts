/** Decides by its name whether a stage may run at all. */

import { nearestName } from './nearest.js';
import { badArgument, quote, refused, type Place } from './place.js';
import { liftedBy, type PolicySettings } from './settings.js';
import { isWriteStage, readStages, refusalOf } from './stages.js';

/**
 * Lets known read stages, the operator's extra ones and (with `allowWrites`) write stages pass. Where a write
 * stage may stand is not judged here.
 * @throws LeashError `bad_argument` for a misspelt name, `refused_by_policy` for every other unknown or refused one
 */
export function checkStageName(name: string, place: Place, settings: PolicySettings): void {
  if (isWriteStage(name)) return checkWrites(name, place, settings);
  checkRefusal(name.startsWith('_internal') ? `$${name}` : name, place, settings);
  const isLifted = refusalOf(name) !== null;
  if (isLifted || readStages.has(name) || (name.startsWith('$') && settings.extraStages.includes(name))) return;
  throw unknownStage(name, place, settings);
}

/** @throws LeashError `refused_by_policy` unless writes are allowed */
export function checkWrites(name: string, place: Place, settings: PolicySettings): void {
  if (settings.allowWrites) return;
  throw refused(
    place,
    `${name} writes to the database, and this server only reads`,
    `Leave ${name} out, or ask the operator of this server to start it with ${liftedBy.allowWrites}.`,
  );
}

/** @throws LeashError `refused_by_policy` for names that {@link refusalOf} knows, unless lifted by `allowInternal` */
export function checkRefusal(name: string, place: Place, settings: PolicySettings): void {
  const refusal = refusalOf(name);
  if (refusal === null || (refusal.liftable && settings.allowInternal)) return;
  const next = refusal.liftable
    ? `Leave it out, or ask the operator of this server to start it with ${liftedBy.allowInternal}.`
    : 'Leave it out: no option allows it.';
  throw refused(place, `${quote(name)} is refused: ${refusal.reason}`, next);
}

function unknownStage(name: string, place: Place, settings: PolicySettings) {
  // The `$` is part of the name, but people leave it out.
  const candidates = [...readStages, ...settings.extraStages, ...(settings.allowWrites ? ['$out', '$merge'] : [])];
  const meant = nearestName(name.startsWith('$') ? name : `$${name}`, candidates);
  const suggestion = meant === null ? '' : ` (did you mean ${meant}?)`;
  if (!name.startsWith('$')) {
    return badArgument(place, `a stage's name starts with "$", and ${quote(name)} does not${suggestion}`);
  }
  const why = `${quote(name)} is no stage that this server knows, and only known read stages are allowed${suggestion}`;
  const next = `Use a known stage, or ask the operator of this server to add the name with ${liftedBy.extraStages}.`;
  return meant === null ? refused(place, why, next) : badArgument(place, why, next);
}
