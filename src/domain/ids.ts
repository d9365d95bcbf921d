/** Ids as they stand in tags: unguessable, of fixed length, and safe in a shell, a regular expression and a URL. */

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz';

/** Lengths in characters; each character holds 5 bits. */
export const idLengths = { operation: 26, instance: 10, principal: 8, session: 6, connection: 12 } as const;

const patterns = {
  operation: new RegExp(`^[${alphabet}]{${idLengths.operation}}$`),
};

/**
 * Turns random bytes (or a hash) into an id of Crockford's base 32, lower case.
 * @param bytes at least as many bytes as `length`
 */
export function encodeId(bytes: Uint8Array, length: number): string {
  if (bytes.length < length) throw new Error(`an id of ${length} characters needs as many bytes, got ${bytes.length}`);
  let id = '';
  for (let i = 0; i < length; i += 1) id += alphabet.charAt((bytes[i] ?? 0) & 31);
  return id;
}

/** Whether the text has the form of an operation id; says nothing about whether one exists. */
export function isOperationId(text: string): boolean {
  return patterns.operation.test(text);
}
