/** Installs the programs of package.json in this folder, unless they are installed in the locked versions. */
import { execFileSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { delimiter, join } from 'node:path';

const cwd = import.meta.dirname;
const installed = join(cwd, 'node_modules/.package-lock.json');

export default function install(): void {
  const locked = statSync(join(cwd, 'package-lock.json')).mtimeMs;
  if (existsSync(installed) && statSync(installed).mtimeMs >= locked) return;
  // With the environment of a terminal. `npm run` in the repository would set the repository as the folder to install in, and
  // put the Node of node_modules first. With that Node, npm would not read the global configuration of the machine, such as the
  // certificates of a proxy.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
  const folders = (env.PATH ?? '').split(delimiter);
  env.PATH = folders.filter((folder) => !folder.includes('node_modules')).join(delimiter);
  execFileSync('npm', ['ci', '--loglevel=error'], { cwd, env, stdio: 'inherit' });
}

if (import.meta.main) install();
