/** The one client of every server that is measured: JSON-RPC by lines over stdio, and nothing that takes time of its own. */
import process from 'node:process';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { SetupError } from '../run.mjs';

/** The longest that one answer may take, and the end of a server, in milliseconds. */
const answerMs = 60_000;
const endMs = 20_000;
const clientInfo = { name: 'bench', version: '1.0.0' };

/** What a client of a person sets for all of them, without the settings of whoever measures. */
const cleanEnv = () => Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(MONGO_LEASH|MDB_MCP|NODE)_/.test(name)));

/**
 * Starts a server.
 * @param {{args: string[], env?: Record<string, string>}} server what Node runs, and the variables that it gets besides
 * @returns a client with the moment of the start, by `performance.now()`
 */
export const startServer = ({ args, env = {} }) => {
  const startedAt = performance.now();
  const child = spawn(process.execPath, args, { env: { ...cleanEnv(), ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  const waiting = new Map();
  const exited = once(child, 'exit');
  let said = '';
  let rest = '';
  let lastId = 0;
  child.stdout.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const message = JSON.parse(line);
      waiting.get(message.id)?.(message);
      waiting.delete(message.id);
    }
  });
  // A log that nobody reads would stop the server; its end tells what went wrong.
  child.stderr.setEncoding('utf8').on('data', (chunk) => { said = (said + chunk).slice(-2_000); });
  child.stdin.on('error', () => undefined);
  child.on('exit', (code, signal) => {
    for (const answer of waiting.values()) answer({ error: `its end (${signal ?? code})` });
    waiting.clear();
  });

  const send = (message) => { child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`); };

  const request = (method, params) => new Promise((resolve, reject) => {
    const id = (lastId += 1);
    const timer = setTimeout(() => { reject(new SetupError(`${args[0]} did not answer ${method} within ${answerMs} ms: ${said}`)); }, answerMs);
    waiting.set(id, (message) => {
      clearTimeout(timer);
      if (message.error === undefined) resolve(message.result);
      else reject(new SetupError(`${args[0]} answered ${method} with ${JSON.stringify(message.error)}: ${said}`));
    });
    send({ id, method, params });
  });

  return {
    startedAt,
    pid: child.pid,
    /** Greets it, and asks for its tools. */
    async open() {
      await request('initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo });
      send({ method: 'notifications/initialized' });
      return await request('tools/list', {});
    },
    async call(name, given) {
      const result = await request('tools/call', { name, arguments: given });
      if (result.isError === true) throw new SetupError(`${args[0]} failed: ${JSON.stringify(result).slice(0, 2_000)}`);
      return result;
    },
    async close() {
      child.stdin.end();
      const timer = setTimeout(() => { child.kill('SIGKILL'); }, endMs);
      await exited;
      clearTimeout(timer);
    },
  };
};
