/** `mongo-leash serve`: MCP over stdio or HTTP until it is told to end, and then a shutdown that proves what it says. */

import { setTimeout as delay } from 'node:timers/promises';
import { ConfigError, type LoadedConfig } from '../config/load.js';
import type { Log } from '../core/ports.js';
import type { ShutdownReport } from '../core/shutdown.js';
import { messageOf } from '../domain/errors.js';
import { type Wired, wire } from '../wire.js';
import { createLogger, writeLines } from './log.js';
import { endSignals } from './signals.js';
import { usageExitCode } from './usage.js';

/** How long the report and the close of the connections may take after the shutdown, in milliseconds. */
const closeMs = 500;
/** The same with an embedded database, which ends in an orderly way when there is time for it. */
const embeddedStopMs = 3_000;

/** What serves the clients, and how it comes to its end. */
export interface Service {
  /** Settles when there is time for what listing the tools has no need of. */
  greeted: Promise<void>;
  /** From now on no new work is taken. */
  refuseWork(): void;
  /** After the kills: what is under way may leave. */
  close(): Promise<void>;
}

/**
 * Serves until it is told to end; ends the process with 0 only when all is proven stopped.
 * @param refusalOf what to tell of an error of the configuration that shows only now; null for any other error
 */
export async function serve({ config, warnings }: LoadedConfig, version: string, refusalOf: (error: unknown) => string | null): Promise<void> {
  const log = createLogger(config.logLevel);
  for (const warning of warnings) log.warn(warning);
  const start = config.http ? (await import('./serve-http.js')).prepareHttp(config, log) : (await import('./serve-stdio.js')).serveOverStdio;
  let stopEmbedded = () => Promise.resolve();
  if (config.demo) {
    log.info('starting an in-memory replica set with sample data');
    const { startEmbedded } = await import('./embedded.js');
    const embedded = await startEmbedded().catch((error: unknown) => {
      throw new ConfigError(`--demo: no database could be started: ${messageOf(error)}. Set MONGOMS_SYSTEM_BINARY to the path of a mongod.`);
    });
    stopEmbedded = () => embedded.stop();
    config.uri = embedded.uri;
  }
  const wired = wire(config, version, log);
  // A client over stdio waits for its tools, and the driver takes as long to load as all that they need.
  if (config.http) await wired.load();

  let service: Service | null = null;
  let ending = false;
  let reading: Promise<void> | null = null;
  /** The driver reads the connection strings whole: one that it refuses ends the process. */
  const readConnections = () => (reading ??= wired.load().catch((error: unknown) => {
    const refusal = refusalOf(error);
    if (refusal === null) throw error;
    process.stderr.write(`mongo-leash: ${refusal}\n`);
    process.exitCode = usageExitCode;
    end('a connection string that cannot be used');
  }));
  const end = (reason: string) => {
    if (ending) return;
    ending = true;
    service?.refuseWork();
    // The kills go to the wire in this very call; everything else can wait.
    const shutdown = wired.leash.shutdown(config.shutdownMs);
    log.info({ reason }, 'shutting down');
    void shutdown.then(async (report) => {
      await readConnections().catch(() => undefined);
      await service?.close().catch(() => undefined);
      wired.exports.close();
      const tidied = Promise.all([wired.deployment.close(), wired.store.close()]).then(stopEmbedded).catch(() => undefined);
      // A database that does not answer must not hold up the end: what is left open closes with the process.
      await Promise.race([Promise.all([writeReport(reason, report), tidied]), delay(config.demo ? embeddedStopMs : closeMs)]);
      process.exit(report.allProven ? process.exitCode : 1);
    });
  };
  // Registered before the transport's own listeners: a shutdown is not a cancel of each call.
  for (const signal of endSignals) process.on(signal, () => { end(signal); });
  // A bug of ours must not leave operations behind either.
  process.on('uncaughtException', (error) => {
    log.fatal({ error: wired.redact(error.stack ?? error.message) }, 'unexpected error');
    process.exitCode = 1;
    end('an unexpected error');
  });

  service = await start({ wired, log, end, version });
  await service.greeted;
  await readConnections();
  if (ending) return;
  // Connecting ahead makes the first call fast; a database that is down is told to whoever calls.
  wired.leash.sweep.start();
  wired.exports.start();
  if (config.uri === undefined) return;
  wired.deployment.ready().catch((error: unknown) => {
    if (!ending) log.warn({ error: wired.redact(messageOf(error)) }, 'the database cannot be reached yet; each call tries again');
  });
}

export interface ServiceDeps {
  wired: Wired;
  log: Log;
  version: string;
  /** Begins the end of the process, for this reason. */
  end(reason: string): void;
}

/** Settles when the report has left, or nobody reads it any more: the exit code still tells. */
function writeReport(reason: string, report: ShutdownReport): Promise<void> {
  writeLines();
  return new Promise((resolve) => {
    process.stderr.write(`${JSON.stringify({ shutdown: reason, ...report })}\n`, () => { resolve(); });
  });
}
