/**
 * Mobile numbers: what is taken for one, and how it is written on the wire; what is assumed in a region; and when two
 * addresses are the same. Addresses are personal data: no message of this file quotes one.
 */
import { hash } from 'node:crypto';
import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js/mobile';
import type { CheckedAddress } from './email-address.ts';
import type { Channel, Locale } from './model.ts';

const refused = (rule: string): CheckedAddress => ({ kind: 'refused', rule });

/** How people write numbers. */
const NUMBER = /^\+?[\d\s().\-/\u00a0\u2010-\u2015\u2212]+$/;
const MAX_NUMBER = 40;

/**
 * Checks a mobile number and gives it in E.164. Others of a country, such as premium rate ones, and those of no country, such as
 * satellite phones, are not taken: an SMS to them costs many times as much, or never comes. In national form it is read by the habits of the region's country; where a
 * region is several countries only the international form is taken, for a wrong guess writes to a stranger.
 */
export function checkMobile(text: string, region: string): CheckedAddress {
  const country = defaultsOf(region).country;
  const international = 'in international form, such as +64 21 123 4567';
  const rule = country
    ? `must be a mobile number of this region, or of any country ${international}`
    : `must be a mobile number ${international}`;
  const trimmed = text.trim();
  if (trimmed.length > MAX_NUMBER || !NUMBER.test(trimmed)) return refused(rule);
  const number = parsePhoneNumberFromString(trimmed, {
    extract: false,
    ...(country === undefined ? {} : { defaultCountry: country }),
  });
  if (!number?.isValid() || !number.country || number.ext !== undefined) return refused(rule);
  return { kind: 'checked', address: number.number };
}

/** What is assumed in a region of whoever says nothing. */
export interface RegionDefaults {
  readonly locale: Locale;
  /** IANA name. */
  readonly zone: string;
  /** Whose habits phone numbers in national form follow. */
  readonly country?: CountryCode;
}

const REGION_DEFAULTS: { readonly [region: string]: RegionDefaults } = {
  us: { locale: 'en-US', zone: 'America/New_York', country: 'US' },
  nz: { locale: 'en-NZ', zone: 'Pacific/Auckland', country: 'NZ' },
  au: { locale: 'en-AU', zone: 'Australia/Sydney', country: 'AU' },
  uk: { locale: 'en-GB', zone: 'Europe/London', country: 'GB' },
  eu: { locale: 'en-GB', zone: 'Europe/Brussels' },
};

/** The language, zone and country of a region; regions are known by what their name begins with (`nz`, `nz-test`). */
export function defaultsOf(region: string): RegionDefaults {
  return REGION_DEFAULTS[region.split('-')[0] ?? ''] ?? { locale: 'en-GB', zone: 'UTC' };
}

/** An address in the form in which two of the same are equal: what mail servers tell apart at most by capitals is one. */
export function normalized(channel: Channel, address: string): string {
  return channel === 'email' ? address.trim().toLowerCase() : address;
}

/**
 * A plain hash of an address. Whoever sees it can find the address by trying out all there are: it is only what
 * `sealedAddressOf` seals, and what versions before that stored and put into links.
 */
export function plainAddressHash(region: string, channel: Channel, address: string): string {
  const digest = hash('sha256', `${region}#${channel}#${normalized(channel, address)}`, 'buffer');
  return digest.subarray(0, 24).toString('base64url');
}
