/** Requests that a web page could have sent: the names that are let in and those that are not. */
import { describe, expect, it } from 'vitest';
import { checkHostAndOrigin } from '../../src/http/origin.js';

const allowed = { hosts: ['localhost', '127.0.0.1', '[::1]', 'leash.example.com'], origins: ['localhost', '127.0.0.1', '[::1]', 'app.example.com'] };
function check(host: string | undefined, origin?: string): Response | undefined {
  const headers = new Headers();
  if (host !== undefined) headers.set('host', host);
  if (origin !== undefined) headers.set('origin', origin);
  return checkHostAndOrigin(new Request('http://127.0.0.1/mcp', { method: 'POST', headers }), allowed);
}
async function refusal(response: Response | undefined): Promise<string> {
  expect(response?.status).toBe(403);
  const body: any = await response?.json();
  expect(body).toEqual({ jsonrpc: '2.0', id: null, error: { code: -32_000, message: expect.any(String) } });
  return body.error.message as string;
}

describe('the host that a request names', () => {
  it.each(['localhost', 'localhost:3777', 'LOCALHOST:1', '127.0.0.1:3777', '[::1]:3777', 'leash.example.com'])('%s is let in', (host) => {
    expect(check(host)).toBeUndefined();
  });
  it.each([undefined, 'evil.example.com', 'evil.example.com:3777', 'localhost.evil.example.com', '127.0.0.2', '10.0.0.1', 'http://localhost', 'a b'])('%s is answered with 403, which names the option', async (host) => {
    expect(await refusal(check(host))).toContain('--allowed-hosts');
  });
});

describe('the page that a request comes from', () => {
  it.each([undefined, 'http://localhost:5173', 'http://127.0.0.1', 'http://[::1]:8080', 'https://app.example.com', 'https://APP.example.com:8443'])('%s is let in', (origin) => {
    expect(check('localhost:3777', origin)).toBeUndefined();
  });
  it.each(['null', 'https://evil.example.com', 'https://app.example.com.evil.example.com', 'https://leash.example.com', 'file://', 'chrome-extension://abcdef', 'nonsense'])('%s is answered with 403, which names the option', async (origin) => {
    expect(await refusal(check('localhost:3777', origin))).toContain('--allowed-origins');
  });
});
