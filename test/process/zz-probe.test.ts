import { setTimeout as delay } from 'node:timers/promises';
import { spawn } from 'node:child_process';
import { expect, it } from 'vitest';
import { startMongo, tagged, eventually } from '../support/mongo.js';
import { programPath } from '../support/server.js';
it('probe full stderr', async () => {
  const mongo = await startMongo();
  await mongo.client.db('app').collection('four').insertMany([{}, {}]);
  const child = spawn(process.execPath, [programPath, '--allow-js', '--log-level', 'trace'], { env: { ...process.env, MONGO_LEASH_URI: mongo.uri }, stdio: ['pipe', 'pipe', 'pipe'] });
  const send = (m: object) => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\n');
  child.stdout.on('data', () => undefined);
  send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } } });
  send({ method: 'notifications/initialized' });
  const pipeline = [{ $match: { $expr: { $function: { body: 'function(){sleep(20000);return true}', args: [], lang: 'js' } } } }];
  send({ id: 2, method: 'tools/call', params: { name: 'run', arguments: { database: 'app', collection: 'four', pipeline, waitMs: 0 } } });
  await eventually('seen', async () => (await tagged(mongo.client)).length > 0);
  for (let i = 3; i < 8000; i += 1) send({ id: i, method: 'tools/call', params: { name: 'status', arguments: {id: 'x'} } });
  await delay(5000);
  const t = Date.now();
  child.kill('SIGTERM');
  const ex = new Promise((r) => child.on('exit', (c, s) => r([c, s, Date.now() - t])));
  for (let i = 0; i < 30; i++) { await delay(200); const n = (await tagged(mongo.client)).length; if (n === 0) { console.log('gone after', Date.now() - t); break; } if (i === 29) console.log('still there'); }
  console.log('exit', await Promise.race([ex, delay(6000)]));
  child.kill('SIGKILL');
  await mongo.stop();
  expect(1).toBe(1);
}, 60000);
