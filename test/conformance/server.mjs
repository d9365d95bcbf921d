/** The real server over HTTP, with fixture tools beside its own, for the conformance suite. Prints its address; ends when stdin does. */

import process from 'node:process';
import { createLogger } from '../../dist/cli/log.js';
import { loadConfig } from '../../dist/config/load.js';
import { checkExposure, wireHttp } from '../../dist/wire-http.js';
import { wire } from '../../dist/wire.js';
import { createFixtureTasks } from './fixture-tasks.mjs';
import { fixtureTools } from './fixture-tools.mjs';

const drainMs = 500;

const { config } = loadConfig({ http: true, port: 0, allowJs: true, store: 'memory', logLevel: process.env.MONGO_LEASH_LOG_LEVEL ?? 'error' }, process.env);
const log = createLogger(config.logLevel);
const { source, tools } = createFixtureTasks();
const wired = wire(config, 'conformance', log, { tools: [...fixtureTools, ...tools], tasks: [source] });
await wired.load();
const http = wireHttp(wired, config, checkExposure(config), log);
process.stdout.write(`${await http.listen()}\n`);

process.stdin.resume().on('close', () => {
  http.refuseWork();
  void wired.leash.shutdown(config.shutdownMs).then(async ({ allProven }) => {
    await http.close(drainMs);
    await Promise.all([wired.deployment.close(), wired.store.close()]);
    process.exit(allProven ? 0 : 1);
  });
});
