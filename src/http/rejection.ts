/** The shape of a refusal that comes before any JSON-RPC message was read. */

/** JSON-RPC's code for an error of the server that no other code fits. */
const serverError = -32_000;

/** A JSON-RPC error without a request id, as an MCP client reads it, under an HTTP status. */
export function rejection(status: number, message: string, headers: Record<string, string> = {}): Response {
  return Response.json({ jsonrpc: '2.0', error: { code: serverError, message }, id: null }, { status, headers });
}
