/**
 * Makes a start shorter (docs/decisions/0083-short-starts.md): keeps compiled modules between starts, and finds the parts of the built
 * program without a search. Import it before other modules. Cached code is executed as it is, so nothing is cached unless the folder belongs
 * to this user alone. Older versions of Node do neither.
 */
import { lstatSync, mkdirSync } from 'node:fs';
import module from 'node:module';
import { isAbsolute, join } from 'node:path';

const { HOME, USERPROFILE, XDG_CACHE_HOME = '' } = process.env;
const home = HOME || USERPROFILE || '';
const folder = join(isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(home, '.cache'), 'jobwire');
if (isAbsolute(folder) && isPrivate(folder)) module.enableCompileCache?.(folder);

const program = getFolder(import.meta.url);
module.registerHooks?.({
  resolve: (specifier, context, next) =>
    specifier.startsWith('./chunk-') && getFolder(context.parentURL ?? '') === program
      ? { url: `${program}${specifier.slice(2)}`, format: 'module', shortCircuit: true }
      : next(specifier, context),
});

function getFolder(url: string): string {
  return url.slice(0, url.lastIndexOf('/') + 1);
}

function isPrivate(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = lstatSync(folder);
    return process.geteuid === undefined || (uid === process.geteuid() && (mode & 0o022) === 0);
  } catch {
    return false;
  }
}
