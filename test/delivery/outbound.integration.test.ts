/**
 * Outgoing requests: public addresses, URLs, the guard on connections, failures, certificates and connection reuse.
 * One file: its tests share the connection pool on fake name resolution and the local servers.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type ServerOptions } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { setDefaultCACertificates } from 'node:tls';
import fc from 'fast-check';
import ipaddr from 'ipaddr.js';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { parseConfig } from '../../shared/config.ts';
import { checkUrl, createConnectionPool, MAX_POOLED } from '../../shared/delivery/outbound.ts';
import { classifyNonPublic, NOT_PUBLIC } from '../../shared/delivery/public-addresses.ts';
import { type Certificate, makeCertificate } from '../support/certificates.ts';
import { runs } from '../support/runs.ts';

/** Names the setting for receivers in a private network. */
const HINT =
  ' (to allow it on a self-hosted Jobwire, set webhooks.allowPrivateNetworks to true in its configuration; for development, use jobwire listen, which needs no endpoint)';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** Each range: the address before it, its first, its last, the one after it; and whether each is public. */
const EDGES = `
0.0.0.0/8 | - | 0.0.0.0 this network | 0.255.255.255 this network | 1.0.0.0 public
10.0.0.0/8 | 9.255.255.255 public | 10.0.0.0 private | 10.255.255.255 private | 11.0.0.0 public
100.64.0.0/10 | 100.63.255.255 public | 100.64.0.0 shared by a carrier | 100.127.255.255 shared by a carrier | 100.128.0.0 public
127.0.0.0/8 | 126.255.255.255 public | 127.0.0.0 loopback | 127.255.255.255 loopback | 128.0.0.0 public
169.254.0.0/16 | 169.253.255.255 public | 169.254.0.0 link-local | 169.254.255.255 link-local | 169.255.0.0 public
168.63.129.16/32 | 168.63.129.15 public | 168.63.129.16 a cloud platform | 168.63.129.16 a cloud platform | 168.63.129.17 public
172.16.0.0/12 | 172.15.255.255 public | 172.16.0.0 private | 172.31.255.255 private | 172.32.0.0 public
192.0.0.0/24 | 191.255.255.255 public | 192.0.0.0 protocol assignments | 192.0.0.255 protocol assignments | 192.0.1.0 public
192.0.2.0/24 | 192.0.1.255 public | 192.0.2.0 documentation | 192.0.2.255 documentation | 192.0.3.0 public
192.31.196.0/24 | 192.31.195.255 public | 192.31.196.0 AS112 | 192.31.196.255 AS112 | 192.31.197.0 public
192.52.193.0/24 | 192.52.192.255 public | 192.52.193.0 AMT | 192.52.193.255 AMT | 192.52.194.0 public
192.88.99.0/24 | 192.88.98.255 public | 192.88.99.0 6to4 relays | 192.88.99.255 6to4 relays | 192.88.100.0 public
192.168.0.0/16 | 192.167.255.255 public | 192.168.0.0 private | 192.168.255.255 private | 192.169.0.0 public
192.175.48.0/24 | 192.175.47.255 public | 192.175.48.0 AS112 | 192.175.48.255 AS112 | 192.175.49.0 public
198.18.0.0/15 | 198.17.255.255 public | 198.18.0.0 benchmarking | 198.19.255.255 benchmarking | 198.20.0.0 public
198.51.100.0/24 | 198.51.99.255 public | 198.51.100.0 documentation | 198.51.100.255 documentation | 198.51.101.0 public
203.0.113.0/24 | 203.0.112.255 public | 203.0.113.0 documentation | 203.0.113.255 documentation | 203.0.114.0 public
224.0.0.0/4 | 223.255.255.255 public | 224.0.0.0 multicast | 239.255.255.255 multicast | 240.0.0.0 reserved
255.255.255.255/32 | 255.255.255.254 reserved | 255.255.255.255 broadcast | 255.255.255.255 broadcast | -
240.0.0.0/4 | 239.255.255.255 multicast | 240.0.0.0 reserved | 255.255.255.255 broadcast | -
::/128 | - | :: unspecified | :: unspecified | ::1 loopback
::1/128 | :: unspecified | ::1 loopback | ::1 loopback | ::2 IPv4-compatible
::ffff:0:0/96 | ::fffe:ffff:ffff reserved | ::ffff:0:0 IPv4-mapped | ::ffff:ffff:ffff IPv4-mapped | ::1:0:0:0 reserved
::ffff:0:0:0/96 | ::fffe:ffff:ffff:ffff reserved | ::ffff:0:0:0 IPv4-translated | ::ffff:0:ffff:ffff IPv4-translated | ::ffff:1:0:0 reserved
::/96 | - | :: unspecified | ::ffff:ffff IPv4-compatible | ::1:0:0 reserved
64:ff9b::/96 | 64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff reserved | 64:ff9b:: NAT64 | 64:ff9b::ffff:ffff NAT64 | 64:ff9b::1:0:0 reserved
64:ff9b:1::/48 | 64:ff9b:0:ffff:ffff:ffff:ffff:ffff reserved | 64:ff9b:1:: NAT64 | 64:ff9b:1:ffff:ffff:ffff:ffff:ffff NAT64 | 64:ff9b:2:: reserved
100::/64 | ff:ffff:ffff:ffff:ffff:ffff:ffff:ffff reserved | 100:: discarded | 100::ffff:ffff:ffff:ffff discarded | 100:0:0:1:: reserved
2001::/32 | 2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff public | 2001:: Teredo | 2001:0:ffff:ffff:ffff:ffff:ffff:ffff Teredo | 2001:1:: protocol assignments
2001:2::/48 | 2001:1:ffff:ffff:ffff:ffff:ffff:ffff protocol assignments | 2001:2:: benchmarking | 2001:2:0:ffff:ffff:ffff:ffff:ffff benchmarking | 2001:2:1:: protocol assignments
2001:10::/28 | 2001:f:ffff:ffff:ffff:ffff:ffff:ffff protocol assignments | 2001:10:: ORCHID | 2001:1f:ffff:ffff:ffff:ffff:ffff:ffff ORCHID | 2001:20:: ORCHID
2001:20::/28 | 2001:1f:ffff:ffff:ffff:ffff:ffff:ffff ORCHID | 2001:20:: ORCHID | 2001:2f:ffff:ffff:ffff:ffff:ffff:ffff ORCHID | 2001:30:: protocol assignments
2001::/23 | 2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff public | 2001:: Teredo | 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff protocol assignments | 2001:200:: public
2001:db8::/32 | 2001:db7:ffff:ffff:ffff:ffff:ffff:ffff public | 2001:db8:: documentation | 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff documentation | 2001:db9:: public
2002::/16 | 2001:ffff:ffff:ffff:ffff:ffff:ffff:ffff public | 2002:: 6to4 | 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff 6to4 | 2003:: public
2620:4f:8000::/48 | 2620:4f:7fff:ffff:ffff:ffff:ffff:ffff public | 2620:4f:8000:: AS112 | 2620:4f:8000:ffff:ffff:ffff:ffff:ffff AS112 | 2620:4f:8001:: public
3ffe::/16 | 3ffd:ffff:ffff:ffff:ffff:ffff:ffff:ffff public | 3ffe:: 6bone | 3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 6bone | 3fff:: documentation
3fff::/20 | 3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff 6bone | 3fff:: documentation | 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff documentation | 3fff:1000:: public
5f00::/16 | 5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff reserved | 5f00:: segment routing | 5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff segment routing | 5f01:: reserved
fc00::/7 | fbff:ffff:ffff:ffff:ffff:ffff:ffff:ffff reserved | fc00:: unique local | fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff unique local | fe00:: reserved
fe80::/10 | fe7f:ffff:ffff:ffff:ffff:ffff:ffff:ffff reserved | fe80:: link-local | febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff link-local | fec0:: site-local
fec0::/10 | febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff link-local | fec0:: site-local | feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff site-local | ff00:: multicast
ff00::/8 | feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff site-local | ff00:: multicast | ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff multicast | -
`
  .trim()
  .split('\n')
  .map((line) => line.split(' | '));

