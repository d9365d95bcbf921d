/** The package as npm would install it, in a project of its own: packed, unpacked, its program linked, its dependencies those of this clone. */

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const clone = fileURLToPath(new URL('../../', import.meta.url));

export interface InstalledPackage {
  /** The folder of the project that it is installed in. */
  folder: string;
  remove(): void;
}

export function installPackage(): InstalledPackage {
  const folder = mkdtempSync(join(tmpdir(), 'mongo-leash-installed-'));
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, '.bin'), { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name: 'a-project', version: '1.0.0', private: true }));
  execFileSync('npm', ['pack', clone, '--pack-destination', folder, '--silent', '--ignore-scripts'], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  const tarball = readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '';
  execFileSync('tar', ['-xzf', tarball], { cwd: folder });
  execFileSync('mv', ['package', join('node_modules', 'mongo-leash')], { cwd: folder });
  // npm makes a program executable when it links it.
  const program = join(modules, 'mongo-leash', 'dist', 'main.js');
  chmodSync(program, 0o755);
  symlinkSync(program, join(modules, '.bin', 'mongo-leash'));
  symlinkSync(join(clone, 'node_modules'), join(modules, 'mongo-leash', 'node_modules'));
  return { folder, remove: () => { rmSync(folder, { recursive: true, force: true }); } };
}
