/** A file system of a few hundred kilobytes that a test can fill: mounting one takes root on Linux. */

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, rmdirSync, statfsSync, writeFileSync } from 'node:fs';
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
        const { bavail, bsize } = statfsSync(folder);
        writeFileSync(filler, Buffer.alloc(bavail * bsize));
      },
      free: () => { rmSync(filler); },
      remove() {
        spawnSync('umount', ['-l', folder]);
        rmdirSync(folder);
      },
    },
  };
}