describe('public addresses', () => {
  test.each(EDGES)('%s: from its first to its last address only', (range, ...edges) => {
    const [, what] = NOT_PUBLIC.find(([row]) => row === range) ?? [];
    expect(what).toBeDefined();
    for (const edge of edges.filter((text) => text !== '-')) {
      const [address = '', ...words] = edge.split(' ');
      expect(classifyNonPublic(address) ?? 'public', address).toBe(words.join(' '));
    }
  });

  test('the edges of every range are tested', () => {
    expect(EDGES.map(([range]) => range)).toEqual(NOT_PUBLIC.map(([range]) => range));
  });

  test.each([
    ['169.254.169.254', 'link-local'],
    ['169.254.170.2', 'link-local'],
    ['fd00:ec2::254', 'unique local'],
    ['100.100.100.200', 'shared by a carrier'],
    ['192.0.0.192', 'protocol assignments'],
    ['168.63.129.16', 'a cloud platform'],
  ])('%s, the metadata address of a cloud, is %s', (address, what) => {
    expect(classifyNonPublic(address)).toBe(what);
  });

  test.each(['8.8.8.8', '1.1.1.1', '52.95.110.1', '2606:4700::1111', '2a00:1450:4001::1', '2400:cb00::1'])(
    '%s is public',
    (address) => {
      expect(classifyNonPublic(address)).toBeUndefined();
    },
  );

  test.each(['::ffff:8.8.8.8', '::8.8.8.8', '64:ff9b::808:808', '2002:808:808::1', '4000::1', '1fff::1'])(
    '%s is not, although its embedded IPv4 address may be: IPv6 is public within 2000::/3 only',
    (address) => {
      expect(classifyNonPublic(address)).toBeDefined();
    },
  );

  test.each(['', 'example.com', '8.8.8', '08.8.8.8', '2606:4700::1111%eth0', 'fe80::1%1', '::1%'])(
    'a value that is not a plain address is not public: %j',
    (address) => {
      expect(classifyNonPublic(address)).toBe('not an address');
    },
  );

  test('an independent table of the same registries agrees on any address', () => {
    // Public for ipaddr.js only.
    const ours = new Set(['a cloud platform', '6bone']);
    const agrees = (address: string): void => {
      const what = classifyNonPublic(address);
      const unicast = ipaddr.parse(address).range() === 'unicast';
      const global = !address.includes(':') || ipaddr.parse(address).match(ipaddr.parseCIDR('2000::/3'));
      if (what === undefined || !(ours.has(what) || !global))
        expect([address, what === undefined]).toEqual([address, unicast]);
    };
    for (const [, ...edges] of EDGES) {
      for (const edge of edges) if (edge !== '-') agrees(edge.split(' ')[0] ?? '');
    }
    fc.assert(fc.property(fc.ipV4(), agrees), runs(200, 2_000));
    const word = fc.integer({ min: 0, max: 0xffff });
    const words = fc.tuple(
      fc.oneof(word, fc.integer({ min: 0x2000, max: 0x3fff })),
      fc.array(word, { minLength: 7, maxLength: 7 }),
    );
    const ipV6 = words.map(([first, rest]) => [first, ...rest].map((part) => part.toString(16)).join(':'));
    fc.assert(fc.property(ipV6, agrees), runs(200, 2_000));
  });
});

