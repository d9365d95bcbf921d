/** A file system of a few hundred kilobytes that a test can fill: mounting one takes root on Linux. */

import { spawnSync } from 'node:child_process';
import { appendFileSync, mkdtempSync, rmSync, rmdirSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface SmallDisk {
  folder: string;
  fill(): void;
  free(): void;
  remove(): void;
}

/** Why there can be none here; null with the disk when there can. */
export function mountSmallDisk(kilobytes: number): { disk: SmallDisk; why: null } | { disk: null; why: string } {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return { disk: null, why: 'mounting a small file system takes root on Linux' };
  const folder = mkdtempSync(join(tmpdir(), 'mongo-leash-disk-'));
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${kilobytes}k`, 'tmpfs', folder], { encoding: 'utf8' });
  if (mounted.status !== 0) {
    rmdirSync(folder);
    return { disk: null, why: `a small file system cannot be mounted here: ${mounted.error?.message ?? mounted.stderr.trim()}` };
  }
  const filler = join(folder, 'filler');
  return {
    why: null,
    disk: {
      folder,
      fill() {
        // Whoever writes there meanwhile takes a part of what is left.
        for (let left = freeBytes(folder); left > 0; left = freeBytes(folder)) {
          try {
            appendFileSync(filler, Buffer.alloc(left));
          } catch (error) {
            if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
          }
        }
      },
      free: () => { rmSync(filler); },
      remove() {
        spawnSync('umount', ['-l', folder]);
        rmdirSync(folder);
      },
    },
  };
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
