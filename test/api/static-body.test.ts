/** Static bodies: compressed if the client accepts gzip, and 304 if it has them. */
import { gunzipSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { createStaticReader, staticAnswer, toStaticBody } from '../../shared/api/static-body.ts';

const large = toStaticBody('a document '.repeat(1_000));
const small = toStaticBody('{}');
const ask = (headers: Record<string, string>, body = large) => staticAnswer(new Headers(headers), body);

describe('staticAnswer', () => {
  test.each(['gzip', 'br, gzip;q=0.5', 'deflate,GZIP ; q=1.0', '*', 'br;q=1, *;q=0.1'])(
    'sends gzip to a client that accepts %s',
    (accepted) => {
      const { status, body, headers } = ask({ 'accept-encoding': accepted });
      expect(status).toBe(200);
      expect(headers).toMatchObject({ 'content-encoding': 'gzip', etag: large.etag });
      expect(gunzipSync(body ?? '').equals(Buffer.from(large.plain))).toBe(true);
    },
  );

  test.each(['', 'br', 'gzip;q=0', 'gzip;q=0.0', 'x-gzip', '*, gzip;q=0', 'identity'])(
    'sends no gzip to a client that accepts "%s"',
    (accepted) => {
      const { body, headers } = ask({ 'accept-encoding': accepted });
      expect(headers).not.toHaveProperty('content-encoding');
      expect(body).toBe(large.plain);
    },
  );

  test('sends a small body uncompressed', () => {
    expect(ask({ 'accept-encoding': 'gzip' }, small)).toEqual({
      ...{ status: 200, body: small.plain },
      headers: { etag: small.etag },
    });
    expect(gzipSync(small.plain).length).toBeGreaterThan(small.plain.length);
  });

  test.each([large.etag, `"other", ${large.etag}`, large.etag.replace('W/', ''), '*'])(
    'sends 304 without a body to a client that has %s',
    (etag) => {
      expect(ask({ 'if-none-match': etag, 'accept-encoding': 'gzip' })).toEqual({
        ...{ status: 304, body: null },
        headers: { etag: large.etag },
      });
    },
  );

  test.each(['"other"', 'W/"other"', '', large.etag.slice(0, -2)])(
    'sends the body to a client that has "%s"',
    (etag) => {
      expect(ask({ 'if-none-match': etag })).toMatchObject({ status: 200, body: large.plain });
    },
  );

  test('gives different contents different tags, and the same content the same', () => {
    expect(toStaticBody('{}').etag).toBe(small.etag);
    expect(toStaticBody('[]').etag).not.toBe(small.etag);
  });
});

describe('createStaticReader', () => {
  test('reads a file once, also for concurrent requests, and again after a failure', async () => {
    const names: string[] = [];
    const read = createStaticReader(async (name) => {
      names.push(name);
      if (names.length === 1) throw new Error('not there');
      return new TextEncoder().encode('x');
    });
    await expect(read('a')).rejects.toThrow('not there');
    const [first, ...others] = await Promise.all([read('a'), read('a'), read('a')]);
    for (const other of others) expect(other).toBe(first);
    expect(await read('a')).toBe(first);
    expect(names).toEqual(['a', 'a']);
  });
});
