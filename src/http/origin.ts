/** Refuses requests that a web page could have tricked a browser into: by the name they were sent to (Host) and the page they come from (Origin). */

import { validateHostHeader, validateOriginHeader } from '@modelcontextprotocol/server';
import { rejection } from './rejection.js';

/** Host names as URLs have them: lower case, IPv6 in brackets, no port. */
export interface AllowedNames {
  hosts: string[];
  origins: string[];
}

/**
 * A request without Origin passes: only browsers send one, and a browser that was tricked by a name (DNS rebinding) is caught by Host.
 * @returns the 403 to answer with, or undefined
 */
export function checkHostAndOrigin(request: Request, allowed: AllowedNames): Response | undefined {
  const host = validateHostHeader(request.headers.get('host'), allowed.hosts);
  if (!host.ok) return rejection(403, `${host.message}. Whoever runs this server can allow a name with --allowed-hosts.`);
  const origin = validateOriginHeader(request.headers.get('origin'), allowed.origins);
  if (!origin.ok) return rejection(403, `${origin.message}. Whoever runs this server can allow the host name of a web page with --allowed-origins.`);
  return undefined;
}
