import { afterAll, beforeAll, it } from 'vitest';
import { runawayCase, setUpRunaway } from '../support/cases.js';
import { type TestMongo, startMongo } from '../support/mongo.js';
import { runArguments, startDetached, startWaiting, untilGone } from '../support/runaways.js';
import { type TestServer, startServer } from '../support/server.js';
let mongo: TestMongo; let server: TestServer;
beforeAll(async () => { mongo = await startMongo(); server = await startServer({ uri: mongo.uri, args: ['--allow-js', '--allow-writes'] }); });
afterAll(async () => { await server.close(); await mongo.stop(); });
it.each(['01','02','03','04','05','06','15','16','17'])('%s', async (name) => {
  const c = runawayCase(name); const db = `r${name}`;
  await setUpRunaway(mongo.client, db, c);
  const req = runArguments(c, db);
  const s = await startDetached(server, mongo.client, { ...req, ...(name==='15'?{limit:10000}:{}) });
  console.log(name, 'HANDLE', JSON.stringify(s.handle, null, 1));
  console.log(name, 'STATUS', JSON.stringify(await server.call('status', { id: s.id, waitMs: 1000 }), null, 1));
  const gone = untilGone(mongo.client, s.id, 5000);
  const k = await server.call('kill', { id: s.id });
  console.log(name, 'KILL', await gone, JSON.stringify(k, null, 1));
  if (name !== '06') {
    const t = await server.call('run', { ...req, maxTimeMS: 2000, ...(name==='15'?{limit:10000}:{}) });
    console.log(name, 'TIME', JSON.stringify(t, null, 1));
  } else {
    const t = await server.call('run', { ...req, maxTimeMS: 1000 });
    console.log(name, 'TIME', JSON.stringify(t, null, 1));
  }
}, 60000);
