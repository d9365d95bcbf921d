/** The comment that stands on every operation in the database: who runs it, and the id that finds and kills it. */

import { createHash } from 'node:crypto';
import { encodeId, idLengths } from './ids.js';

/** A JSON-RPC request id: `1` and `"1"` are two different ids. */
export type RequestId = string | number;

export interface Tag {
  instance: string;
  operationId: string;
  principal: string;
  session: string;
  /** `r` reads only, `w` writes: what the end of an operation that another process ran may be called depends on it. */
  kind: 'r' | 'w';
  /** The typed request id as it stands in the tag, see {@link encodeRequestId}. */
  request: string;
  /** The caller's own comment, cut; empty when there is none. */
  own: string;
}

const prefix = 'mongo-leash.1.';
const maxRequestBytes = 32;
const maxOwnChars = 64;
const id = (length: number) => `([0-9a-z]{${length}})`;
const pattern = new RegExp(
  `^mongo-leash\\.1\\.${id(idLengths.instance)}\\.${id(idLengths.operation)}\\.${id(idLengths.principal)}\\.${id(idLengths.session)}\\.([rw])\\.([A-Za-z0-9_:%-]+)(?: ([^]*))?$`,
);

/**
 * A request id with its type, safe inside a tag: `n:1`, `s:abc`, escaped like a URL.
 * One that would take more than 32 bytes stands as the hash of the whole: `h:…`.
 */
export function encodeRequestId(requestId: RequestId): string {
  const type = typeof requestId === 'number' ? 'n' : 's';
  // A client chooses the id, and encodeURIComponent throws on half a surrogate pair.
  const text = String(requestId).toWellFormed();
  const escaped = encodeURIComponent(text).replace(/[.!~*'()]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  if (escaped.length > maxRequestBytes) {
    return `h:${createHash('sha256').update(`${type}:${text}`).digest('hex').slice(0, 24)}`;
  }
  return `${type}:${escaped}`;
}

/** The request id of a tag as the client chose it; one that stands as a hash stays so. */
export function decodeRequestId(request: string): RequestId {
  const text = request.slice(2);
  if (request.startsWith('n:')) return Number(decodeURIComponent(text));
  return request.startsWith('s:') ? decodeURIComponent(text) : request;
}

const maxKnownHashes = 1_000;
const knownHashes = new Map<string, string>();

/** A principal's short hash: enough to tell principals apart on the database without naming a person there. */
export function principalHash(principal: string): string {
  const known = knownHashes.get(principal);
  if (known !== undefined) return known;
  const hash = encodeId(createHash('sha256').update(`principal:${principal}`).digest(), idLengths.principal);
  if (knownHashes.size >= maxKnownHashes) knownHashes.clear();
  knownHashes.set(principal, hash);
  return hash;
}

/** The comment's text. Its head, up to the operation id, has a fixed length. */
export function formatTag(tag: Tag): string {
  const head = `${prefix}${tag.instance}.${tag.operationId}.${tag.principal}.${tag.session}.${tag.kind}.${tag.request}`;
  const own = cleanOwn(tag.own);
  return own === '' ? head : `${head} ${own}`;
}

/** A caller's comment as a tag can carry it: one line of well-formed text, cut at 64 characters. */
function cleanOwn(own: string): string {
  const line = own.toWellFormed().replace(/[\u0000-\u001f\u007f]+/g, ' ').trim();
  return [...line].slice(0, maxOwnChars).join('');
}

/** Reads a comment back; `null` for everything that is not a tag of ours. */
export function parseTag(comment: unknown): Tag | null {
  if (typeof comment !== 'string') return null;
  const match = pattern.exec(comment);
  if (match === null) return null;
  const [, instance = '', operationId = '', principal = '', session = '', kind, request = '', own = ''] = match;
  return { instance, operationId, principal, session, kind: kind === 'w' ? 'w' : 'r', request, own };
}

/** The source of an anchored regular expression that begins every tag of ours. */
export const anyTagPattern = '^mongo-leash\\.1\\.';

/** The same for the whole head: what only begins like a tag is none. */
export const tagHeadPattern = `${anyTagPattern}${[idLengths.instance, idLengths.operation, idLengths.principal, idLengths.session].map((length) => `[0-9a-z]{${length}}\\.`).join('')}[rw]\\.`;
