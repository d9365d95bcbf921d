/** The demo: the real server over stdio, a real MCP client, a real database, and a witness with a connection of its own. */
import process from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { MongoClient } from 'mongodb';
import { sampleDatabase, startEmbedded } from '../dist/cli/embedded.js';

const program = fileURLToPath(new URL('../dist/main.js', import.meta.url));
const say = (text = '') => process.stdout.write(`${text}\n`);

/** Compares each order with each other one: some 400 million comparisons that no index can serve. */
const runaway = [
  { $lookup: { from: 'orders', let: { amount: '$amount' }, pipeline: [{ $match: { $expr: { $gt: ['$amount', '$$amount'] } } }, { $count: 'n' }], as: 'larger' } },
  { $group: { _id: null, pairs: { $sum: { $first: '$larger.n' } } } },
];
/** Ignores maxTimeMS: server-side JavaScript is not interrupted by it. */
const deafToTimeLimits = [{ $project: { x: { $function: { body: 'function () { for (;;) {} }', args: [], lang: 'js' } } } }];

/** What an independent connection sees of the operations of the server under test. */
async function witnessed(witness) {
  const rows = await witness.db('admin').aggregate([
    { $currentOp: { allUsers: true, idleCursors: true } },
    { $match: { $or: [{ 'command.comment': /^mongo-leash/ }, { 'cursor.originatingCommand.comment': /^mongo-leash/ }] } },
    { $match: { 'command.comment': { $ne: 'mongo-leash control' } } },
  ]).toArray();
  return rows.map((row) => `opid ${row.opid ?? '-'}, ${row.op ?? row.type} on ${row.ns}, running ${((row.microsecs_running ?? 0) / 1e6).toFixed(1)} s, ${row.planSummary ?? ''}`);
}

async function until(what, withinMs, ask) {
  const startedAt = performance.now();
  for (;;) {
    const answer = await ask();
    if (answer) return { answer, ms: Math.round(performance.now() - startedAt) };
    if (performance.now() - startedAt > withinMs) throw new Error(`within ${withinMs} ms it did not come true that ${what}`);
    await delay(5);
  }
}

const show = (when, rows) => {
  say(`  $currentOp ${when}: ${rows.length === 0 ? 'nothing' : ''}`);
  for (const row of rows) say(`    ${row}`);
};

async function main() {
  say('mongo-leash demo');
  const embedded = await startEmbedded();
  const witness = await new MongoClient(embedded.uri, { appName: 'witness' }).connect();
  const transport = new StdioClientTransport({ command: process.execPath, args: [program, 'serve', '--allow-js', '--store', 'memory', '--log-level', 'warn'], env: { ...process.env, MONGO_LEASH_URI: embedded.uri }, stderr: 'inherit' });
  const client = new Client({ name: 'demo', version: '1.0.0' });
  const proven = [];
  try {
    await client.connect(transport);
    const call = async (name, args, options) => (await client.callTool({ name, arguments: args }, undefined, options)).structuredContent;
    const seeRunning = () => until('the database shows the operation', 10_000, async () => {
      const rows = await witnessed(witness);
      return rows.length > 0 && rows;
    });
    const seeGone = () => until('the database shows it no more', 10_000, async () => (await witnessed(witness)).length === 0);
    const lastId = async () => (await call('operations', {})).ended[0].operationId;
    const verdict = (answer, gone) => {
      say(`  status: outcome ${answer.outcome}, verdict ${answer.verdict}, cause ${answer.cause}`);
      say(`    ${answer.reason}`);
      proven.push(answer.verdict === 'stopped' && answer.by === 'us' && gone);
    };

    say('\n1. An aggregation that answers');
    const answer = await call('run', {
      database: sampleDatabase,
      collection: 'orders',
      pipeline: [
        { $group: { _id: '$customer', orders: { $sum: 1 }, amount: { $sum: '$amount' } } },
        { $sort: { orders: -1, amount: -1, _id: 1 } },
        { $limit: 3 },
      ],
    });
    for (const document of answer.documents) say(`  ${JSON.stringify(document)}`);
    say(`  ${answer.returned} documents in ${answer.elapsedMs} ms from ${answer.node}; outcome ${answer.outcome}, more ${answer.more}`);
    proven.push(answer.outcome === 'succeeded' && answer.returned === 3);

    say('\n2. A runaway aggregation, cancelled by notifications/cancelled');
    const cancel = new AbortController();
    const cancelled = client.callTool({ name: 'run', arguments: { database: sampleDatabase, collection: 'orders', pipeline: runaway } }, undefined, { signal: cancel.signal }).catch(() => 'cancelled');
    await seeRunning();
    await delay(1_000);
    show('before', await witnessed(witness));
    cancel.abort();
    const cancelledGone = await seeGone();
    await cancelled;
    show(`${cancelledGone.ms} ms after the cancel`, await witnessed(witness));
    verdict(await call('status', { id: await lastId() }), true);

    say('\n3. The same, handed over by its id and stopped with kill');
    const handle = await call('run', { database: sampleDatabase, collection: 'orders', pipeline: runaway, waitMs: 1_000 });
    say(`  run: ${handle.operationId}, wait ${handle.wait}, server ${handle.server}`);
    show('before', await witnessed(witness));
    const killedAt = performance.now();
    const killed = await call('kill', { id: handle.operationId });
    say(`  kill: verdict ${killed.verdict} in ${killed.kill.elapsedMs} ms, by ${killed.kill.sent.map((each) => `${each.method} ${each.target} on ${each.node}`).join(', ')}`);
    const after = await witnessed(witness);
    show(`${Math.round(performance.now() - killedAt)} ms after the call of kill`, after);
    verdict(await call('status', { id: handle.operationId }), after.length === 0);

    say('\n4. Server-side JavaScript that ignores maxTimeMS, stopped by its deadline');
    const late = call('run', { database: sampleDatabase, collection: 'customers', pipeline: deafToTimeLimits, maxTimeMS: 1_000 });
    await seeRunning();
    await delay(1_500);
    show('half a second past its maxTimeMS', await witnessed(witness));
    const timedOut = await late;
    const afterDeadline = await witnessed(witness);
    show(`when run answered, ${timedOut.elapsedMs} ms after its start`, afterDeadline);
    say(`  run: outcome ${timedOut.outcome}; ${timedOut.next}`);
    verdict(await call('status', { id: timedOut.operationId }), afterDeadline.length === 0 && timedOut.outcome === 'timed_out');
  } finally {
    await client.close().catch(() => undefined);
    await witness.close();
    await embedded.stop();
  }
  const all = proven.length === 4 && proven.every(Boolean);
  say(`\n${all ? 'Every stop was proven.' : 'Not every stop was proven.'}`);
  process.exitCode = all ? 0 : 1;
}

await main();
