/** Stores bytes as documents that no driver would write: BSON by hand, sent by hand in one OP_MSG. */

import { connect } from 'node:net';
import { BSON, type Document } from 'bson';

const int32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes;
};

/** One element: a type byte, a key as text or bytes, and the bytes of its value. */
export const element = (type: number, key: string | Buffer, value: Uint8Array): Buffer => Buffer.concat([Buffer.from([type]), Buffer.from(key), Buffer.from([0]), value]);

/** A document of these elements. */
export function rawDocument(...elements: Buffer[]): Buffer {
  const body = Buffer.concat([...elements, Buffer.from([0])]);
  return Buffer.concat([int32(body.length + 4), body]);
}

export const rawInt = (value: number): Buffer => int32(value);
export const rawText = (text: string | Buffer): Buffer => Buffer.concat([int32(Buffer.byteLength(text) + 1), Buffer.from(text), Buffer.from([0])]);

/**
 * Inserts them as they are.
 * @throws Error when the server does not take them
 */
export async function insertRaw(host: string, database: string, collection: string, documents: Uint8Array[]): Promise<void> {
  const [name = '', port] = host.split(':');
  const sequence = Buffer.concat([Buffer.from('documents\0'), ...documents]);
  const payload = Buffer.concat([int32(0), Buffer.from([0]), BSON.serialize({ insert: collection, $db: database }), Buffer.from([1]), int32(sequence.length + 4), sequence]);
  const opMsg = 2013;
  const message = Buffer.concat([int32(payload.length + 16), int32(1), int32(0), int32(opMsg), payload]);
  const reply = await new Promise<Document>((resolve, reject) => {
    const socket = connect(Number(port), name, () => socket.write(message));
    let received = Buffer.alloc(0);
    socket.on('error', reject);
    socket.on('data', (chunk) => {
      received = Buffer.concat([received, chunk]);
      if (received.length < 16 || received.length < received.readInt32LE(0)) return;
      socket.destroy();
      // A header of 16 bytes, flags of 4, and the kind of the section.
      resolve(BSON.deserialize(received.subarray(21)));
    });
  });
  if (reply['ok'] !== 1 || reply['n'] !== documents.length) throw new Error(`the server did not take the documents: ${JSON.stringify(reply)}`);
}
