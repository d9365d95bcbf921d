/** Joins the parts of a server over HTTP around an engine. */

import type { Config } from './config/options.js';
import type { Log } from './core/ports.js';
import { idLengths } from './domain/ids.js';
import { createApp, mcpPath } from './http/app.js';
import { createAuthenticator } from './http/auth.js';
import { createDownloads } from './http/downloads.js';
import { createEventLog } from './http/events.js';
import type { Exposure } from './http/exposure.js';
import { createHealth } from './http/health.js';
import { createModern } from './http/modern.js';
import { createRateLimit } from './http/rate-limit.js';
import { createHttpServer } from './http/server.js';
import { createSessions } from './http/sessions.js';
import { pollIntervalMs } from './mcp/tasks/operations.js';
import type { Wired } from './wire.js';

export { checkExposure } from './http/exposure.js';

export interface HttpService {
  /** @returns the address of the MCP endpoint as it listens; @throws the system's error when the address cannot be had */
  listen(): Promise<string>;
  /** No new work from now on; what is under way goes on. */
  refuseWork(): void;
  /** Lets answers leave for up to so many milliseconds, and ends every session and connection. */
  close(drainMs: number): Promise<void>;
}

/** How often an open stream says that it lives, in milliseconds: what stands between drops silent ones, often after a minute. */
const keepAliveMs = 15_000;

export function wireHttp(wired: Wired, config: Config, exposure: Exposure, log: Log): HttpService {
  const { leash, clock, redact, newId, createServer, deployment, tools, exports } = wired;
  const { maxBodyBytes, receiveMs } = config;
  let listeningOn = config.port;
  const sessions = createSessions({
    createServer,
    leash,
    events: createEventLog(),
    clock,
    log,
    newId,
    limits: { maxSessions: config.maxSessions, graceMs: config.sessionGraceMs, idleMs: config.sessionIdleMs, keepAliveMs, maxBodyBytes },
  });
  const modern = createModern({ createServer, leash, clock, pollIntervalMs, newMark: () => newId(idLengths.session), maxBodyBytes, keepAliveMs, log, redact });
  const authenticator = createAuthenticator({ tokens: exposure.tokens, jwt: exposure.jwt, resource: () => exposure.resource(listeningOn), clock, log });
  const downloads = createDownloads({ leash, exports, resource: () => exposure.resource(listeningOn), authenticated: authenticator.required });
  wired.offerDownloads(downloads.addressOf);
  const app = createApp({ allowed: exposure.allowed, authenticator, rateLimit: createRateLimit(config.maxRequestsPerMinute), health: createHealth(deployment, clock), sessions, modern, downloads, tools, log });
  const server = createHttpServer({ app, tls: exposure.tls, maxBodyBytes, receiveMs, log, redact });

  return {
    async listen() {
      listeningOn = await server.listen(config.host, config.port);
      const host = config.host.includes(':') ? `[${config.host}]` : config.host;
      return `${exposure.tls === undefined ? 'http' : 'https'}://${host}:${listeningOn}${mcpPath}`;
    },
    refuseWork: () => { app.refuseWork(); },
    async close(drainMs) {
      await server.close(drainMs);
      await Promise.all([sessions.close(), modern.close()]);
    },
  };
}
