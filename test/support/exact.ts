/** Compares documents of an answer with what was stored, value by value with types kept, without the product's own reading of Extended JSON. */

import { type Document, EJSON } from 'bson';

/** BSON values as plain canonical Extended JSON: equal when value and type are equal. The order of keys is left to `toEqual`, which ignores it. */
export function canonical(documents: unknown): unknown {
  return JSON.parse(EJSON.stringify(documents, { relaxed: false }));
}

/** Documents of an answer, read with their types by the driver's own library. */
export function readCanonical(documents: unknown): Document[] {
  return EJSON.parse(JSON.stringify(documents), { relaxed: false }) as Document[];
}