describe('URLs of endpoints', () => {
  test.each([
    ['127.0.0.1', 'loopback'],
    ['127.0.0.1.', 'loopback'],
    ['2130706433', 'loopback'],
    ['0x7f.1', 'loopback'],
    ['0x7f000001', 'loopback'],
    ['0177.0.0.1', 'loopback'],
    ['127.1', 'loopback'],
    ['①②⑦.0.0.1', 'loopback'],
    ['127。0。0。1', 'loopback'],
    ['0', 'this network'],
    ['10.1.2.3', 'private'],
    ['169.254.169.254', 'link-local'],
    ['0xa9fea9fe', 'link-local'],
    ['[::1]', 'loopback'],
    ['[0:0:0:0:0:0:0:1]', 'loopback'],
    ['[::]', 'unspecified'],
    ['[::ffff:10.0.0.1]', 'IPv4-mapped'],
    ['[::ffff:a9fe:a9fe]', 'IPv4-mapped'],
    ['[::127.0.0.1]', 'IPv4-compatible'],
    ['[64:ff9b::7f00:1]', 'NAT64'],
    ['[2002:7f00:1::]', '6to4'],
    ['[fd00:ec2::254]', 'unique local'],
  ])('https://%s is rejected: %s', (host, what) => {
    for (const url of [`https://${host}/`, `https://${host}:8443/hook?key=1`]) {
      expect(checkUrl(url, false)).toBe(`Its host is not a public address: ${what}${HINT}.`);
      expect(checkUrl(url, true)).toBeUndefined();
    }
  });

  test.each([
    'localhost',
    'LOCALHOST',
    'localhost.',
    'localhost..',
    'ｌｏｃａｌｈｏｓｔ',
    'a.localhost',
    'printer.local',
    'metadata.google.internal',
    'metadata.google.internal.',
    'nas.home.arpa',
  ])('https://%s is rejected before the name is resolved', (host) => {
    expect(checkUrl(`https://${host}/`, false)).toBe(`Its host name belongs to a private network${HINT}.`);
    expect(checkUrl(`https://${host}/`, true)).toBeUndefined();
  });

  test.each([
    'https://example.com',
    'https://example.com:80/',
    'https://example.com:443/a?b=c',
    'https://example.com:1024/',
    'https://example.com:8443/',
    'https://example.com:65535/',
    'https://localhost.example.com/',
    'https://8.8.8.8/',
    'https://[2606:4700::1111]/',
  ])('%s is accepted', (url) => {
    expect(checkUrl(url, false)).toBeUndefined();
  });

  test.each([
    ['example.com', 'It is not a URL.'],
    ['https://[fe80::1%25eth0]/', 'It is not a URL.'],
    ['https://1.2.3.4.5/', 'It is not a URL.'],
    ['http://example.com/', `It must begin with https://${HINT}.`],
    ['ftp://example.com/', 'It must begin with https://.'],
    ['https://user@example.com/', 'It must not contain a user name or password.'],
    ['https://:word@example.com/', 'It must not contain a user name or password.'],
    ['https://example.com:22/', 'Its port must be 443, 80, or 1024 and above.'],
    ['https://example.com:1023/', 'Its port must be 443, 80, or 1024 and above.'],
    ['https://example.com:0/', 'Its port must be 443, 80, or 1024 and above.'],
  ])('%s is rejected: %s', (url, sentence) => {
    expect(checkUrl(url, false)).toBe(sentence);
  });

  test('allowing private networks also allows http:// and any port, and nothing else', () => {
    expect(checkUrl('http://10.0.0.1:22/', true)).toBeUndefined();
    expect(checkUrl('ftp://10.0.0.1/', true)).toBe('It must begin with https:// or http://.');
    expect(checkUrl('http://me@10.0.0.1/', true)).toBe('It must not contain a user name or password.');
  });
});

describe('a configuration', () => {
  test.each([
    ['https://10.0.0.1/', `Its host is not a public address: private${HINT}`],
    ['http://example.com/', `It must begin with https://${HINT}`],
    ['https://a:b@example.com/', 'It must not contain a user name or password'],
  ])('with the endpoint %s is rejected by the same rules', (url, sentence) => {
    const endpoint = { id: 'erp', url, secret: `whsec_${Buffer.alloc(24, 7).toString('base64')}` };
    const region = { baseUrl: 'https://a.example/api', authUrl: 'https://a.example', realm: 'us' };
    expect(() => parseConfig({ regions: { us: region }, accounts: [], endpoints: [endpoint] }, {})).toThrow(
      `endpoints[0].url is not accepted: ${sentence}.`,
    );
  });

  test.each(['topic', 'sns', 'sns-standard', 'event-bus', 'notifications'])(
    'with an endpoint named %s is rejected',
    (id) => {
      const secret = `whsec_${Buffer.alloc(24, 7).toString('base64')}`;
      const region = { baseUrl: 'https://a.example/api', authUrl: 'https://a.example', realm: 'us' };
      const endpoints = [{ id, url: 'https://erp.example.com/', secret }];
      expect(() => parseConfig({ regions: { us: region }, accounts: [], endpoints }, {})).toThrow(
        /^endpoints\[0\]\.id must not be topic, sns-standard, sns, event-bus or notifications: built-in sinks have these names\.$/,
      );
    },
  );
});

const SECRET_PATH = '/key-in-the-path?token=key-in-the-query';

