/**
 * Bodies that change only with a release or the configuration: the API documents, the page at `/docs` with its assets, the
 * event schemas. Each is compressed and hashed once per process, and served as gzip or as 304 where the client accepts that.
 */
import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { parseAccept } from 'hono/utils/accept';

/** A body with its compressed form and its entity tag. */
export interface StaticBody {
  readonly plain: Uint8Array<ArrayBuffer>;
  /** Absent for bodies too small to compress. */
  readonly gzip?: Uint8Array<ArrayBuffer>;
  /** Weak: the same for both forms. */
  readonly etag: string;
}

/** Smaller bodies are sent uncompressed. */
const GZIP_FROM_BYTES = 1_000;

/** Compresses and hashes a body. */
export function toStaticBody(content: string | Uint8Array<ArrayBuffer>): StaticBody {
  const plain = typeof content === 'string' ? new TextEncoder().encode(content) : content;
  const etag = `W/"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  return plain.length < GZIP_FROM_BYTES ? { plain, etag } : { plain, gzip: gzipSync(plain), etag };
}

/** Returns a reader of static bodies by name. Each is read and compressed once, also for concurrent requests. */
export function createStaticReader(
  read: (name: string) => Promise<Uint8Array<ArrayBuffer>>,
): (name: string) => Promise<StaticBody> {
  const bodies = new Map<string, Promise<StaticBody>>();
  return (name) => {
    const loading = bodies.get(name) ?? read(name).then(toStaticBody);
    bodies.set(name, loading);
    // A file that could not be read is read again.
    loading.catch(() => bodies.delete(name));
    return loading;
  };
}

/** A form of a static body, or the statement that the client has it. */
export interface StaticAnswer {
  readonly status: 200 | 304;
  readonly body: Uint8Array<ArrayBuffer> | null;
  readonly headers: Readonly<Record<string, string>>;
}

/** Returns the answer to a GET of a static body: 304 if `If-None-Match` has its tag, gzip if `Accept-Encoding` allows it. */
export function staticAnswer(request: Pick<Headers, 'get'>, { plain, gzip, etag }: StaticBody): StaticAnswer {
  if (isCurrent(request.get('if-none-match'), etag)) return { status: 304, body: null, headers: { etag } };
  return gzip && acceptsGzip(request.get('accept-encoding') ?? '')
    ? { status: 200, body: gzip, headers: { etag, 'content-encoding': 'gzip' } }
    : { status: 200, body: plain, headers: { etag } };
}

/** Compares tags without regard to `W/`, as RFC 9110 requires for `If-None-Match`. */
function isCurrent(ifNoneMatch: string | null, etag: string): boolean {
  if (ifNoneMatch === null) return false;
  const tags = ifNoneMatch.split(',').map((tag) => tag.trim().replace(/^W\//, ''));
  return tags.includes('*') || tags.includes(etag.replace(/^W\//, ''));
}

function acceptsGzip(acceptEncoding: string): boolean {
  const codings = parseAccept(acceptEncoding.toLowerCase());
  const gzip = codings.find(({ type }) => type === 'gzip') ?? codings.find(({ type }) => type === '*');
  return gzip !== undefined && gzip.q > 0;
}
