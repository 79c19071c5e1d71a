/** Installs the programs of package.json in this folder, unless they are installed in the locked versions. */
import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';

const cwd = import.meta.dirname;
const installed = join(cwd, 'node_modules/.package-lock.json');

export default function install(): void {
  const locked = statSync(join(cwd, 'package-lock.json')).mtimeMs;
  if (existsSync(installed) && statSync(installed).mtimeMs >= locked) return;
  // An `npm run` of the repository names that as the folder to install in.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
  execFileSync('npm', ['ci'], { cwd, env, stdio: 'inherit' });
}

if (import.meta.main) install();
