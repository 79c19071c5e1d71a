/** The part of S3 that a cell uses, in memory: objects and their headers. */
import type { IncomingMessage } from 'node:http';
import type { Access } from './iam.ts';

/** A parsed request to S3. */
export interface BucketCall {
  readonly operation: 'PutObject' | 'GetObject' | 'ListObjectsV2' | 'DeleteObjects';
  readonly bucket: string;
  /** Keys: of one object, or of the objects to be deleted. */
  readonly keys: readonly string[];
  /** The required permissions. */
  readonly accesses: readonly Access[];
}

interface Kept {
  readonly body: Buffer;
  readonly headers: Readonly<Record<string, string>>;
  readonly modifiedAt: number;
}

/** A response of S3. */
export interface BucketAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | string;
}

/** Parses a request to S3. `undefined`: it is for another service. Throws for unsupported requests. */
export function parseBucketCall(request: IncomingMessage, body: Buffer): BucketCall | undefined {
  const ofHost = /^(.+)\.s3\.[a-z0-9-]+\.amazonaws\.com$/.exec(String(request.headers.host))?.[1];
  const isSigned = String(request.headers.authorization).includes('/s3/aws4_request');
  if (ofHost === undefined && !isSigned) return undefined;
  const url = new URL(request.url ?? '/', 'http://localhost');
  const [first = '', ...rest] = url.pathname.slice(1).split('/').map(decodeURIComponent);
  const bucket = ofHost ?? first;
  const key = (ofHost === undefined ? rest : [first, ...rest]).join('/');
  const arn = `arn:aws:s3:::${bucket}`;
  const of = (operation: BucketCall['operation'], action: string, keys: readonly string[]): BucketCall => ({
    ...{ operation, bucket, keys },
    accesses: keys.map((one) => ({ action: `s3:${action}`, resource: `${arn}/${one}` })),
  });
  if (request.method === 'PUT') return of('PutObject', 'PutObject', [key]);
  if (request.method === 'POST' && url.searchParams.has('delete')) {
    const keys = [...body.toString('utf8').matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, one = '']) => one);
    return of('DeleteObjects', 'DeleteObject', keys);
  }
  if (request.method === 'GET' && url.searchParams.get('list-type') === '2') {
    const accesses = [{ action: 's3:ListBucket', resource: arn }];
    return { operation: 'ListObjectsV2', bucket, keys: [], accesses };
  }
  if (request.method === 'GET') return of('GetObject', 'GetObject', [key]);
  throw new Error(`A call to S3 is not known here: ${request.method} ${request.url}.`);
}

/** The objects of all buckets. */
export class Buckets {
  readonly #buckets = new Map<string, Map<string, Kept>>();

  answer({ operation, bucket, keys }: BucketCall, request: IncomingMessage, body: Buffer): BucketAnswer {
    const objects = this.#buckets.get(bucket) ?? new Map<string, Kept>();
    this.#buckets.set(bucket, objects);
    const [key = ''] = keys;
    const xml = (status: number, text: string): BucketAnswer => ({
      ...{ status, body: text },
      headers: { 'content-type': 'application/xml' },
    });
    switch (operation) {
      case 'PutObject': {
        const said = ['content-type', 'cache-control'].flatMap((name) =>
          request.headers[name] === undefined ? [] : [[name, String(request.headers[name])] as const],
        );
        objects.set(key, { body, headers: Object.fromEntries(said), modifiedAt: Date.now() });
        return { status: 200, headers: { etag: '"0"' }, body: '' };
      }
      case 'GetObject': {
        const found = objects.get(key);
        if (!found) return xml(404, '<Error><Code>NoSuchKey</Code></Error>');
        return { status: 200, headers: found.headers, body: found.body };
      }
      case 'DeleteObjects':
        for (const one of keys) objects.delete(one);
        return xml(200, '<DeleteResult/>');
      case 'ListObjectsV2': {
        const contents = [...objects].map(
          ([name, { modifiedAt }]) =>
            `<Contents><Key>${name}</Key><LastModified>${new Date(modifiedAt).toISOString()}</LastModified></Contents>`,
        );
        return xml(
          200,
          `<ListBucketResult><IsTruncated>false</IsTruncated>${contents.join('')}</ListBucketResult>`,
        );
      }
    }
  }
}
