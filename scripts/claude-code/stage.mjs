/** Plays one scenario: a model with a part, Claude Code, the server, and the witness, from the start to the end of each. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { prepareClient } from './client.mjs';
import { until } from './clock.mjs';
import { startInteractive, startPrinting } from './conversation.mjs';
import { startModel } from './model.mjs';
import { transports } from './transports.mjs';

const startMs = 30_000;
const goneMs = 20_000;
const partMs = 20_000;
const leaveMs = 10_000;
/** A query that was stopped in its first moments would prove little. */
const atLeastRunningMs = 1_000;

/**
 * @param {{ program: string, database: object, transport: string, scenario: import('./scenarios.mjs').Scenario, atEnd(clean: () => Promise<void>): void }} options
 *   `atEnd` takes what must be undone whatever happens; its giver does that
 * @returns {Promise<object>} what was seen, for the checks and the report
 * @throws {Error} when something did not happen in time; its `entries` are what passed on the wire until then
 */
export async function play({ program, database, transport, scenario, atEnd }) {
  const folder = await mkdtemp(join(tmpdir(), 'mongo-leash-claude-code-'));
  atEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 }));
  const model = await startModel(scenario.part(database.query, transport));
  atEnd(() => model.close());
  const line = await transports[transport]({ folder, uri: database.uri, atEnd });
  const prepared = await prepareClient({ program, folder, modelUrl: model.url, server: line.entry, env: scenario.env });
  const stage = { prepared, folder, line, model, transport, atEnd };
  try {
    return await playOn(stage, database, scenario);
  } catch (error) {
    throw Object.assign(error, { entries: line.entries() });
  }
}

async function playOn(stage, database, scenario) {
  const { line, model, transport, atEnd } = stage;
  await until('nothing runs that an earlier scenario has left', async () => (await database.rows()).length === 0, goneMs);
  const watch = database.watch();
  atEnd(() => watch.stop());
  const client = scenario.interactive ? await startInteractive(stage) : startPrinting(stage);
  await watch.seen(startMs);
  if (scenario.act !== undefined) await until('the query has run for a while', () => watch.sighting.last.runningMs >= atLeastRunningMs, startMs);
  const actedAt = await scenario.act?.({ client, ...stage });
  const gone = await watch.gone(goneMs);
  if (scenario.toldAtLeast !== undefined) await until('the model has played its part', () => model.told.length >= scenario.toldAtLeast, partMs);
  // One that only prints leaves by itself.
  if (scenario.toldAtLeast !== undefined && scenario.interactive) await client.leave();
  await hasLeft(client);
  if (scenario.comesBack) await comeBack(stage);
  const serverEnd = await line.ended();
  return { transport, actedAt, gone, serverEnd, sighting: watch.sighting, entries: line.entries(), told: model.told, rowsAfter: await database.rows() };
}

/** Goes on with the conversation until the model has been told something more. */
async function comeBack(stage) {
  const { model } = stage;
  const before = model.told.length;
  const client = await startInteractive(stage, { back: true });
  await until('the model is told what became of the task', () => model.told.length > before, partMs);
  await client.leave();
  await hasLeft(client);
}

async function hasLeft(client) {
  const left = await Promise.race([client.ended.then(() => true), delay(leaveMs, false, { ref: false })]);
  if (!left) throw new Error(`Claude Code did not end within ${leaveMs} ms; on its screen: ${client.shown()}`);
}
