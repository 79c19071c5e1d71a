/**
 * A limit on failed authentications, per address of a client and process. Nobody guesses 256 random bits; what it keeps
 * low is what guessing costs, and it slows down those who try keys that people thought up.
 *
 * Who has shown a good key before is never refused, so a neighbour behind the same proxy who tries wrong ones locks out
 * only those whose key this process has not seen yet, and those for a minute.
 *
 * Memory is bounded by counting in a fixed number of places that addresses are hashed to, with a salt of the process. So
 * two addresses may share a count, seldom; and no address is kept.
 *
 * What is NOT guaranteed: that no more are looked up than the limit says. Those that come at the same moment all are.
 */
import { hash, randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js';
import type { Caller, Keyring } from './keys.ts';

/** Failures in a window, and its length from the first of them. */
const MAX_FAILURES = 20;
const WINDOW_SECONDS = 60;
/** About 5 MB when every one is taken. */
const PLACES = 16_384;

/** What came of a key that was shown. */
export type Authenticated =
  | { readonly kind: 'caller'; readonly caller: Caller }
  | { readonly kind: 'unknown key' }
  /** The key was not looked at. */
  | { readonly kind: 'too many failures'; readonly retryAfterSeconds: number };

/** Looks at a key that somebody shows, from an address (absent: one that is not known). Throws `TableError`. */
export type Authenticate = (shown: string, address: string | undefined) => Promise<Authenticated>;

/** Puts the limit in front of a keyring. */
export function limitFailures(keyring: Pick<Keyring, 'verify' | 'isKnown'>): Authenticate {
  const salt = randomBytes(16);
  const failures = new RateLimiterMemory({ points: MAX_FAILURES, duration: WINDOW_SECONDS });

  return async (shown, address) => {
    const place = placeOf(address, salt);
    const isKnown = keyring.isKnown(shown);
    if (!isKnown) {
      const sofar = await failures.get(place);
      if (sofar && sofar.consumedPoints >= MAX_FAILURES && sofar.msBeforeNext > 0) {
        return { kind: 'too many failures', retryAfterSeconds: Math.ceil(sofar.msBeforeNext / 1000) };
      }
    }
    const caller = await keyring.verify(shown);
    if (caller) return { kind: 'caller', caller };
    await failures.penalty(place);
    return { kind: 'unknown key' };
  };
}

function placeOf(address: string | undefined, salt: Uint8Array): string {
  const salted = Buffer.concat([salt, Buffer.from(networkOf(address ?? ''))]);
  return String(hash('sha256', salted, 'buffer').readUInt32BE(0) % PLACES);
}

/** The first 64 bits of an IPv6 address, of which its holder has the rest as well; any other text as it is. */
function networkOf(address: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address;
  const [head = '', tail] = address.split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':'));
  const all = tail === undefined ? groups(head) : [...groups(head), ...zerosFor(head, tail), ...groups(tail)];
  return all
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':');

  function zerosFor(before: string, after: string): string[] {
    const there = groups(before).length + groups(after).length + (after.includes('.') ? 1 : 0);
    return Array.from({ length: 8 - there }, () => '0');
  }
}
