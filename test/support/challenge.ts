/** Requests by hand of one who may be refused, and what the refusal says. */

/** The status of an answer, its header WWW-Authenticate, and its body. */
export async function challenge(url: URL, init: RequestInit): Promise<{ status: number; challenge: string | null; text: string }> {
  const response = await fetch(url, init);
  return { status: response.status, challenge: response.headers.get('www-authenticate'), text: await response.text() };
}

/** The first request of a client of the 2025 era. */
export function initialize(token?: string): RequestInit {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1.0.0' } };
  return {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }) },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  };
}
