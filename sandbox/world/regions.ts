// The regions of the ordering API and their differences.

import type { EntityAddress } from '../../shared/ordering/contract/account.ts';
import type { DeliveryOption } from '../../shared/ordering/contract/jobs.ts';
import regions from './data/regions.json' with { type: 'json' };

/** The regions, each with its own API and token host. */
export const REGIONS = ['us', 'nz', 'au', 'uk', 'eu'] as const;

/** A region's code; also the name of its realm at the token endpoint. */
export type RegionCode = (typeof REGIONS)[number];

/** Returns the region of a code, or undefined. */
export function findRegion(code: string): RegionCode | undefined {
  return REGIONS.find((region) => region === code);
}

/** Stage of a job to which a status belongs. Internal to the sandbox: the API exposes only id and name. */
export const STAGES = [
  'artwork',
  'intake',
  'scheduled',
  'hold',
  'production',
  'finishing',
  'packing',
  'shipped',
  'closed',
  'returned',
  'cancelled',
] as const;

/** A stage of a job's life. */
export type Stage = (typeof STAGES)[number];

/** An entry of a region's job status lookup. */
export interface JobStatus {
  id: number;
  name: string;
  stage: Stage;
  /** Every nth job that reaches the stage gets this status instead of the first one; absent: no job does automatically. */
  every?: number;
}

/** A location that produces jobs. */
export interface Location {
  name: string | null;
  /** IANA name, such as `America/Denver`. */
  timezone: string | null;
}

/** Calendar of public holidays: that of a country or of a part of it. */
export type HolidayCalendar = 'US-CO' | 'US-NC' | 'NZ-AUK' | 'AU-QLD' | 'AU-SA' | 'GB-ENG' | 'NL';

/** A location as orders name it. Only active, non-virtual locations produce jobs. */
export interface Site extends Location {
  readonly name: string;
  readonly timezone: string;
  /** Value of `locationCode` and `locationCodeOverride`. */
  readonly code: string;
  /** Closed for good when false. */
  readonly active: boolean;
  /** An administrative location, which produces nothing. */
  readonly virtual: boolean;
  readonly holidays: HolidayCalendar;
}

/** A fictional carrier. A tracking link is `link` followed by the number; null if the carrier has no tracking page. */
export interface Carrier {
  readonly name: string;
  readonly prefix: string;
  readonly link: string | null;
}

/** An address without a contact. */
export type Place = Pick<
  EntityAddress,
  | 'streetAddress'
  | 'addressLine2'
  | 'city'
  | 'state'
  | 'stateFull'
  | 'postalCode'
  | 'countryCode'
  | 'countryName'
>;

/** The differences between regions. */
interface RegionFacts {
  readonly currency: string;
  /** On top of prices, in percent; null if it depends on the destination. */
  readonly tax: { readonly type: string; readonly rate: number | null };
  readonly accountManager: string;
  /** Where most customers are. */
  readonly defaultCountry: string;
  /** Of fictional numbers: reserved for films, or from unassigned ranges. */
  readonly phonePrefix: string;
  readonly firstJobNumber: number;
  /** Locations that produce jobs; the first is the default. */
  readonly locations: readonly [Site, ...Site[]];
  /** Locations that reject jobs: a closed one and a virtual one. */
  readonly otherLocations: readonly Site[];
  /** The status lookup, sorted by id. */
  readonly statusNames: Readonly<Record<Stage, string>>;
  /** By rank. */
  readonly deliveryOptions: readonly Pick<
    DeliveryOption,
    'code' | 'label' | 'rank' | 'gangRank' | 'isCollection'
  >[];
  readonly carriers: readonly [Carrier, ...Carrier[]];
  /** The names of the first accounts. */
  readonly customers: readonly string[];
  readonly addresses: readonly [Place, ...Place[]];
  /** Stocked goods: their first id, prices and markets. */
  readonly stock: {
    /** Of the first stock item. */
    readonly firstId: number;
    /** Price level, in percent of the US prices. */
    readonly pricePercent: number;
    /** Home first. */
    readonly markets: readonly [string, string, string];
    readonly metric: boolean;
    readonly grey: string;
    readonly mains: string;
    /** A locale of each place that ships, and its country. */
    readonly locales: readonly (readonly [locale: string, countryCodeIso2: string])[];
  };
}

/** The facts of each region. */
export const REGION_FACTS = regions as unknown as Readonly<Record<RegionCode, RegionFacts>>;