describe('the guard on connections', () => {
  test('a name with private and public addresses is connected at a public one only', async () => {
    const inside = await startServer('127.0.0.1', answerWith(204));
    const outside = await startServer('127.0.0.2', answerWith(204), inside.port);
    const asked: string[] = [];
    const client = createClient({
      allowPrivateNetworks: false,
      resolve: async (name) => {
        asked.push(name);
        return [ipv4('127.0.0.1'), ipv4('127.0.0.2')];
      },
      checkAddress: (address) => (address === '127.0.0.1' ? 'private' : undefined),
    });
    // The certificate does not matter here, only the connected address.
    const url = `https://both.example:${inside.port}/`;
    expect(await client.post(url)).toMatchObject({ kind: 'failed', sent: false });
    expect([inside.connections(), outside.connections()]).toEqual([0, 1]);
    expect(asked).toEqual(['both.example']);
  });

  test('a name whose address changes between check and connection is connected at the checked one', async () => {
    const inside = await startServer('127.0.0.1', answerWith(204));
    const outside = await startServer('127.0.0.2', answerWith(204), inside.port);
    const answers = [[ipv4('127.0.0.2')], [ipv4('127.0.0.1')], [ipv4('127.0.0.1')]];
    const client = createClient({
      allowPrivateNetworks: false,
      resolve: async () => answers.shift() ?? [],
      checkAddress: (address) => (address === '127.0.0.1' ? 'private' : undefined),
    });
    const url = `https://rebinding.example:${inside.port}/`;
    expect(await client.post(url)).toMatchObject({ kind: 'failed', sent: false });
    expect(answers).toHaveLength(2);
    expect(await client.post(url)).toEqual({
      kind: 'failed',
      reason: 'The host name of the endpoint has no public address.',
      sent: false,
    });
    expect([inside.connections(), outside.connections()]).toEqual([0, 1]);
  });

  test('connections to a name share a lookup in progress, also those of several endpoints', async () => {
    const server = await startServer('127.0.0.1', answerWith(204));
    const waiting: (() => void)[] = [];
    const pool = createConnectionPool({
      allowPrivateNetworks: true,
      resolve: async () => {
        await new Promise<void>((done) => waiting.push(done));
        return [ipv4('127.0.0.1')];
      },
    });
    try {
      const send = (endpoint: string) =>
        pool.of(endpoint, 8).post(`http://slow.example:${server.port}/`, {}, '{}');
      const sent = ['a', 'a', 'a', 'b', 'b'].map(send);
      await setImmediate();
      expect(waiting).toHaveLength(1);
      for (const done of waiting) done();
      for (const one of sent) expect(await one).toMatchObject({ kind: 'answered', status: 204 });
      const later = send('c');
      await setImmediate();
      expect(waiting, 'a new lookup for a later connection').toHaveLength(2);
      waiting[1]?.();
      expect(await later).toMatchObject({ status: 204 });
    } finally {
      pool.close();
    }
  });

  test.each(['localtest.example', 'LOCALTEST.example.', 'a.b'])(
    '%s, which has private addresses only, is not connected',
    async (host) => {
      const server = await startServer('127.0.0.1', answerWith(204));
      const client = createClient({
        allowPrivateNetworks: false,
        resolve: async () => [
          ipv4('127.0.0.1'),
          { address: '::1', family: 6 },
          { address: '::ffff:7f00:1', family: 6 },
        ],
      });
      expect(await client.post(`https://${host}:${server.port}/`)).toEqual({
        kind: 'failed',
        reason: 'The host name of the endpoint has no public address.',
        sent: false,
      });
      expect(server.connections()).toBe(0);
    },
  );

  test.each([
    '127.0.0.1',
    '2130706433',
    '0x7f.1',
    '127.0.0.1.',
    '[::ffff:127.0.0.1]',
    'localhost',
    'localhost.',
  ])('https://%s is not connected', async (host) => {
    const server = await startServer('127.0.0.1', answerWith(204));
    const client = createClient({ allowPrivateNetworks: false });
    const answer = await client.post(`https://${host}:${server.port}/`);
    expect(answer).toMatchObject({ kind: 'failed', sent: false });
    expect(answer).toHaveProperty(
      'reason',
      expect.stringMatching(/^The URL of the endpoint is not accepted\. Its host /),
    );
    expect(server.connections()).toBe(0);
  });

  test('a literal address is checked by the same rule as those of names', async () => {
    const server = await startServer('127.0.0.2', answerWith(204));
    const client = createClient({ allowPrivateNetworks: false, checkAddress: () => 'somebody else’s' });
    expect(await client.post(`https://8.8.8.8:${server.port}/`)).toEqual({
      kind: 'failed',
      reason: "The endpoint's address is not public (somebody else’s).",
      sent: false,
    });
  });

  test('a redirect is an ordinary answer', async () => {
    const server = await startServer('127.0.0.1', answerWith(307, { location: '/elsewhere' }));
    expect(await createClient().post(server.url)).toMatchObject({ kind: 'answered', status: 307 });
    expect(server.requests()).toBe(1);
  });
});

