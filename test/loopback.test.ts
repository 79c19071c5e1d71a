/** The hosts to which passwords, API keys and tokens are sent without TLS. */
import { expect, it } from 'vitest';
import { isLoopbackHost } from '../shared/loopback.ts';

it('only localhost and loopback addresses are loopback hosts, not names that resemble them', () => {
  const hosts = ['localhost', '127.0.0.1', '127.255.255.255', '::1', '[::1]'];
  const others = [
    ...[
      '',
      '0.0.0.0',
      '128.0.0.1',
      '127.0.0',
      '127.0.0.256',
      '127.999.0.1',
      '::',
      '[::2]',
      '::ffff:127.0.0.1',
    ],
    ...['127.0.0.1.example.com', 'a127.0.0.1', 'localhost.example.com', 'a.localhost', 'localhost\n'],
  ];
  expect([...hosts, ...others].filter(isLoopbackHost)).toEqual(hosts);
});
