/** The least that a server of the same SDK can be: one tool, which calls the driver and nothing else. The measure for what a leash costs. */
import process from 'node:process';
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { EJSON } from 'bson';
import { MongoClient } from 'mongodb';
import { z } from 'zod';

const client = new MongoClient(process.env.BENCH_URI);
/** Makes its answers as large as those that it is compared with. */
const padding = 'x'.repeat(Number(process.env.BENCH_PADDING ?? 0));
const server = new McpServer({ name: 'bare', version: '1.0.0' });
const inputSchema = z.object({ database: z.string(), collection: z.string(), pipeline: z.array(z.record(z.string(), z.unknown())) });

server.registerTool('aggregate', { description: 'Runs an aggregation on a collection.', inputSchema }, async ({ database, collection, pipeline }) => {
  const found = await client.db(database).collection(collection).aggregate(pipeline).toArray();
  const body = { documents: EJSON.serialize(found), padding };
  return { content: [{ type: 'text', text: JSON.stringify(body) }], structuredContent: body };
});

await server.connect(new StdioServerTransport());
process.stdin.on('end', () => {
  void client.close().finally(() => process.exit(0));
});
