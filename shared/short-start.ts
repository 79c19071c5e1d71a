/**
 * Makes a start shorter (docs/decisions/0087-code-cache.md): stores compiled code between starts. Import it before other modules. Stored
 * code is executed as it is, so nothing is stored unless the folder belongs to this user alone.
 */
import { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { basename, dirname, isAbsolute, join } from 'node:path';
import vm from 'node:vm';
import zlib from 'node:zlib';

/** Time after which a program has executed what its start needs. Later, V8 discards the compiled code of functions that are not called. */
const STARTED_MS = 5_000;
/** Bytes of the checksum before the code. */
const CHECKSUM = 4;

const { HOME, NODE_DISABLE_COMPILE_CACHE, USERPROFILE, XDG_CACHE_HOME = '' } = process.env;
const home = HOME || USERPROFILE || '';
const path = join(isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(home, '.cache'), 'jobwire');
const folder = !NODE_DISABLE_COMPILE_CACHE && isAbsolute(path) && isPrivate(path) ? path : undefined;
if (folder !== undefined) module.enableCompileCache?.(folder);

/**
 * Loads a CommonJS module as `require` does, and stores its compiled code as it is after the start. Node's own cache contains only what is
 * compiled before a module is executed. `file`: its path. The file must be ASCII.
 */
export function requireCached(file: string): void {
  const source = readFileSync(file);
  const version = `${process.version}-${process.arch}-${zlib.crc32(source).toString(16)}`;
  const cacheFile = folder === undefined ? undefined : join(folder, `${basename(file)}-${version}`);
  const cached = cacheFile === undefined ? undefined : readCode(cacheFile);
  const script = new vm.Script(module.wrap(source.toString('latin1')), {
    filename: file,
    ...(cached ? { cachedData: cached } : {}),
  });
  const loaded = new module.Module(file);
  const require = module.createRequire(file);
  // Modules that are loaded later find it there.
  require.cache[file] = loaded;
  script.runInThisContext()(loaded.exports, require, loaded, file, dirname(file));
  loaded.loaded = true;
  if (cacheFile === undefined || (cached !== undefined && !script.cachedDataRejected)) return;
  const store = () => {
    clearTimeout(timer);
    process.off('exit', store);
    writeCode(cacheFile, script.createCachedData());
  };
  const timer = setTimeout(store, STARTED_MS).unref();
  process.once('exit', store);
}

/** Returns stored code. `undefined`: there is none, or the file is damaged. */
function readCode(file: string): Buffer | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch {
    return undefined;
  }
  const code = bytes.subarray(CHECKSUM);
  return code.length > 0 && bytes.readUInt32LE() === zlib.crc32(code) ? code : undefined;
}

function writeCode(file: string, code: Buffer): void {
  const checksum = Buffer.alloc(CHECKSUM);
  checksum.writeUInt32LE(zlib.crc32(code));
  const part = `${file}.${process.pid}`;
  try {
    writeFileSync(part, Buffer.concat([checksum, code]), { mode: 0o600 });
    renameSync(part, file);
  } catch {
    // The next start compiles again.
    try {
      rmSync(part, { force: true });
    } catch {}
  }
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
