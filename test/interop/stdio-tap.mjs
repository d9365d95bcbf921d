/** Stands between a client and a server over stdio and writes down every line: the client starts it in place of the server. */
import process from 'node:process';
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [record, command, ...args] = process.argv.slice(2);
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });

/** Written down before it goes on: whoever sees its effect finds it in the record. */
const pass = (from, input, output) => {
  createInterface({ input }).on('line', (line) => {
    appendFileSync(record, `${JSON.stringify({ from, message: JSON.parse(line) })}\n`);
    output.write(`${line}\n`);
  });
};
pass('client', process.stdin, child.stdin);
pass('server', child.stdout, process.stdout);

process.stdin.on('end', () => {
  appendFileSync(record, `${JSON.stringify({ from: 'client', event: 'end' })}\n`);
  child.stdin.end();
});
child.stdin.on('error', () => undefined);
process.stdout.on('error', () => { child.stdout.destroy(); });
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.on(signal, () => {
    appendFileSync(record, `${JSON.stringify({ from: 'client', event: signal })}\n`);
    child.kill(signal);
  });
}
child.on('exit', (code) => { process.exitCode = code ?? 1; });
child.on('close', () => { process.stdin.destroy(); });
