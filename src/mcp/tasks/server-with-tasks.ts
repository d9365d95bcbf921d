/** Lets a call be answered with a task: the SDK holds every answer of `tools/call` against the shape of a tool's result. */

import { type JSONRPCRequest, type Result, Server, type ServerContext } from '@modelcontextprotocol/server';
import { isCreated } from './shapes.js';

type Handler = (request: JSONRPCRequest, context: ServerContext) => Promise<Result>;

/** A class of its own, since the SDK offers no other place for this. */
export class ServerWithTasks extends Server {
  protected override _wrapHandler(method: string, handler: Handler): Handler {
    if (method !== 'tools/call') return super._wrapHandler(method, handler);
    return async (request, context) => {
      let created: Result | null = null;
      const checked = super._wrapHandler(method, async (...call) => {
        const result = await handler(...call);
        if (!isCreated(result)) return result;
        created = result;
        return { content: [] };
      });
      const result = await checked(request, context);
      return created ?? result;
    };
  }
}
