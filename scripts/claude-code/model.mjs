/** Stands in for the model behind Claude Code: an HTTP server that plays a written part, and keeps what the model was told. */
import { Buffer } from 'node:buffer';
import { createServer } from 'node:http';
import { now } from './clock.mjs';

/** The last words of every part. */
const farewell = 'Done.';

/** How Claude Code tells the model of the end of a background task, in a message that it writes itself. */
const notification = /<task-notification>[^]*<\/task-notification>/;
export const notificationName = 'task notification';

/**
 * @typedef {{ key: string, name: string, text: string, isError: boolean, at: number }} Told
 *   the result of a tool of that name, or a notification, as the conversation holds it; `at` is when the model was told, in ms of `now()`
 * @typedef {{ name: string, input: object }} ToolUse
 *
 * Starts the stub on a free port of 127.0.0.1.
 * @param {((told: Told[]) => ToolUse)[]} part what the model does after 0, 1, 2... tool results; then it says a word and stops
 * @returns {Promise<{ url: string, told: Told[], close(): Promise<void> }>} `told` grows as requests come
 */
export async function startModel(part) {
  const told = [];
  const server = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      const path = new URL(request.url, 'http://stub').pathname;
      if (path !== '/v1/messages') return void sendJson(response, path.endsWith('/count_tokens') ? 200 : 404, { input_tokens: 1 });
      const asked = JSON.parse(Buffer.concat(chunks).toString('utf8'));
      answer(response, asked, nextBlock(asked, part, told));
    });
  });
  await new Promise((resolve) => { server.listen(0, '127.0.0.1', resolve); });
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    told,
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => { server.close(resolve); });
    },
  };
}

/** The place in the part is read from the conversation itself, so a request that is sent again gets the same answer. */
function nextBlock({ messages, tools = [] }, part, told) {
  // Claude Code asks for titles and the like as well, without offering tools.
  if (tools.length === 0) return { type: 'text', text: farewell };
  const blocks = messages.flatMap(({ role, content }) => (typeof content === 'string' ? [{ type: 'text', text: content }] : content).map((block) => ({ role, ...block })));
  const results = toolResults(blocks);
  for (const each of [...results, ...notifications(blocks)]) if (!told.some(({ key }) => key === each.key)) told.push({ ...each, at: now() });
  const play = part[results.length];
  if (play === undefined) return { type: 'text', text: farewell };
  return { type: 'tool_use', id: `toolu_stub_${results.length}`, ...play(told) };
}

function toolResults(blocks) {
  const names = new Map(blocks.filter(({ type }) => type === 'tool_use').map(({ id, name }) => [id, name]));
  return blocks
    .filter(({ type, tool_use_id: id }) => type === 'tool_result' && names.has(id))
    .map(({ tool_use_id: key, content, is_error: isError }) => ({ key, name: names.get(key), text: textOf(content), isError: isError === true }));
}

function notifications(blocks) {
  return blocks
    .filter(({ role, type, text }) => role === 'user' && type === 'text' && notification.test(text))
    .map(({ text }) => ({ key: notification.exec(text)[0], name: notificationName, text: notification.exec(text)[0], isError: false }));
}

const textOf = (content) => (typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? `(${part.type})`).join('\n'));

function answer(response, { model, stream }, block) {
  const message = { id: 'msg_stub', type: 'message', role: 'assistant', model, content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } };
  const stopReason = block.type === 'tool_use' ? 'tool_use' : 'end_turn';
  if (stream !== true) return void sendJson(response, 200, { ...message, content: [block], stop_reason: stopReason });
  const start = block.type === 'tool_use' ? { ...block, input: {} } : { type: 'text', text: '' };
  const delta = block.type === 'tool_use' ? { type: 'input_json_delta', partial_json: JSON.stringify(block.input) } : { type: 'text_delta', text: block.text };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const event of [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: start },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: stopReason, stop_sequence: null }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ]) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  response.end();
}

function sendJson(response, status, body) {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
