/** Archives in the tar format (POSIX ustar), as streams. Only regular files with short names (docs/decisions/0058-own-tar-reader.md). */
import { buffer } from 'node:stream/consumers';

const BLOCK = 512;
/** Sizes from here on do not fit the octal field and are stored in binary, as GNU tar does. */
const OCTAL_LIMIT = 8 ** 11;

/** A file of an archive. */
export interface TarFile {
  /** Path in the archive, at most 100 bytes. */
  readonly name: string;
  /** Size in bytes. */
  readonly bytes: number;
  readonly content: AsyncIterable<Uint8Array>;
}

/** The archive is invalid. The message is the reason. */
export class TarError extends Error {
  override readonly name = 'TarError';
}

/** Yields an archive of the files, which only their owner can read. `modifiedAt` is epoch ms. */
export async function* writeTar(
  files: AsyncIterable<TarFile> | Iterable<TarFile>,
  modifiedAt: number,
): AsyncGenerator<Uint8Array> {
  for await (const { name, bytes, content } of files) {
    yield toHeader(name, bytes, modifiedAt);
    yield* content;
    yield Buffer.alloc(toPadding(bytes));
  }
  yield Buffer.alloc(2 * BLOCK);
}

/** Calls `onFile` for each file of an archive, in order; it must read the whole content. Throws {@link TarError}. */
export async function readTar(
  archive: AsyncIterable<Uint8Array>,
  onFile: (file: TarFile) => Promise<void>,
): Promise<void> {
  const source = archive[Symbol.asyncIterator]();
  let rest = Buffer.alloc(0);
  async function* take(bytes: number): AsyncGenerator<Buffer> {
    for (let missing = bytes; missing > 0; ) {
      if (rest.length === 0) {
        const { done, value } = await source.next();
        if (done) throw new TarError('it ends too early');
        rest = Buffer.from(value);
      }
      const part = rest.subarray(0, missing);
      rest = rest.subarray(part.length);
      missing -= part.length;
      yield part;
    }
  }
  for (;;) {
    const header = await buffer(take(BLOCK));
    if (header.every((byte) => byte === 0)) break;
    const { name, bytes } = parseHeader(header);
    await onFile({ name, bytes, content: take(bytes) });
    await buffer(take(toPadding(bytes)));
  }
  // To its end, so that a decompressor verifies its checksum.
  while (!(await source.next()).done);
}

function toPadding(bytes: number): number {
  return (BLOCK - (bytes % BLOCK)) % BLOCK;
}

/** Offset and length of a field in the header. */
const FIELDS = {
  name: [0, 100],
  mode: [100, 8],
  uid: [108, 8],
  gid: [116, 8],
  size: [124, 12],
  mtime: [136, 12],
  checksum: [148, 8],
} as const;
/** Offset of the type, and of the name of the format. */
const TYPE = 156;
const MAGIC = 257;
/** The only type of entries. Links, devices and folders are rejected. */
const FILE = '0';

function toHeader(name: string, bytes: number, modifiedAt: number): Buffer {
  const header = Buffer.alloc(BLOCK);
  const octal = (field: keyof typeof FIELDS, value: number) => {
    const [at, length] = FIELDS[field];
    header.write(value.toString(8).padStart(length - 1, '0'), at);
  };
  header.write(name, ...FIELDS.name);
  octal('mode', 0o600);
  octal('uid', 0);
  octal('gid', 0);
  octal('mtime', Math.floor(modifiedAt / 1000));
  const [size] = FIELDS.size;
  if (bytes < OCTAL_LIMIT) octal('size', bytes);
  else {
    header[size] = 0x80;
    header.writeBigUInt64BE(BigInt(bytes), size + 4);
  }
  header.write(FILE, TYPE);
  header.write('ustar\x0000', MAGIC, 'latin1');
  header.write(`${sum(header).toString(8).padStart(6, '0')}\0 `, FIELDS.checksum[0]);
  return header;
}

function parseHeader(header: Buffer): { name: string; bytes: number } {
  const text = (field: keyof typeof FIELDS): string => {
    const [at, length] = FIELDS[field];
    return header.toString('utf8', at, at + length).replace(/[\0 ].*$/s, '');
  };
  if (Number.parseInt(text('checksum'), 8) !== sum(header)) throw new TarError('a checksum is wrong');
  if (header[TYPE] !== FILE.charCodeAt(0)) throw new TarError('an entry is not a file');
  const [size] = FIELDS.size;
  const isBinary = header[size] === 0x80;
  const bytes = isBinary ? Number(header.readBigUInt64BE(size + 4)) : Number.parseInt(text('size'), 8);
  if (!Number.isSafeInteger(bytes) || bytes < 0) throw new TarError('a size is invalid');
  return { name: text('name'), bytes };
}

/** Returns the sum of all bytes, with spaces for the checksum itself. */
function sum(header: Buffer): number {
  const [at, length] = FIELDS.checksum;
  return header.reduce((total, byte, place) => total + (place >= at && place < at + length ? 32 : byte), 0);
}