describe('failures', () => {
  test('the port is closed', async () => {
    const server = await startServer('127.0.0.1', answerWith(204));
    await server.stop();
    expect(await createClient().post(server.url)).toEqual(
      notSent('The endpoint refused the connection (ECONNREFUSED).'),
    );
  });

  test('the name does not exist', async () => {
    const resolve = () =>
      Promise.reject(
        Object.assign(new Error('key-in-the-path'), { code: 'ENOTFOUND', syscall: 'getaddrinfo' }),
      );
    expect(await createClient({ resolve }).post('http://nobody.example/')).toEqual(
      notSent('The host name of the endpoint does not exist (ENOTFOUND).'),
    );
  });

  test('the name cannot be resolved', async () => {
    const resolve = () =>
      Promise.reject(
        Object.assign(new Error('key-in-the-path'), { code: 'EAI_AGAIN', syscall: 'getaddrinfo' }),
      );
    expect(await createClient({ resolve }).post('http://nobody.example/')).toEqual(
      notSent('The host name of the endpoint could not be resolved (EAI_AGAIN).'),
    );
  });

  test('name resolution takes more than 5 s', async () => {
    const asked = happening();
    const resolve = () => {
      asked.happens();
      return new Promise<never>(() => undefined);
    };
    const exchange = overdue(5_000, asked, () => createClient({ resolve }).post('http://slow.example/'));
    expect(await exchange).toEqual(notSent('The connection to the endpoint timed out.'));
  });

  test('the TLS handshake takes more than 5 s', async () => {
    const greeted = happening();
    const server = await startTcp(greeted.happens);
    const exchange = overdue(5_000, greeted, () =>
      createClient().post(server.url.replace('http:', 'https:')),
    );
    expect(await exchange).toEqual(notSent('The TLS handshake with the endpoint timed out.'));
    await server.closed();
  });

  test('the endpoint does not answer within 15 s', async () => {
    const asked = happening();
    const server = await startServer('127.0.0.1', asked.happens);
    const exchange = overdue(15_000, asked, () => createClient().post(server.url));
    expect(await exchange).toEqual(sent('The endpoint did not respond in time.'));
    await server.closed();
  });

  test('the endpoint does not answer a request that waited for its only connection within 15 s', async () => {
    const asked = happening();
    const server = await startServer('127.0.0.1', (_, response) =>
      server.requests() === 1 ? response.end() : asked.happens(),
    );
    const client = createClient({}, 1);
    const exchange = overdue(15_000, asked, async () => {
      const [, waited] = await Promise.all([client.post(server.url), client.post(server.url)]);
      return waited;
    });
    expect(await exchange).toEqual(sent('The endpoint did not respond in time.'));
    await server.closed();
  });

  test('its headers arrive byte by byte', async () => {
    const begun = happening();
    const server = await startTcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      drip(socket, 'x: y\r\n', begun.happens);
    });
    const exchange = overdue(15_000, begun, () => createClient().post(server.url));
    expect(await exchange).toEqual(sent('The endpoint did not respond in time.'));
    await server.closed();
  });

  test('its body arrives byte by byte', async () => {
    const begun = happening();
    const server = await startTcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 50000\r\n\r\nbeginning ');
      drip(socket, '.', begun.happens);
    });
    const exchange = overdue(15_000, begun, () => createClient().post(server.url));
    expect(await exchange).toEqual({
      ...sent('The endpoint did not complete its response in time.'),
      answer: { status: 200, excerpt: expect.stringMatching(/^beginning \.*$/) },
    });
    await server.closed();
  });

  test('it sends only interim answers', async () => {
    const begun = happening();
    const server = await startTcp((socket) =>
      socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(5), begun.happens),
    );
    const exchange = overdue(15_000, begun, () => createClient().post(server.url));
    expect(await exchange).toEqual(sent('The endpoint did not respond in time.'));
    await server.closed();
  });

  test('it floods the connection with interim answers: it is closed after 100 of them', async () => {
    const server = await startTcp((socket) => flood(socket, 'HTTP/1.1 102 Processing\r\n\r\n'));
    expect(await createClient().post(server.url)).toEqual(
      sent('The endpoint sent too many interim responses.'),
    );
    await server.closed();
    const fair = await startTcp((socket) =>
      socket.write(`${'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(100)}HTTP/1.1 204 No Content\r\n\r\n`),
    );
    expect(await createClient().post(fair.url)).toMatchObject({ kind: 'answered', status: 204 });
  });

  test('it closes the connection after the request was sent', async () => {
    const server = await startTcp((socket) => socket.resetAndDestroy());
    expect(await createClient().post(server.url)).toEqual(
      sent('The endpoint closed the connection before it responded (ECONNRESET).'),
    );
    expect(server.connections()).toBe(1);
  });

  test('it closes the connection without an answer', async () => {
    const server = await startTcp((socket) => socket.end());
    expect(await createClient().post(server.url)).toEqual(
      sent('The endpoint closed the connection before it responded (ECONNRESET).'),
    );
    expect(server.connections()).toBe(1);
  });

  test('it closes the connection within its answer', async () => {
    const server = await startTcp((socket) =>
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nthe beginning', () => socket.end()),
    );
    expect(await createClient().post(server.url)).toEqual({
      ...sent('The endpoint closed the connection before its response was complete (ECONNRESET).'),
      answer: { status: 200, excerpt: 'the beginning' },
    });
  });

  test('its answer is not HTTP', async () => {
    const server = await startTcp((socket) => socket.end('220 mail.example ESMTP\r\n'));
    expect(await createClient().post(server.url)).toEqual(
      sent(expect.stringMatching(/^The endpoint's response is not valid HTTP \(HPE_\w+\)\.$/)),
    );
  });

  test('its headers are endless, or longer than 16 kB', async () => {
    const server = await startTcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      flood(socket, `x: ${'y'.repeat(1000)}\r\n`);
    });
    const tooLong = sent("The headers of the endpoint's response are too long (HPE_HEADER_OVERFLOW).");
    expect(await createClient().post(server.url)).toEqual(tooLong);
    await server.closed();
    const long = await startServer('127.0.0.1', answerWith(200, { x: 'y'.repeat(17_000) }));
    expect(await createClient().post(long.url)).toEqual(tooLong);
    const fair = await startServer('127.0.0.1', answerWith(200, { x: 'y'.repeat(15_000) }));
    expect(await createClient().post(fair.url)).toMatchObject({ status: 200 });
  });

  test('its body is endless: the status counts, and the connection is closed', async () => {
    const server = await startTcp((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      flood(socket, `400\r\n${'z'.repeat(1024)}\r\n`);
    });
    expect(await createClient().post(server.url)).toMatchObject({
      kind: 'answered',
      status: 200,
      excerpt: 'z'.repeat(1024),
    });
    await server.closed();
  });

  test.each([
    ['a length that is too short', 200, 'content-length: 2\r\n\r\nokay', 'ok'],
    ['a last chunk before its end', 200, 'transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nay', 'ok'],
    ['connection: close', 200, 'connection: close\r\ncontent-length: 2\r\n\r\nokay', 'ok'],
    ['a body after 204', 204, '\r\nokay', ''],
  ])('more bytes follow its complete answer: %s: the answer counts', async (_, status, rest, excerpt) => {
    const server = await startTcp((socket) => socket.write(`HTTP/1.1 ${status} Fine\r\n${rest}`));
    const client = createClient();
    const answered = { kind: 'answered', status, excerpt };
    expect(await client.post(server.url)).toMatchObject(answered);
    // What follows is not the answer to the next request.
    expect(await client.post(server.url)).toMatchObject(answered);
    expect(server.requests()).toBe(2);
  });

  test('the request has an invalid header', async () => {
    const server = await startServer('127.0.0.1', answerWith(204));
    const client = createClient();
    expect(await client.post(server.url, { 'x-bad': 'a\nb' })).toEqual(
      notSent('The request could not be created (ERR_INVALID_CHAR).'),
    );
    expect(await client.post(server.url, { 'x bad': 'a' })).toEqual(
      notSent('The request could not be created (ERR_INVALID_HTTP_TOKEN).'),
    );
    expect(server.requests()).toBe(0);
  });
});

