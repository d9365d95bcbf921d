/** A certificate for this machine, made on the spot: nothing that could be mistaken for a secret lies in the repository. */

import { createSign, generateKeyPairSync } from 'node:crypto';

/** DER (X.690): a tag, a length, and what is in it. */
function der(tag: number, ...parts: Uint8Array[]): Buffer {
  const body = Buffer.concat(parts);
  const length = body.length < 128 ? [body.length] : body.length < 256 ? [0x81, body.length] : [0x82, body.length >> 8, body.length & 255];
  return Buffer.concat([Buffer.from([tag, ...length]), body]);
}

const sequence = (...parts: Uint8Array[]) => der(0x30, ...parts);
const hex = (text: string) => Buffer.from(text, 'hex');
const octets = (part: Uint8Array) => der(0x04, part);
const time = (date: Date) => der(0x17, Buffer.from(`${date.toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`));

const ecdsaWithSha256 = sequence(der(0x06, hex('2a8648ce3d040302')));
const commonName = der(0x06, hex('550403'));
const subjectAltName = der(0x06, hex('551d11'));
const basicConstraints = der(0x06, hex('551d13'));
const isTrue = der(0x01, hex('ff'));

/** Signed by itself, for `localhost` and 127.0.0.1, good for a day. Both are PEM. */
export function createCertificate(): { cert: string; key: string } {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const dayMs = 86_400_000;
  const name = sequence(der(0x31, sequence(commonName, der(0x0c, Buffer.from('localhost')))));
  const names = sequence(der(0x82, Buffer.from('localhost')), der(0x87, Buffer.from([127, 0, 0, 1])));
  const extensions = sequence(sequence(subjectAltName, octets(names)), sequence(basicConstraints, isTrue, octets(sequence(isTrue))));
  const toSign = sequence(
    der(0xa0, der(0x02, hex('02'))),
    der(0x02, Buffer.from([1])),
    ecdsaWithSha256,
    name,
    sequence(time(new Date(Date.now() - dayMs)), time(new Date(Date.now() + dayMs))),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(0xa3, extensions),
  );
  const signature = createSign('sha256').update(toSign).sign(privateKey);
  const certificate = sequence(toSign, ecdsaWithSha256, der(0x03, hex('00'), signature));
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${certificate.toString('base64').replace(/(.{64})/g, '$1\n')}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
  };
}
