/**
 * Makes a start shorter (docs/decisions/0087-kept-code.md): keeps compiled code between starts. Import it before other modules. Kept code
 * is executed as it is, so nothing is kept unless the folder belongs to this user alone.
 */
import module from 'node:module';

// An import of these modules would also load parts of them that a start does not need.
const require = module.createRequire(import.meta.url);
const { lstatSync, mkdirSync, readFileSync, renameSync, writeFileSync }: typeof import('node:fs') =
  require('node:fs');
const { isAbsolute, join }: typeof import('node:path') = require('node:path');
const vm: typeof import('node:vm') = require('node:vm');
const zlib: typeof import('node:zlib') = require('node:zlib');

/** Time after which a program has executed what its start needs. Later, V8 discards the compiled code of functions that are not called. */
const STARTED_MS = 5_000;
/** Bytes of the checksum before kept code. */
const CHECKSUM = 4;

const { HOME, USERPROFILE, XDG_CACHE_HOME = '' } = process.env;
const home = HOME || USERPROFILE || '';
const path = join(isAbsolute(XDG_CACHE_HOME) ? XDG_CACHE_HOME : join(home, '.cache'), 'jobwire');
const folder = isAbsolute(path) && isPrivate(path) ? path : undefined;
if (folder !== undefined) module.enableCompileCache?.(folder);

/**
 * Loads a part of a program that exports `T`: by `load` from the sources, otherwise as `name`.cjs beside the caller, which
 * bundles.ts writes. Node's own cache contains only what is compiled before a file is executed. For this part, the functions that a
 * start calls are kept, too. `meta`: `import.meta` of the caller.
 */
export async function loadProgram<T>(load: () => Promise<T>, meta: ImportMeta, name: string): Promise<T> {
  if (meta.filename.endsWith('.ts')) return load();
  const filename = join(meta.dirname, `${name}.cjs`);
  const source = readFileSync(filename);
  const version = `${process.version}-${process.arch}-${zlib.crc32(source).toString(16)}`;
  const keptFile = folder === undefined ? undefined : join(folder, `${name}-${version}`);
  const kept = keptFile === undefined ? undefined : readKept(keptFile);
  const script = new vm.Script(source.toString('latin1'), {
    filename,
    ...(kept ? { cachedData: kept } : {}),
  });
  const loaded: { exports?: T } = {};
  script.runInThisContext()(module.createRequire(filename), loaded, meta);
  if (keptFile !== undefined && (kept === undefined || script.cachedDataRejected)) {
    const keep = () => {
      clearTimeout(timer);
      process.off('exit', keep);
      writeKept(keptFile, script.createCachedData());
    };
    const timer = setTimeout(keep, STARTED_MS).unref();
    process.once('exit', keep);
  }
  return loaded.exports as T;
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
