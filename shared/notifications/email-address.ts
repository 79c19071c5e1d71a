/**
 * E-mail addresses: what is taken for one, and how it is written on the wire. Free of Node, for pages check with it too.
 * Addresses are personal data: no message of this file quotes one.
 */

/** An address as it is kept and written on the wire, or the rule that it breaks: a sentence after the field's name. */
export type CheckedAddress =
  | { readonly kind: 'checked'; readonly address: string }
  | { readonly kind: 'refused'; readonly rule: string };

/** RFC 5321: of an address as a whole, and before the @. */
const MAX_EMAIL = 254;
const MAX_LOCAL_PART = 64;

/** What is written before the @ without quotes (RFC 5322, dot-atom). */
const LOCAL_PART = /^[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(?:\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
/** At least two labels, the last of which is no number. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+(?!\d+$)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** What would turn a domain into something else when it is read as part of a URL. */
const NOT_IN_DOMAINS = /[\p{Cc}\s%/\\?#@:[\]<>^|]/u;

const refused = (rule: string): CheckedAddress => ({ kind: 'refused', rule });

/** Checks an e-mail address. Its domain comes out in lower case and, beyond ASCII, in punycode; spaces around it are taken away. */
export function checkEmail(text: string): CheckedAddress {
  const trimmed = text.trim();
  const at = trimmed.lastIndexOf('@');
  if (at < 1) return refused('must be an e-mail address such as name@example.com');
  const localPart = trimmed.slice(0, at);
  const written = trimmed.slice(at + 1);
  if (/[^\x20-\x7e]/.test(localPart)) {
    return refused('must be plain ASCII before the @: mail servers that take anything else are few');
  }
  const domain = NOT_IN_DOMAINS.test(written) ? '' : asciiOf(written);
  if (localPart.length > MAX_LOCAL_PART || localPart.length + 1 + domain.length > MAX_EMAIL) {
    return refused(`must be at most ${MAX_EMAIL} characters, and ${MAX_LOCAL_PART} before the @`);
  }
  if (!LOCAL_PART.test(localPart) || !DOMAIN.test(domain)) {
    return refused('must be an e-mail address such as name@example.com');
  }
  return { kind: 'checked', address: `${localPart}@${domain}` };
}

/** A domain as URLs have it: in lower case and punycode; empty where it can't be one. */
function asciiOf(domain: string): string {
  return URL.parse(`ws://${domain}`)?.hostname ?? '';
}
