/**
 * Makes a start shorter: keeps compiled modules between starts (since Node 22.8). Import it before other modules
 * (docs/decisions/0083-short-starts.md). Cached code is executed as it is, so nothing is cached unless the folder belongs to this user alone.
 */
import { lstatSync, mkdirSync } from 'node:fs';
import module from 'node:module';
import { isAbsolute, join } from 'node:path';

const { HOME, USERPROFILE, XDG_CACHE_HOME = '' } = process.env;
const home = HOME || USERPROFILE || '';
const folder = join(isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(home, '.cache'), 'jobwire');
if (isAbsolute(folder) && isPrivate(folder)) module.enableCompileCache?.(folder);

function isPrivate(folder: string): boolean {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const { uid, mode } = lstatSync(folder);
    return process.geteuid === undefined || (uid === process.geteuid() && (mode & 0o022) === 0);
  } catch {
    return false;
  }
}
