/** Fits documents into an answer of limited size, whole ones as long as they fit and the beginning of one that never would. */

import { childPath } from './argument-path.js';
import { firstNotes, renderDocument, type RenderOptions } from './ejson-out-document.js';
import type { JsonValue } from './ejson-out-values.js';

export { renderDocument, type RenderedDocument, type RenderOptions } from './ejson-out-document.js';
export type { JsonValue } from './ejson-out-values.js';

const maxNotes = 20;

export interface DocumentsToJsonOptions extends RenderOptions {
  /** Limit for the documents' JSON text, in UTF-16 units. */
  maxChars: number;
}

export interface DocumentsAsJson {
  /** Whole documents from the first on; fewer than were given when the limit was reached. */
  documents: JsonValue[];
  /** The length of their JSON text with the commas between them, or of `partial.json`, in UTF-16 units. */
  chars: number;
  /** At most 20, each starting with `documents[<index>]`. */
  notes: string[];
  /** The beginning of the first document, which does not fit by itself; `documents` is empty then. */
  partial?: {
    /** The index among the documents given. */
    position: number;
    /** Its size in BSON. */
    bytes: number;
    /** Its JSON text up to the limit, never ending inside a surrogate pair. */
    json: string;
  };
}

/** The JSON text of a rendered value; own `__proto__` keys are in it. */
export function renderedText(value: JsonValue): string {
  return JSON.stringify(value);
}

/**
 * Renders documents (see `renderDocument`) while their JSON stays within `maxChars`.
 *
 * @throws LeashError `internal` when bytes are not a BSON document.
 */
export function documentsToJson(docs: readonly Uint8Array[], options: DocumentsToJsonOptions): DocumentsAsJson {
  const documents: JsonValue[] = [];
  const notes: string[] = [];
  let chars = 0;
  for (const [position, bson] of docs.entries()) {
    const rendered = renderDocument(bson, options);
    const text = renderedText(rendered.value);
    const total = chars + text.length + (position === 0 ? 0 : 1);
    if (total > options.maxChars && position > 0) break;
    const place = childPath('documents', position);
    notes.push(...rendered.notes.map((note) => (note.startsWith('[') ? `${place}${note}` : `${place}.${note}`)));
    if (total > options.maxChars) {
      const json = cutText(text, options.maxChars);
      return { documents, chars: json.length, notes, partial: { position, bytes: bson.byteLength, json } };
    }
    documents.push(rendered.value);
    chars = total;
  }
  return { documents, chars, notes: firstNotes(notes, maxNotes) };
}

function cutText(text: string, maxChars: number): string {
  const cut = text.slice(0, maxChars);
  return /[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut;
}
