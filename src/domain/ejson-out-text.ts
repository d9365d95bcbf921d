/** Writes stored documents as the text of Extended JSON straight from their bytes, for files: in text every key keeps its place, and one that is stored twice stands there twice. */

import { childPath } from './argument-path.js';
import { readBytes } from './bson-bytes.js';
import { type RenderOptions, type Walk, noteName, readScalar, readText } from './ejson-out-document.js';
import { LeashError } from './errors.js';

/**
 * One BSON document as one line of text; values as `renderDocument` shows them.
 *
 * @param note told of what the text alone would let a reader misunderstand, beginning with the path of its place
 * @throws LeashError `internal` when the bytes are not one whole BSON document.
 */
export function documentText(bson: Uint8Array, { canonical }: RenderOptions, note: (problem: string) => void): string {
  const path: (string | number)[] = [];
  const bytes = readBytes(bson);
  const walk: Walk = { bytes, canonical, path, note: (problem) => { note(`${path.reduce<string>(childPath, '')}: ${problem}`); } };
  try {
    const text = fieldsText(walk);
    if (bytes.position() !== bson.byteLength) throw new RangeError(`the document ends at ${bytes.position()} of ${bson.byteLength}`);
    return text;
  } catch (cause) {
    if (!(cause instanceof RangeError)) throw cause;
    throw new LeashError('internal', `A document of the database cannot be read as BSON: ${cause.message}.`, { cause });
  }
}

function fieldsText(walk: Walk): string {
  let text = '';
  eachValue(walk, (type) => {
    const key = walk.bytes.cstring();
    walk.path.push(key.text);
    noteName(key, walk);
    text += `${text === '' ? '' : ','}${JSON.stringify(key.text)}:${valueText(type, walk)}`;
  });
  return `{${text}}`;
}

function itemsText(walk: Walk): string {
  let text = '';
  let count = 0;
  eachValue(walk, (type) => {
    walk.bytes.cstring();
    walk.path.push(count);
    text += `${count === 0 ? '' : ','}${valueText(type, walk)}`;
    count += 1;
  });
  return `[${text}]`;
}

/** Every value up to the end of its container; `take` reads one with its key, and puts its place on the path. */
function eachValue({ bytes, path }: Walk, take: (type: number) => void): void {
  const end = bytes.position() + bytes.int32();
  for (let type = bytes.int8(); type !== 0; type = bytes.int8()) {
    take(type);
    path.pop();
  }
  if (bytes.position() !== end) throw new RangeError(`a document ends at ${bytes.position()}, not at ${end}`);
}

function valueText(type: number, walk: Walk): string {
  switch (type) {
    case 0x03:
      return fieldsText(walk);
    case 0x04:
      return itemsText(walk);
    case 0x0f:
      return codeWithScopeText(walk);
    default:
      return JSON.stringify(readScalar(type, walk));
  }
}

function codeWithScopeText(walk: Walk): string {
  // The length of both together: each has its own.
  walk.bytes.int32();
  const code = JSON.stringify(readText(walk.bytes.string(), walk));
  walk.path.push('$scope');
  const scope = fieldsText(walk);
  walk.path.pop();
  return `{"$code":${code},"$scope":${scope}}`;
}
