/** Reads arguments that arrive as JSON text, because small models send a pipeline as one string. */

import { badArgument, childPath, shown } from './argument-path.js';

interface Container {
  path: string;
  /** The keys of an object so far; `undefined` for an array. */
  keys: Set<string> | undefined;
  /** Where the next value belongs. */
  place: string | number;
}

/**
 * The value of a JSON text, for {@link parseArgument} to check further.
 * A key given twice in one object is an error: `JSON.parse` would keep the last and drop the first.
 *
 * @throws LeashError `bad_argument` when the text is not JSON or gives a key twice.
 */
export function jsonTextToValue(text: string, path: string): unknown {
  const value = parsed(text, path);
  checkKeysOnce(text, path);
  return value;
}

function parsed(text: string, path: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    const reason = (cause as Error).message.slice(0, 120);
    throw badArgument(path, `the text is not JSON (${reason}). Send a JSON value: keys and strings in double quotes, an id as {"$oid": "…"}.`, cause);
  }
}

/** Relies on the text being JSON: only then is a string before a colon a key. */
function checkKeysOnce(text: string, path: string): void {
  const open: Container[] = [];
  const structure = /["{}[\]:,]/g;
  let key = '';
  for (let found = structure.exec(text); found !== null; found = structure.exec(text)) {
    const container = open.at(-1);
    const [mark] = found;
    if (mark === '"') {
      structure.lastIndex = endOfString(text, found.index);
      key = text.slice(found.index, structure.lastIndex);
    } else if (mark === '{' || mark === '[') {
      const containerPath = container === undefined ? path : childPath(container.path, container.place);
      open.push({ path: containerPath, keys: mark === '{' ? new Set() : undefined, place: mark === '{' ? '' : 0 });
    } else if (mark === '}' || mark === ']') {
      open.pop();
    } else if (mark === ',' && typeof container?.place === 'number') {
      container.place += 1;
    } else if (mark === ':' && container?.keys !== undefined) {
      addKey(JSON.parse(key) as string, container.keys, container);
    }
  }
}

function addKey(key: string, keys: Set<string>, container: Container): void {
  if (keys.has(key)) {
    throw badArgument(childPath(container.path, key), `the key ${shown(key)} is given twice. Write it once, or join both conditions with $and.`);
  }
  keys.add(key);
  container.place = key;
}

/** The index after the closing quote. By hand, since a pattern for it overflows the stack on long strings. */
function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end + 1;
}

function isEscaped(text: string, index: number): boolean {
  let before = index;
  while (text[before - 1] === '\\') before -= 1;
  return (index - before) % 2 === 1;
}
