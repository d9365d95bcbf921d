/** MCP over HTTP, for many clients, until the process is told to end. */

import { ConfigError } from '../config/load.js';
import type { Config } from '../config/options.js';
import type { Log } from '../core/ports.js';
import { messageOf } from '../domain/errors.js';
import { checkExposure, wireHttp } from '../wire-http.js';
import type { Service, ServiceDeps } from './serve.js';

/** How long answers may take to leave after the kills, in milliseconds: they are small, and on their way. */
const drainMs = 250;

/** Checks before anything is started who will be able to reach the server. @throws ConfigError naming the options */
export function prepareHttp(config: Config, log: Log): (deps: ServiceDeps) => Promise<Service> {
  const exposure = checkExposure(config);
  for (const warning of exposure.warnings) log.warn({}, warning);
  return async ({ wired, version }) => {
    const http = wireHttp(wired, config, exposure, log);
    const address = await http.listen().catch((error: unknown) => {
      throw new ConfigError(`--host ${config.host} --port ${config.port}: ${messageOf(error)}`);
    });
    log.info({ instance: wired.instance, version, address, authentication: exposure.tokens.length > 0 || exposure.jwt !== undefined }, 'serving MCP over HTTP');
    return { greeted: Promise.resolve(), refuseWork: () => { http.refuseWork(); }, close: () => http.close(drainMs) };
  };
}
