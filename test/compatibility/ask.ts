/** Sends a call to one of the servers, and reads what it says into a form that both have. */

import { eventually } from '../support/mongo.js';
import type { TestServer } from '../support/server.js';
import type { Call } from './calls.js';
import type { Answer } from './compare.js';

/** Ids of the connections that a server has opened, by the names that the calls know. */
export type ConnectionIds = Record<string, string>;

/** The stock server asks for a connectionId in every call, and ours takes it. */
export async function ask(server: TestServer, { tool, args, connection }: Call, ids: ConnectionIds): Promise<Answer> {
  const named = tool === 'connect' || tool === 'list-connections' ? {} : { connectionId: connection === undefined ? 'preconfigured' : ids[connection] };
  const result = await server.callRaw(tool, { ...named, ...args }).catch((error: unknown) => ({ isError: true, content: [{ type: 'text', text: String(error) }] }));
  const body = result.structuredContent ?? {};
  const answer: Answer = { isError: result.isError === true, body, fields: Object.keys(body), text: textOf(result) };
  if (tool !== 'export' || answer.isError) return answer;
  const link = (result.content as { type: string; uri: string; mimeType: string }[]).find(({ type }) => type === 'resource_link');
  if (link === undefined) throw new Error(`an export without a link: ${answer.text}`);
  const file = await readExport(server, link.uri);
  return { ...answer, body: { ...body, link: { uri: link.uri, mimeType: link.mimeType }, file } };
}

function textOf({ content }: { content: { type: string; text?: string }[] }): string {
  return content.map(({ text }) => text ?? '').join('\n');
}

/** The stock server answers before it has read anything: its file comes later, or never. */
async function readExport(server: TestServer, uri: string): Promise<{ form: string; documents: unknown }> {
  const read = await eventually('the export is ready', async () => {
    const { contents, isError } = (await server.client.readResource({ uri })) as { contents: { text: string }[]; isError?: boolean };
    const text = contents[0]?.text ?? '';
    return isError === true && text.includes('still being generated') ? false : { text, isError };
  });
  if (read.isError === true) return { form: read.text, documents: null };
  const wrapped = /\n<untrusted-user-data-[^>]+>\n([^]*)\n<\/untrusted-user-data-/.exec(read.text)?.[1];
  if (wrapped !== undefined) return { form: 'one array, in a text that warns of it', documents: JSON.parse(wrapped) };
  return { form: 'a document a line', documents: read.text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as unknown) };
}
