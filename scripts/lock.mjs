/** Lets one set-up of a clone run at a time: two `npm ci` in the same folder delete each other's files. */
import { createHash, randomUUID } from 'node:crypto';
import { link, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import process from 'node:process';
import { setTimeout as sleep } from 'node:timers/promises';
import { say } from './run.mjs';

const retryMs = 200;

const isAlive = (pid) => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === 'EPERM';
  }
};

/** Runs `work` when no other process holds the lock of `dir`; the lock of a process that died is taken over. */
export const withLock = async (dir, work) => {
  // Outside node_modules, which `npm ci` deletes.
  const lock = join(tmpdir(), `mongo-leash-setup-${createHash('sha256').update(dir).digest('hex').slice(0, 16)}.lock`);
  const own = `${lock}.${randomUUID()}`;
  await writeFile(own, String(process.pid));
  let told = false;
  try {
    // A link is made whole or not at all, so a lock file always holds the id of its process.
    for (;;) {
      try {
        await link(own, lock);
        break;
      } catch (error) {
        if (error.code !== 'EEXIST') throw error;
      }
      const holder = Number(await readFile(lock, 'utf8').catch(() => 'gone'));
      if (Number.isInteger(holder) && !isAlive(holder)) await rm(lock, { force: true });
      else {
        if (!told) say(`waiting for another set-up of this folder (process ${holder}, lock file ${lock})`);
        told = true;
        await sleep(retryMs);
      }
    }
  } finally {
    await rm(own, { force: true });
  }
  try {
    return await work();
  } finally {
    await rm(lock, { force: true });
  }
};
