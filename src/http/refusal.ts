/** Lets a refusal that comes at once be an error of HTTP: a stream that is open already can only have said 200. */

import { setTimeout as delay } from 'node:timers/promises';
import { type JSONRPCErrorResponse, ProtocolErrorCode } from '@modelcontextprotocol/server';

/** How long the headers of a stream wait for its first words, in milliseconds. */
const waitMs = 100;

/** 2026-07-28, "Missing Required Capabilities": over HTTP such an error comes with the status 400. */
export async function withStatusOfRefusal(response: Response): Promise<Response> {
  if (response.body === null) return response;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  let next: ReturnType<typeof reader.read> | undefined = reader.read();
  const first = await Promise.race([next, delay(waitMs, undefined, { ref: false })]);
  const refusal = first?.value === undefined ? undefined : refusalIn(Buffer.from(first.value).toString());
  if (refusal !== undefined) {
    await reader.cancel();
    return Response.json(refusal, { status: 400 });
  }
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await (next ?? reader.read());
      next = undefined;
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, { status: response.status, headers: response.headers });
}

function refusalIn(event: string): JSONRPCErrorResponse | undefined {
  const [, data] = /^data: (.*)$/m.exec(event) ?? [];
  if (data === undefined) return undefined;
  const message = JSON.parse(data) as Partial<JSONRPCErrorResponse>;
  return message.error?.code === ProtocolErrorCode.MissingRequiredClientCapability ? (message as JSONRPCErrorResponse) : undefined;
}
