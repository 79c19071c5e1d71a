/** Base URLs of Jobwire, and which connections are encrypted. */
import { expect, it } from 'vitest';
import { checkBaseUrl, isUnencrypted } from '../../cli/profiles.ts';

it.each([
  ['http://localhost:4000', false],
  ['http://127.0.0.1:4000', false],
  ['http://127.1.2.3', false],
  ['http://[::1]:4000', false],
  ['https://jobwire.example', false],
  ['http://jobwire.example', true],
  // Names that only begin like a loopback address.
  ['http://127.0.0.1.example.com', true],
  ['http://localhost.example.com', true],
  ['http://0.0.0.0', true],
  ['http://[::2]', true],
])('an API key that is sent to %s can be read on the network: %s', (url, isReadable) => {
  expect(isUnencrypted(url)).toBe(isReadable);
});

it('a base URL loses final slashes and surrounding spaces', () => {
  expect(checkBaseUrl('--url', ' https://jobwire.example/us/ ')).toBe('https://jobwire.example/us');
});

it.each(['https://jobwire.example/?x=1', 'https://jobwire.example#a', 'https://jobwire.example/?'])(
  'a base URL with a query or fragment is rejected: %s',
  (url) => {
    expect(() => checkBaseUrl('--url', url)).toThrow('--url must not contain a query or fragment.');
  },
);