describe('certificates', () => {
  const authority = makeCertificate('Authority of this test', { authority: true });
  beforeAll(() => setDefaultCACertificates([authority.certPem]));
  afterAll(() => setDefaultCACertificates([]));
  const resolve = async () => [ipv4('127.0.0.1')];

  test('a valid one is accepted', async () => {
    const server = await startSecure(makeCertificate('hook.example', { issuer: authority }));
    expect(await createClient({ resolve }).post(server.at('hook.example'))).toMatchObject({ status: 204 });
  });

  test('a TLS connection that the endpoint closed meanwhile is no failure', async () => {
    let requests = 0;
    const server = await startSecure(
      makeCertificate('hook.example', { issuer: authority }),
      (request, response) => {
        requests += 1;
        // With an alert, as servers close idle connections.
        if (requests === 2) request.socket.end();
        else response.writeHead(204).end();
      },
    );
    const client = createClient({ resolve });
    await client.post(server.at('hook.example'));
    expect(await client.post(server.at('hook.example'))).toMatchObject({ status: 204 });
    expect([server.connections(), requests]).toEqual([2, 3]);
  });

  test.each([
    ['its own issuer', 'DEPTH_ZERO_SELF_SIGNED_CERT', () => makeCertificate('hook.example')],
    [
      'of an unknown issuer',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      () => makeCertificate('hook.example', { issuer: makeCertificate('Somebody', { authority: true }) }),
    ],
    [
      'expired',
      'CERT_HAS_EXPIRED',
      () => makeCertificate('hook.example', { issuer: authority, expired: true }),
    ],
    [
      'of another host',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      () => makeCertificate('other.example', { issuer: authority }),
    ],
  ])('one that is %s is rejected (%s), and nothing is sent', async (_, code, make) => {
    const server = await startSecure(make());
    expect(await createClient({ resolve }).post(server.at('hook.example'))).toEqual(
      notSent(`The endpoint's certificate is not valid (${code}).`),
    );
    expect(server.requests()).toBe(0);
  });

  test('an environment that disables the check has no effect', async () => {
    vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0');
    open.push(() => vi.unstubAllEnvs());
    const server = await startSecure(makeCertificate('hook.example'));
    expect(await createClient({ resolve }).post(server.at('hook.example'))).toEqual(
      notSent("The endpoint's certificate is not valid (DEPTH_ZERO_SELF_SIGNED_CERT)."),
    );
  });

  test.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'an endpoint that requires a certificate of the client rejects the handshake, not the event, with %s',
    async (maxVersion) => {
      const certificate = makeCertificate('hook.example', { issuer: authority });
      const server = await startSecure(certificate, answerWith(204), { requestCert: true, maxVersion });
      expect(await createClient({ resolve }).post(server.at('hook.example'))).toEqual(
        notSent(expect.stringMatching(/^The TLS handshake with the endpoint failed \(\w+\)\.$/)),
      );
      expect(server.requests()).toBe(0);
    },
  );

  test('an endpoint that does not speak TLS, or closes during the handshake', async () => {
    const plain = await startTcp((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    const client = createClient();
    expect(await client.post(plain.url.replace('http:', 'https:'))).toEqual(
      notSent(expect.stringMatching(/^The TLS handshake with the endpoint failed \(\w+\)\.$/)),
    );
    const curt = await startTcp((socket) => socket.resetAndDestroy());
    expect(await client.post(curt.url.replace('http:', 'https:'))).toEqual(
      notSent('The TLS handshake with the endpoint failed (ECONNRESET).'),
    );
  });
});

describe('connection reuse', () => {
  test('sequential requests use one connection; concurrent ones up to the limit', async () => {
    const server = await startServer('127.0.0.1', answerWith(200, {}, 'thank you'));
    const client = createClient({}, 3);
    for (let at = 0; at < 5; at += 1) expect(await client.post(server.url)).toMatchObject({ status: 200 });
    expect(server.connections()).toBe(1);
    const answers = await Promise.all(Array.from({ length: 20 }, () => client.post(server.url)));
    expect(answers.every((answer) => answer.kind === 'answered')).toBe(true);
    expect(server.connections()).toBe(3);
  });

  test('one that the endpoint closed meanwhile is no failure: the request uses a new one', async () => {
    const server = await startTcp((socket, at) =>
      at === 1 ? socket.write(NO_CONTENT) : socket.resetAndDestroy(),
    );
    const client = createClient();
    for (let round = 0; round < 3; round += 1) {
      expect(await client.post(server.url)).toMatchObject({ kind: 'answered', status: 204 });
    }
    expect([server.connections(), server.requests()]).toEqual([3, 5]);
  });

  test('the other idle connections are closed with it, because they are probably closed too', async () => {
    const server = await startTcp((socket, at) =>
      at === 1 ? socket.write(NO_CONTENT) : socket.resetAndDestroy(),
    );
    const client = createClient();
    await Promise.all([1, 2, 3, 4].map(() => client.post(server.url)));
    expect(server.connections()).toBe(4);
    expect(await client.post(server.url)).toMatchObject({ kind: 'answered', status: 204 });
    expect([server.connections(), server.requests()]).toEqual([5, 6]);
  });

  test('a new one that is closed is a failure, tried once', async () => {
    let fresh = true;
    const server = await startTcp((socket) => {
      if (fresh) socket.write(NO_CONTENT);
      else socket.resetAndDestroy();
      fresh = false;
    });
    const client = createClient();
    await client.post(server.url);
    expect(await client.post(server.url)).toEqual(
      sent('The endpoint closed the connection before it responded (ECONNRESET).'),
    );
    expect([server.connections(), server.requests()]).toEqual([2, 3]);
  });

  test('one that is closed within the answer is a failure, at any age', async () => {
    const server = await startTcp((socket, at) => {
      if (at === 1) socket.write(NO_CONTENT);
      else socket.write('HTTP/1.1 ', () => socket.resetAndDestroy());
    });
    const client = createClient();
    await client.post(server.url);
    expect(await client.post(server.url)).toMatchObject({ kind: 'failed', sent: true });
    expect(server.requests()).toBe(2);
  });

  test('an idle one is closed after a while', async () => {
    const server = await startServer('127.0.0.1', answerWith(204));
    await createClient({ timeouts: { idleMs: 20 } }).post(server.url);
    await server.closed();
  });

  test('one that idled while the process was suspended is not reused', async () => {
    const server = await startServer('127.0.0.1', answerWith(204));
    const client = createClient();
    vi.useFakeTimers({ toFake: ['Date'] });
    open.push(() => vi.useRealTimers());
    await client.post(server.url);
    vi.setSystemTime(Date.now() + 29_000);
    await client.post(server.url);
    expect(server.connections()).toBe(1);
    vi.setSystemTime(Date.now() + 31_000);
    await client.post(server.url);
    expect(server.connections()).toBe(2);
  });

  test('each endpoint has its own, for all callers, until the pool is closed', async () => {
    const server = await startServer('127.0.0.1', answerWith(204));
    const pool = createConnectionPool({ allowPrivateNetworks: true });
    const body = '{}';
    expect(pool.of('us/erp', 16)).toBe(pool.of('us/erp', 16));
    expect(pool.of('us/shop', 16)).not.toBe(pool.of('us/erp', 16));
    await pool.of('us/erp', 1).post(server.url, {}, body);
    await pool.of('us/erp', 2).post(server.url, {}, body);
    expect(server.connections()).toBe(1);
    await pool.of('us/shop', 1).post(server.url, {}, body);
    expect(server.connections()).toBe(2);
    await Promise.all([1, 2, 3, 4].map(() => pool.of('us/erp', 2).post(server.url, {}, body)));
    expect(server.connections()).toBe(3);
    pool.close();
    await server.closed(3);
  });

  test('of an endpoint without requests, at most `maxIdle` connections stay open', async () => {
    const waiting: ServerResponse[] = [];
    const ports = new Set<number | undefined>();
    const server = await startServer('127.0.0.1', (request, response) => {
      ports.add(request.socket.remotePort);
      waiting.push(response);
      if (waiting.length % 12 === 0) for (const one of waiting.splice(0)) one.writeHead(204).end();
    });
    const pool = createConnectionPool({ allowPrivateNetworks: true, maxIdle: 2 });
    const sendAll = () =>
      Promise.all(Array.from({ length: 12 }, () => pool.of('us/erp', 12).post(server.url, {}, '{}')));
    await sendAll();
    await sendAll();
    // Two of the first connections were used again.
    expect(ports.size).toBe(22);
    pool.close();
    await server.closed(22);
  });

  test('the pool remembers a limited number of endpoints, those that were used last', async () => {
    const pool = createConnectionPool({ allowPrivateNetworks: true });
    const [first, second] = [pool.of('us/first', 1), pool.of('us/second', 1)];
    for (let at = 2; at < MAX_POOLED; at += 1) pool.of(`us/e${at}`, 1);
    expect(pool.of('us/first', 1)).toBe(first);
    pool.of('us/more', 1);
    expect(pool.of('us/first', 1)).toBe(first);
    expect(pool.of('us/second', 1)).not.toBe(second);
    pool.close();
  });

  test('closing the pool aborts requests in progress', async () => {
    const server = await startServer('127.0.0.1', () => pool.close());
    const pool = createConnectionPool({ allowPrivateNetworks: true });
    const answer = await pool.of('us/erp', 1).post(server.url, {}, '{}');
    expect(answer).toMatchObject({ kind: 'failed', sent: true });
  });
});

describe('the excerpt of an answer', () => {
  test.each<[string, string | Buffer, string]>([
    ['nothing', '', ''],
    ['a short text', 'Thank you.\r\n\tÄ 😀', 'Thank you.\r\n\tÄ 😀'],
    ['1 kB to the byte', 'é'.repeat(512), 'é'.repeat(512)],
    ['more', 'x'.repeat(1025), 'x'.repeat(1024)],
    ['a character across the limit', `${'x'.repeat(1022)}😀`, 'x'.repeat(1022)],
    ['a text that ends within a character', Buffer.from('é').subarray(0, 1), '\ufffd'],
    ['bytes that are no text', Buffer.from([0x61, 0xff, 0xfe, 0xc0, 0, 1, 2, 0x62]), 'a\ufffdb'],
    ['escape sequences of terminals', 'a\u001b[31mb\u009bc\u007f', 'a\ufffd[31mb\ufffdc\ufffd'],
    ['half of a surrogate pair', Buffer.from([0xed, 0xa0, 0xbd]), '\ufffd'],
  ])('of %s', async (_, body, excerpt) => {
    const server = await startServer('127.0.0.1', answerWith(500, {}, body));
    const answer = await createClient().post(server.url);
    expect(answer).toMatchObject({ kind: 'answered', status: 500, excerpt });
    expect(answer.kind === 'answered' && answer.excerpt.isWellFormed()).toBe(true);
  });

  test('of a body in small chunks', async () => {
    const server = await startServer('127.0.0.1', (_, response) => {
      const bytes = Buffer.from('€'.repeat(400));
      const next = (at: number): void => {
        if (at >= bytes.length) response.end();
        else response.write(bytes.subarray(at, at + 7), () => next(at + 7));
      };
      next(0);
    });
    expect(await createClient().post(server.url)).toMatchObject({ excerpt: '€'.repeat(341) });
  });
});

const NO_CONTENT = 'HTTP/1.1 204 No Content\r\n\r\n';
const ipv4 = (address: string) => ({ address, family: 4 });
const notSent = (reason: string) => failed(reason, false);
const sent = (reason: string) => failed(reason, true);
const failed = (reason: string, hasBeenSent: boolean) => ({ kind: 'failed', reason, sent: hasBeenSent });

/** Connections of one endpoint, closed after the test. No error message contains a part of the URL. */
function createClient(options: Partial<Parameters<typeof createConnectionPool>[0]> = {}, concurrency = 16) {
  const pool = createConnectionPool({ allowPrivateNetworks: true, ...options });
  open.push(() => pool.close());
  return {
    async post(url: string, headers: Record<string, string> = {}) {
      const exchange = await pool.of('us/erp', concurrency).post(url, headers, '{}');
      if (exchange.kind === 'failed') {
        const { host, hostname } = new URL(url);
        for (const part of ['key-in-the', host, hostname]) expect(exchange.reason).not.toContain(part);
        expect(exchange.reason).toMatch(/^[A-Z][^\n]*\.$/);
      }
      return exchange;
    },
  };
}

type Answer = (request: IncomingMessage, response: ServerResponse) => unknown;

function answerWith(
  status: number,
  headers: Record<string, string> = {},
  body: string | Buffer = '',
): Answer {
  return (_, response) => response.writeHead(status, headers).end(body);
}

/** An HTTP server. */
async function startServer(host: string, answer: Answer, port = 0) {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => answer(request, response));
  });
  return listen(server, host, port);
}

