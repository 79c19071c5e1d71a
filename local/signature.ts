/** Verification of AWS Signature Version 4 in the Authorization header, for one pair of credentials. */
import { hash, timingSafeEqual } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { SignatureV4 } from '@smithy/signature-v4';
import { Sha256 } from '../shared/sha256.ts';
import type { AwsCredentials } from './data-dir.ts';

/** A request as received. */
export interface SignedRequest {
  readonly method: string;
  /** Path and query, as sent. */
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
}

/** Maximum clock skew of the signer, as at AWS. */
const MAX_SKEW_MS = 15 * 60_000;
const AUTHORIZATION =
  /^AWS4-HMAC-SHA256 Credential=([^/\s]+)\/(\d{8})\/([a-z0-9-]+)\/([a-z0-9]+)\/aws4_request, ?SignedHeaders=([a-z0-9;_-]+), ?Signature=([0-9a-f]{64})$/;
const DATE = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/;

/** Returns whether the headers name these credentials: the only check possible before the body is read. */
export function namesCredentials(headers: IncomingHttpHeaders, { accessKeyId }: AwsCredentials): boolean {
  return AUTHORIZATION.exec(headers.authorization ?? '')?.[1] === accessKeyId;
}

/** Returns whether the request has a signature by these credentials that covers its host, date and body. `now`: epoch ms. */
export async function isSigned(
  request: SignedRequest,
  credentials: AwsCredentials,
  now: number,
): Promise<boolean> {
  const found = AUTHORIZATION.exec(request.headers.authorization ?? '');
  const date = String(request.headers['x-amz-date']);
  if (!found || !DATE.test(date)) return false;
  const [, accessKeyId, day, region = '', service = '', names = '', signature = ''] = found;
  const signingDate = new Date(date.replace(DATE, '$1-$2-$3T$4:$5:$6Z'));
  const headers = Object.fromEntries(names.split(';').map((name) => [name, String(request.headers[name])]));
  // The signer trusts this header, so it must be the hash of the received body.
  if ('x-amz-content-sha256' in headers) headers['x-amz-content-sha256'] = hash('sha256', request.body);
  if (accessKeyId !== credentials.accessKeyId || !('host' in headers)) return false;
  if (!date.startsWith(`${day}T`) || !(Math.abs(now - signingDate.getTime()) <= MAX_SKEW_MS)) return false;
  const url = new URL(request.url, 'http://unused');
  const signer = new SignatureV4({ credentials, region, service, sha256: Sha256, applyChecksum: false });
  const signed = await signer.sign(
    {
      ...{ method: request.method, headers, body: request.body, path: url.pathname },
      ...{ protocol: 'http:', hostname: 'unused', query: Object.fromEntries(url.searchParams) },
    },
    { signingDate, signableHeaders: new Set(Object.keys(headers)) },
  );
  const expected = AUTHORIZATION.exec(String(signed.headers.authorization));
  return (
    expected?.[5] === names &&
    timingSafeEqual(Buffer.from(expected[6] ?? '', 'hex'), Buffer.from(signature, 'hex'))
  );
}
