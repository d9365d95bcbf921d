/** What passed between Claude Code and the server, in few lines: methods, ids, times. */

/** Of a message to the server, all that tells it apart. */
function nameOf({ method, params = {} }) {
  if (method === 'tools/call') return `tools/call ${params.name}`;
  if (params.taskId !== undefined) return `${method} ${params.taskId}`;
  if (method === 'notifications/cancelled') return `${method} of request ${JSON.stringify(params.requestId)} (${params.reason})`;
  return method;
}

function answerOf({ result, error }) {
  if (error !== undefined) return `error ${error.code}: ${error.message}`;
  if (result.taskId !== undefined) return `task ${result.taskId} ${result.status}${result.resultType === 'task' ? ' (resultType task)' : ''}`;
  if (result.supportedVersions !== undefined) return `versions ${result.supportedVersions.join(', ')}; extensions ${Object.keys(result.capabilities.extensions ?? {}).join(', ') || 'none'}`;
  if (result.tools !== undefined) return `${result.tools.length} tools`;
  const { outcome, server, verdict } = result.structuredContent ?? {};
  return result.structuredContent === undefined ? result.resultType ?? 'answered' : [result.isError ? 'isError' : 'ok', outcome ?? server, verdict].filter(Boolean).join(', ');
}

/**
 * @param {object[]} entries as the tee and the forwarder keep them
 * @returns {{ at: number, text: string, repeatable?: string }[]} a line for each; those with the same `repeatable` in a row can be one
 */
export function linesOf(entries) {
  const asked = new Map();
  return entries.map(({ at, event, way, message, http, status }) => {
    if (event !== undefined) return { at, text: event };
    if (message === undefined) return { at, text: way === 'to server' ? `-> ${http}` : `<- HTTP ${status}` };
    const id = message.id === undefined ? '' : ` [${JSON.stringify(message.id)}]`;
    if (message.method !== undefined) {
      const name = nameOf(message);
      if (way === 'to server') asked.set(message.id, name);
      return { at, text: `${way === 'to server' ? '->' : '<-'} ${name}${id}`, repeatable: /^(tasks\/get|notifications\/progress)/.exec(name)?.[0] };
    }
    const answered = asked.get(message.id);
    const text = answerOf(message);
    return { at, text: `<- ${text}${id}`, repeatable: answered?.startsWith('tasks/get') ? `tasks/get: ${text}` : undefined };
  });
}

/** The messages that went to the server with this method. */
export const sentTo = (entries, method) => entries.filter(({ way, message }) => way === 'to server' && message?.method === method);

/** The answer to a message, or undefined. A Claude Code that comes back counts from the beginning again: the next one is meant. */
export const answerTo = (entries, sent) => entries.slice(entries.indexOf(sent)).find(({ way, message }) => way === 'to client' && message?.method === undefined && message?.id === sent.message.id);

/** What a request says of its sender: the protocol version and the capabilities. */
export function senderOf({ message }) {
  const meta = message.params?._meta ?? {};
  return {
    protocolVersion: meta['io.modelcontextprotocol/protocolVersion'] ?? message.params?.protocolVersion,
    capabilities: meta['io.modelcontextprotocol/clientCapabilities'] ?? message.params?.capabilities,
  };
}
