/**
 * Makes a start shorter (docs/decisions/0087-kept-code.md): keeps compiled code between starts. Import it before other modules. Kept code
 * is executed as it is, so nothing is kept unless the folder belongs to this user alone.
 */
import module from 'node:module';

// An import of these modules would also load parts of them that a start does not need.
const require = module.createRequire(import.meta.url);
const { lstatSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync }: typeof import('node:fs') =
  require('node:fs');
const { basename, dirname, isAbsolute, join }: typeof import('node:path') = require('node:path');
const vm: typeof import('node:vm') = require('node:vm');
const zlib: typeof import('node:zlib') = require('node:zlib');

/** Time after which a program has executed what its start needs. Later, V8 discards the compiled code of functions that are not called. */
const STARTED_MS = 5_000;
/** Bytes of the checksum before kept code. */
const CHECKSUM = 4;

const { HOME, NODE_DISABLE_COMPILE_CACHE, USERPROFILE, XDG_CACHE_HOME = '' } = process.env;
const home = HOME || USERPROFILE || '';
const path = join(isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(home, '.cache'), 'jobwire');
const folder = !NODE_DISABLE_COMPILE_CACHE && isAbsolute(path) && isPrivate(path) ? path : undefined;
if (folder !== undefined) module.enableCompileCache?.(folder);

/**
 * Loads a CommonJS module as `require` does, but keeps its compiled code as it is after the start. Node's own cache contains only what is
 * compiled before a module is executed. `file`: its path. The file must be ASCII.
 */
export function requireKept(file: string): void {
  const source = readFileSync(file);
  const version = `${process.version}-${process.arch}-${zlib.crc32(source).toString(16)}`;
  const keptFile = folder === undefined ? undefined : join(folder, `${basename(file)}-${version}`);
  const kept = keptFile === undefined ? undefined : readKept(keptFile);
  const script = new vm.Script(module.wrap(source.toString('latin1')), {
    filename: file,
    ...(kept ? { cachedData: kept } : {}),
  });
  const loaded = new module.Module(file);
  const require = module.createRequire(file);
  // Modules that are loaded later find it there.
  require.cache[file] = loaded;
  script.runInThisContext()(loaded.exports, require, loaded, file, dirname(file));
  if (keptFile === undefined || (kept !== undefined && !script.cachedDataRejected)) return;
  const keep = () => {
    clearTimeout(timer);
    process.off('exit', keep);
    writeKept(keptFile, script.createCachedData());
  };
  const timer = setTimeout(keep, STARTED_MS).unref();
  process.once('exit', keep);
}

/** Returns kept code. `undefined`: there is none, or the file is damaged. */
function readKept(file: string): Buffer | undefined {
  let bytes: Buffer;
  try {
    bytes = readFileSync(file);
  } catch {
    return undefined;
  }
  const code = bytes.subarray(CHECKSUM);
  return code.length > 0 && bytes.readUInt32LE() === zlib.crc32(code) ? code : undefined;
}

function writeKept(file: string, code: Buffer): void {
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
