/** What must not stand anywhere inside a value: JavaScript, the server's internals, and stages where no stage belongs. */

import { badArgument, refused, type Place } from './place.js';
import { liftedBy, type PolicySettings } from './settings.js';
import { checkRefusal, checkWrites } from './stage-name.js';
import { isInternal, isWriteStage, reachingStages } from './stages.js';

/** Called for each key, and each BSON Code value, that the server may take for more than data. */
export interface Watch {
  key(name: string, place: Place): void;
  code(place: Place): void;
}

/** For data, where keys mean nothing. */
export const noWatch: Watch = { key: () => {}, code: () => {} };

/** For expressions, filters, projections and updates: their keys are matched exactly, so `"a.$function"` is a field. */
export function expressionWatch(settings: PolicySettings): Watch {
  const javascript = (place: Place): void => {
    if (!settings.allowJs) throw javascriptRefused(place);
  };
  return {
    key: (name, place) => {
      if (isJavaScript(name)) javascript(place);
      else if (isInternal(name)) checkRefusal(name, place, settings);
    },
    code: javascript,
  };
}

/**
 * For what stages hold. Stages are checked where pipelines are expected; one anywhere else is either a mistake or
 * a pipeline in an option that is not known here, and does not pass unchecked.
 */
export function stageWatch(settings: PolicySettings): Watch {
  const { key, code } = expressionWatch(settings);
  return {
    key: (name, place) => {
      if (isWriteStage(name)) {
        checkWrites(name, place, settings);
        throw writesTooEarly(name, place);
      }
      if (reachingStages.has(name)) throw badArgument(place, `the stage ${name} has no meaning here`);
      if (isJavaScript(name)) key(name, place);
      else checkRefusal(name, place, settings);
    },
    code,
  };
}

/** `$_internalJsEmit` and `$_internalJsReduce` are what mapReduce becomes; 6.0.5 runs them for anyone. */
function isJavaScript(name: string): boolean {
  return name === '$function' || name === '$accumulator' || name === '$where' || name.startsWith('$_internalJs');
}

/** The server's rule (40601 and its kin): a write stage ends the whole pipeline, and stands nowhere else. */
export function writesTooEarly(name: string, place: Place) {
  return badArgument(place, `${name} can only be the last stage of the whole pipeline`);
}

function javascriptRefused(place: Place) {
  return refused(
    place,
    'server-side JavaScript is refused: the database runs it, and its own time limit does not stop it',
    `Use aggregation expressions, or ask the operator of this server to start it with ${liftedBy.allowJs}.`,
  );
}
