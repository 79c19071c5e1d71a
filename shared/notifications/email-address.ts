/**
 * Validation and wire form of e-mail addresses. Has no Node dependency, because the dashboard uses it too. Addresses are personal data: no
 * message of this file quotes one.
 */
import type { Channel } from './types.ts';

/**
 * An address in the form that is stored and sent, or the rule that it breaks: the rest of an error message that begins with the field's
 * name.
 */
export type CheckedAddress =
  | { readonly kind: 'checked'; readonly address: string }
  | { readonly kind: 'rejected'; readonly rule: string };

/** Maximum lengths by RFC 5321: of an address, and of the part before the @. */
const MAX_EMAIL = 254;
const MAX_LOCAL_PART = 64;

/** Local part without quotes (RFC 5322, dot-atom). */
const LOCAL_PART = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
/** At least two labels. The last one is not a number. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?!\d+$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** Characters that would change the domain when it is parsed as part of a URL. */
const NOT_IN_DOMAINS = /[\p{Cc}\s%/\\?#@:[\]<>^|]/u;

const reject = (rule: string): CheckedAddress => ({ kind: 'rejected', rule });

/** Validates an e-mail address. Returns its domain in lower case, with non-ASCII labels in punycode. Trims surrounding whitespace. */
export function checkEmail(text: string): CheckedAddress {
  const trimmed = text.trim();
  if (/\p{Cc}/u.test(trimmed)) return reject('must be one line without control characters');
  const at = trimmed.lastIndexOf('@');
  if (at < 1) return reject('must be an e-mail address such as name@example.com');
  const localPart = trimmed.slice(0, at);
  const written = trimmed.slice(at + 1);
  if (/[^\x20-\x7e]/.test(localPart)) {
    return reject('must be ASCII before the @: most mail servers accept nothing else');
  }
  const domain = NOT_IN_DOMAINS.test(written) ? '' : toAscii(written);
  if (localPart.length > MAX_LOCAL_PART || localPart.length + 1 + domain.length > MAX_EMAIL) {
    return reject(`must be at most ${MAX_EMAIL} characters, and ${MAX_LOCAL_PART} before the @`);
  }
  if (!LOCAL_PART.test(localPart) || !DOMAIN.test(domain)) {
    return reject('must be an e-mail address such as name@example.com');
  }
  return { kind: 'checked', address: `${localPart}@${domain}` };
}

/** Returns a domain as in URLs: lower case and punycode. Empty if it is not a valid domain. */
function toAscii(domain: string): string {
  return URL.parse(`ws://${domain}`)?.hostname ?? '';
}

/** Returns an address in canonical form, for equality: mail servers distinguish addresses by case at most. */
export function normalizeAddress(channel: Channel, address: string): string {
  return channel === 'email' ? address.trim().toLowerCase() : address;
}
