/**
 * Mobile numbers: validation and E.164 form, defaults by region, and equality of addresses. Addresses are personal data: no message of this
 * file quotes one.
 */
import { parsePhoneNumberFromString } from 'libphonenumber-js/mobile';
import { getRegionDefaults } from '../region-defaults.ts';
import type { CheckedAddress } from './email-address.ts';
import type { Recipient } from './records.ts';
import type { Channel } from './types.ts';

const reject = (rule: string): CheckedAddress => ({ kind: 'rejected', rule });

/** Characters of a written phone number. */
const NUMBER = /^\+?[\d\s().\-/\u00a0\u2010-\u2015\u2212]+$/;
const MAX_NUMBER = 40;

/**
 * Validates a mobile number and returns it in E.164.
 * Rejects other numbers of a country, such as premium rate, and numbers of no country, such as satellite phones. An SMS to them costs many
 * times as much or never arrives. A number in national form is parsed by the rules of the region's country. In a region of several
 * countries only the international form is accepted: a wrong guess would send to a stranger.
 */
export function checkMobile(text: string, region: string): CheckedAddress {
  const country = getRegionDefaults(region).country;
  const international = 'in international form, such as +64 21 123 4567';
  const rule = country
    ? `must be a mobile number of this region, or of any country ${international}`
    : `must be a mobile number ${international}`;
  const trimmed = text.trim();
  if (trimmed.length > MAX_NUMBER || !NUMBER.test(trimmed)) return reject(rule);
  const number = parsePhoneNumberFromString(trimmed, {
    extract: false,
    ...(country === undefined ? {} : { defaultCountry: country }),
  });
  if (!number?.isValid() || !number.country || number.ext !== undefined) return reject(rule);
  return { kind: 'checked', address: number.number };
}

/** Returns the address of a recipient for a channel, or `null` if there is none. */
export const getAddress = (
  { email, mobile }: Pick<Recipient, 'email' | 'mobile'>,
  channel: Channel,
): string | null => (channel === 'email' ? email : mobile);
