/** `mongo-leash serve`: MCP over stdio until the client goes away, and then a shutdown that proves what it says. */

import { messageOf } from '../domain/errors.js';
import { setTimeout as delay } from 'node:timers/promises';
import { StdioServerTransport, serveStdio } from '@modelcontextprotocol/server/stdio';
import { ConfigError, type LoadedConfig } from '../config/load.js';
import type { ShutdownReport } from '../core/shutdown.js';
import { wire } from '../wire.js';
import { createLogger } from './log.js';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
/** How long the report and the close of the connections may take after the shutdown, in milliseconds. */
const closeMs = 500;
/** The same with an embedded database, which ends in an orderly way when there is time for it. */
const embeddedStopMs = 3_000;

/** Serves until stdin ends, stdout breaks or a signal comes; ends the process with 0 only when all is proven stopped. */
export async function serve({ config, warnings }: LoadedConfig, version: string): Promise<void> {
  const log = createLogger(config.logLevel);
  for (const warning of warnings) log.warn(warning);
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
  await wired.load();

  let ending = false;
  const end = (reason: string) => {
    if (ending) return;
    ending = true;
    // The kills go to the wire in this very call; everything else can wait.
    const shutdown = wired.leash.shutdown(config.shutdownMs);
    log.info({ reason }, 'shutting down');
    void shutdown.then(async (report) => {
      const tidied = Promise.all([wired.deployment.close(), wired.store.close()]).then(stopEmbedded).catch(() => undefined);
      // A database that does not answer must not hold up the end: what is left open closes with the process.
      await Promise.race([Promise.all([writeReport(reason, report), tidied]), delay(config.demo ? embeddedStopMs : closeMs)]);
      process.exit(report.allProven ? process.exitCode : 1);
    });
  };
  // Registered before the transport's own listeners: a shutdown is not a cancel of each call.
  for (const signal of signals) process.on(signal, () => { end(signal); });
  process.stdin.on('end', () => { end('end of stdin'); });
  process.stdin.on('close', () => { end('end of stdin'); });
  process.stdout.on('error', (error: Error) => { end(`stdout is broken: ${error.message}`); });
  // A bug of ours must not leave operations behind either.
  process.on('uncaughtException', (error) => {
    log.fatal({ error: wired.redact(error.stack ?? error.message) }, 'unexpected error');
    process.exitCode = 1;
    end('an unexpected error');
  });

  const transport = new StdioServerTransport();
  serveStdio(() => wired.createServer(), { transport, onerror: (error) => { log.warn({ error: wired.redact(error.message) }, 'transport error'); } });
  // A transport that gave up (a message over its 10 MiB) reads nothing any more, not even the end of stdin.
  const onClose = transport.onclose?.bind(transport);
  transport.onclose = () => {
    onClose?.();
    end('the transport closed');
  };
  log.info({ instance: wired.instance, version, configured: config.uri !== undefined }, 'serving MCP over stdio');
  // Connecting ahead makes the first call fast; a database that is down is told to whoever calls.
  if (config.uri !== undefined) {
    setImmediate(() => {
      wired.leash.sweep.start();
      wired.deployment.ready().catch((error: unknown) => {
        if (!ending) log.warn({ error: wired.redact(messageOf(error)) }, 'the database cannot be reached yet; each call tries again');
      });
    });
  }
}

/** Settles when the report has left, or nobody reads it any more: the exit code still tells. */
function writeReport(reason: string, report: ShutdownReport): Promise<void> {
  return new Promise((resolve) => {
    process.stderr.write(`${JSON.stringify({ shutdown: reason, ...report })}\n`, () => { resolve(); });
  });
}
