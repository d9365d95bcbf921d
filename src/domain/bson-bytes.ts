/** Reads BSON's primitives from bytes, because the library's classes lose what they cannot hold: far dates, key order of references, bytes that are not UTF-8. */

/** A text, and whether its bytes were valid UTF-8; those that were not are U+FFFD in it. */
export interface StoredText {
  text: string;
  isUtf8: boolean;
}

/** A byte order mark is a stored character like any other. */
const lenient = new TextDecoder('utf-8', { ignoreBOM: true });
const strict = new TextDecoder('utf-8', { ignoreBOM: true, fatal: true });

/** Up to here one character at a time is faster than a decoder. */
const maxShortText = 24;

export type BsonBytes = ReturnType<typeof readBytes>;

/** A cursor over `bson`; every function reads at the position and moves it on, and throws a `RangeError` past the end. */
export function readBytes(bson: Uint8Array) {
  const view = new DataView(bson.buffer, bson.byteOffset, bson.byteLength);
  let position = 0;

  function advance(length: number): number {
    const start = position;
    if (length < 0 || start + length > bson.length) throw new RangeError(`${length} bytes expected at ${start} of ${bson.length}`);
    position = start + length;
    return start;
  }

  return {
    position: () => position,
    uint8: () => view.getUint8(advance(1)),
    int8: () => view.getInt8(advance(1)),
    int32: () => view.getInt32(advance(4), true),
    uint32: () => view.getUint32(advance(4), true),
    int64: () => view.getBigInt64(advance(8), true),
    double: () => view.getFloat64(advance(8), true),
    take(length: number): Uint8Array {
      const start = advance(length);
      return bson.subarray(start, position);
    },
    /** A text that ends with a NUL: keys and regular expressions. */
    cstring(): StoredText {
      const end = bson.indexOf(0, position);
      if (end === -1) throw new RangeError(`no end of the text at ${position}`);
      const start = advance(end + 1 - position);
      return decoded(bson.subarray(start, end));
    },
    /** A text with its length before it, which may hold NULs. */
    string(): StoredText {
      const length = view.getInt32(advance(4), true);
      const start = advance(length);
      return decoded(bson.subarray(start, start + Math.max(length - 1, 0)));
    },
  };
}

function decoded(bytes: Uint8Array): StoredText {
  const text = shortAscii(bytes) ?? lenient.decode(bytes);
  // U+FFFD may also be what is stored, so its presence is only a reason to look closer.
  return { text, isUtf8: !text.includes('\ufffd') || decodesStrictly(bytes) };
}

function shortAscii(bytes: Uint8Array): string | undefined {
  if (bytes.length > maxShortText) return undefined;
  let text = '';
  for (const byte of bytes) {
    if (byte > 0x7f) return undefined;
    text += String.fromCharCode(byte);
  }
  return text;
}

function decodesStrictly(bytes: Uint8Array): boolean {
  try {
    strict.decode(bytes);
    return true;
  } catch {
    return false;
  }
}
