/** Checks on text that BSON or the server would otherwise replace or refuse without naming the place. */

import { badArgument, shown } from './argument-path.js';

const loneSurrogate = /\p{Surrogate}/u;

/** What the server takes (6.0.5; `u` changes nothing there). `bson` lets `l` through, the server refuses it with 51108. */
const regexFlags = 'imsux';

/** Gives the text back; a lone surrogate, which UTF-8 cannot hold and `bson` sends as U+FFFD, is a `bad_argument`. */
export function checkText(text: string, path: string): string {
  if (loneSurrogate.test(text)) {
    throw badArgument(path, 'half of a surrogate pair is not a character. Write the whole pair (as "\\ud83d\\ude00"), or leave it out.');
  }
  return text;
}

/** Throws a `bad_argument` that names the first flag of a regular expression that the server does not have. */
export function checkRegexFlags(flags: string, path: string): void {
  for (const flag of flags) {
    if (!regexFlags.includes(flag)) {
      throw badArgument(path, `there is no regular expression flag ${shown(flag)}. Leave it out: the flags are i, m, s, u and x.`);
    }
  }
}
