/** The one reply of a command as bytes: what is stored in the database is never read as an instruction to a library on its way. */

import { BSON, type Document } from 'mongodb';

/**
 * The driver decodes only the outermost level so. Deeper down a stored key such as `_bsontype` could not be written
 * again, the order of keys would be lost, and bytes that are no text would make an error of the reply.
 */
export const asSent = { raw: true, promoteValues: false, promoteLongs: false, promoteBuffers: false, bsonRegExp: true, enableUtf8Validation: false };

/** Of the session and the cluster's clock: no part of what was asked for. */
const wireFields: ReadonlySet<string> = new Set(['$clusterTime', 'operationTime', 'lsid', '$configTime', '$topologyTime']);

const types = { document: 0x03, array: 0x04 } as const;

type Redact = (text: string) => string;

/**
 * @param reply as decoded with {@link asSent}: documents within it are bytes, other values are of their BSON classes
 * @param redact goes over each text that does not stand in a document within it
 */
export function replyBytes(reply: Document, redact: Redact = (text) => text): Uint8Array {
  return documentOf(Object.entries(reply).filter(([name]) => !wireFields.has(name)), redact);
}

function documentOf(entries: readonly [string, unknown][], redact: Redact): Buffer {
  const body = Buffer.concat(entries.map(([key, value]) => elementOf(key, value, redact)));
  const size = Buffer.alloc(4);
  size.writeInt32LE(body.length + 5);
  return Buffer.concat([size, body, Buffer.from([0])]);
}

function elementOf(key: string, value: unknown, redact: Redact): Uint8Array {
  if (value instanceof Uint8Array) return Buffer.concat([Buffer.from([types.document]), cString(key), value]);
  if (Array.isArray(value)) return Buffer.concat([Buffer.from([types.array]), cString(key), documentOf(Object.entries(value), redact)]);
  // A document of this one value, without its size and its end.
  return BSON.serialize({ [key]: typeof value === 'string' ? redact(value) : value }, { ignoreUndefined: false }).subarray(4, -1);
}

function cString(text: string): Buffer {
  return Buffer.from(`${text}\0`);
}
