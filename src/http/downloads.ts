/** The file of an export over HTTP: for its principal, or, where nobody is authenticated, for whoever holds its link. */

import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Exports } from '../core/exports.js';
import type { Leash } from '../core/leash.js';
import { LeashError } from '../domain/errors.js';
import { mediaTypes } from '../domain/export-text.js';
import { isOperationId } from '../domain/ids.js';
import { hasScope } from '../domain/scope.js';
import type { Identity } from './auth.js';
import { rejection } from './rejection.js';

export interface Downloads {
  /** The address of an export's file. */
  addressOf(operationId: string): string;
  /** The operation that this path is for; null when it is for no download. */
  match(pathname: string): string | null;
  /** @param identity null without authentication */
  handle(request: Request, operationId: string, identity: Identity | null): Promise<Response>;
}

export interface DownloadsDeps {
  leash: Pick<Leash, 'status'>;
  exports: Pick<Exports, 'stream'>;
  /** The address of the MCP endpoint, as clients know it. */
  resource: () => URL;
  authenticated: boolean;
}

const linkBytes = 24;

export function createDownloads({ leash, exports, resource, authenticated }: DownloadsDeps): Downloads {
  // A link is good for as long as this process, like the principals of callers whom nothing else tells apart.
  const secret = randomBytes(32);
  const keyOf = (operationId: string) => createHmac('sha256', secret).update(operationId).digest().subarray(0, linkBytes);

  function holdsKey(request: Request, operationId: string): boolean {
    const given = Buffer.from(new URL(request.url).searchParams.get('key') ?? '', 'base64url');
    return given.byteLength === linkBytes && timingSafeEqual(given, keyOf(operationId));
  }

  /** What others have is not there, in the same words. */
  function notThere(message = 'There is no such file.'): Response {
    return rejection(404, message);
  }

  return {
    addressOf(operationId) {
      const url = new URL(`operations/${operationId}/result`, resource());
      if (!authenticated) url.searchParams.set('key', keyOf(operationId).toString('base64url'));
      return url.href;
    },
    match(pathname) {
      const id = /^\/operations\/([^/]+)\/result$/.exec(pathname)?.[1];
      return id !== undefined && isOperationId(id) ? id : null;
    },
    async handle(request, operationId, identity) {
      if (request.method !== 'GET' && request.method !== 'HEAD') return rejection(405, 'A file is read with GET.', { Allow: 'GET, HEAD' });
      if (identity === null && !holdsKey(request, operationId)) return notThere();
      // Whoever holds the link of one operation may see that one.
      const admin = identity === null || hasScope(identity.scopes, 'leash:admin');
      const caller = { principal: identity?.principal ?? '', admin, session: '', requestId: '', signal: request.signal };
      try {
        const { record } = await leash.status({ operationId }, caller, 0);
        const { export: report, outcome } = record;
        if (report === null) return notThere();
        if (outcome === null) return rejection(409, 'The export has not ended.', { 'Retry-After': '5' });
        let range: Range | null | undefined;
        const found = report.file === null ? null : await exports.stream(report.file, (size) => (range = rangeOf(request.headers.get('range'), size)) ?? null);
        if (found === null || report.file === null) return notThere('The export has no file (any more).');
        const headers = { 'Accept-Ranges': 'bytes', 'Cache-Control': 'private, no-store', 'X-Content-Type-Options': 'nosniff' };
        if (range === null) return rejection(416, `The file has ${found.size} bytes.`, { ...headers, 'Content-Range': `bytes */${found.size}` });
        if (request.method === 'HEAD') await found.body.cancel();
        const isPart = range !== undefined && range.asked;
        return new Response(request.method === 'HEAD' ? null : found.body, {
          status: isPart ? 206 : 200,
          headers: {
            ...headers,
            'Content-Type': `${mediaTypes[report.format]}; charset=utf-8`,
            'Content-Length': String(found.end - found.start + 1),
            'Content-Disposition': `attachment; filename="${report.file}"`,
            ...(isPart ? { 'Content-Range': `bytes ${found.start}-${found.end}/${found.size}` } : {}),
          },
        });
      } catch (error) {
        if (!(error instanceof LeashError)) throw error;
        if (error.code === 'not_found') return notThere();
        return rejection(error.code === 'expired' ? 410 : 503, error.message);
      }
    },
  };
}

interface Range {
  start: number;
  end: number;
  asked: boolean;
}

/** RFC 9110, 14.2: one range of bytes; several, and what cannot be read, are answered with the whole. null when it lies behind the end. */
function rangeOf(header: string | null, size: number): Range | null {
  const whole = { start: 0, end: size - 1, asked: false };
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '') ?? [];
  if (first === '' && last === '') return whole;
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const end = first === '' || last === '' ? size - 1 : Math.min(Number(last), size - 1);
  return start > end ? null : { start, end, asked: true };
}