/** An HTTPS server. */
async function startSecure(
  { certPem, keyPem }: Certificate,
  answer = answerWith(204),
  options: ServerOptions = {},
) {
  const server = createSecureServer({ cert: certPem, key: keyPem, ...options }, answer);
  const started = await listen(server, '127.0.0.1', 0);
  return { ...started, at: (host: string) => `https://${host}:${started.port}${SECRET_PATH}` };
}

/** A server whose n-th connection handler is given. */
async function startTcp(answer: (socket: Socket, at: number) => unknown) {
  let requests = 0;
  const server = createTcpServer((socket) => {
    let at = 0;
    socket.on('error', () => undefined);
    socket.on('data', () => {
      requests += 1;
      at += 1;
      answer(socket, at);
    });
  });
  return { ...(await listen(server, '127.0.0.1', 0)), requests: () => requests };
}

/** Listens, counts, and is gone after the test. */
async function listen(server: Server, host: string, port: number) {
  let requests = 0;
  const sockets: Socket[] = [];
  const closed: Promise<void>[] = [];
  server.on('request', () => {
    requests += 1;
  });
  server.on('connection', (socket: Socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    closed.push(new Promise((resolve) => socket.once('close', () => resolve())));
  });
  server.on('tlsClientError', () => undefined);
  await new Promise<void>((resolve) => server.listen(port, host, resolve));
  const stop = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  open.push(stop);
  const { port: at } = server.address() as AddressInfo;
  return {
    port: at,
    url: `http://${host}:${at}${SECRET_PATH}`,
    connections: () => sockets.length,
    requests: () => requests,
    /** Resolves when the client has closed this many connections. */
    closed: async (count = 1) => {
      expect(closed).toHaveLength(count);
      await Promise.all(closed);
    },
    stop,
  };
}

