/** Defaults of the regions of the ordering API. Without dependencies, because the dashboard loads it too. */
import type { CountryCode } from 'libphonenumber-js/mobile';
import type { Locale } from './notifications/types.ts';

/** Defaults of a region, for recipients and accounts without their own. */
export interface RegionDefaults {
  readonly locale: Locale;
  /** IANA time zone name. */
  readonly zone: string;
  /** Country whose rules apply to phone numbers in national form. */
  readonly country?: CountryCode;
}

const REGION_DEFAULTS: { readonly [region: string]: RegionDefaults } = {
  us: { locale: 'en-US', zone: 'America/New_York', country: 'US' },
  nz: { locale: 'en-NZ', zone: 'Pacific/Auckland', country: 'NZ' },
  au: { locale: 'en-AU', zone: 'Australia/Sydney', country: 'AU' },
  uk: { locale: 'en-GB', zone: 'Europe/London', country: 'GB' },
  eu: { locale: 'en-GB', zone: 'Europe/Brussels' },
};

/** Returns the defaults of a region, by the start of its name (`nz`, `nz-test`). `undefined` if the region is not known. */
export const findRegionDefaults = (region: string): RegionDefaults | undefined =>
  REGION_DEFAULTS[region.split('-')[0] ?? ''];

/** Returns the language, time zone and country of a region. An unknown region has British English and UTC. */
export function getRegionDefaults(region: string): RegionDefaults {
  return findRegionDefaults(region) ?? { locale: 'en-GB', zone: 'UTC' };
}