/** Something that a test waits for. */
function happening(): { readonly happens: () => void; readonly happened: Promise<void> } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { happens: () => resolve(), happened: promise };
}

/** The result of an exchange when the given time passes after `reached`. */
async function overdue<T>(
  ms: number,
  reached: { readonly happened: Promise<void> },
  begin: () => Promise<T>,
): Promise<T> {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  open.push(() => vi.useRealTimers());
  let ended = false;
  const exchange = begin().finally(() => {
    ended = true;
  });
  await reached.happened;
  await setImmediate();
  vi.advanceTimersByTime(ms - 1);
  await setImmediate();
  expect(ended).toBe(false);
  vi.advanceTimersByTime(1);
  return exchange;
}

/** Writes small parts until the client disconnects; resolves when some must have arrived. */
function drip(socket: Socket, text: string, flowing: () => void): void {
  let drops = 0;
  const timer = setInterval(() => {
    socket.write(text);
    drops += 1;
    if (drops === 5) flowing();
  }, 2);
  socket.once('close', () => clearInterval(timer));
}

/** Writes as much as the client reads. */
function flood(socket: Socket, text: string): void {
  const pour = (): void => {
    while (!socket.destroyed && socket.write(text.repeat(64)));
  };
  socket.on('drain', pour);
  pour();
}
