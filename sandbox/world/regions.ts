// The regions of the ordering API and their differences: locations, status names, first job numbers.

/** The regions, each with its own API and token host. */
export const REGIONS = ['us', 'nz', 'au', 'uk', 'eu'] as const;

/** A region's code; also the name of its realm at the token endpoint. */
export type RegionCode = (typeof REGIONS)[number];

/** Returns the region of a code, or undefined. */
export function findRegion(code: string): RegionCode | undefined {
  return REGIONS.find((region) => region === code);
}

/** Currency of each region. */
export const CURRENCIES: Record<RegionCode, string> = {
  us: 'USD',
  nz: 'NZD',
  au: 'AUD',
  uk: 'GBP',
  eu: 'EUR',
};

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

/** Where each region starts counting jobs. */
export const FIRST_JOB_NUMBER: Record<RegionCode, number> = {
  us: 410_001,
  nz: 120_001,
  au: 230_001,
  uk: 340_001,
  eu: 560_001,
};

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

const site = (code: string, name: string, timezone: string, holidays: HolidayCalendar): Site => ({
  code,
  name,
  timezone,
  holidays,
  active: true,
  virtual: false,
});

/** Locations of each region that produce jobs; the first is the default. */
export const LOCATIONS: Record<RegionCode, readonly [Site, ...Site[]]> = {
  us: [
    site('DEN', 'Denver', 'America/Denver', 'US-CO'),
    site('CLT', 'Charlotte', 'America/New_York', 'US-NC'),
  ],
  nz: [site('AKL', 'Auckland', 'Pacific/Auckland', 'NZ-AUK')],
  au: [
    site('BNE', 'Brisbane', 'Australia/Brisbane', 'AU-QLD'),
    site('ADL', 'Adelaide', 'Australia/Adelaide', 'AU-SA'),
  ],
  uk: [site('LDS', 'Leeds', 'Europe/London', 'GB-ENG')],
  eu: [site('RTM', 'Rotterdam', 'Europe/Amsterdam', 'NL')],
};

/** Locations of each region that reject jobs: a closed one and a virtual one. */
export const OTHER_LOCATIONS: Record<RegionCode, readonly Site[]> = {
  us: [
    { ...site('PUE', 'Pueblo', 'America/Denver', 'US-CO'), active: false },
    { ...site('USX', 'US partners', 'America/Denver', 'US-CO'), virtual: true },
  ],
  nz: [
    { ...site('HLZ', 'Hamilton', 'Pacific/Auckland', 'NZ-AUK'), active: false },
    { ...site('NZX', 'NZ partners', 'Pacific/Auckland', 'NZ-AUK'), virtual: true },
  ],
  au: [
    { ...site('TWB', 'Toowoomba', 'Australia/Brisbane', 'AU-QLD'), active: false },
    { ...site('AUX', 'AU partners', 'Australia/Brisbane', 'AU-QLD'), virtual: true },
  ],
  uk: [
    { ...site('BFD', 'Bradford', 'Europe/London', 'GB-ENG'), active: false },
    { ...site('UKX', 'UK partners', 'Europe/London', 'GB-ENG'), virtual: true },
  ],
  eu: [
    { ...site('DOR', 'Dordrecht', 'Europe/Amsterdam', 'NL'), active: false },
    { ...site('EUX', 'EU partners', 'Europe/Amsterdam', 'NL'), virtual: true },
  ],
};

const COMMON_STATUS_NAMES: Record<Stage, string> = {
  artwork: 'Awaiting artwork',
  intake: 'Order received',
  scheduled: 'Scheduled',
  hold: 'On hold',
  production: 'In production',
  finishing: 'Quality check',
  packing: 'Ready to ship',
  shipped: 'Shipped',
  closed: 'Completed',
  returned: 'Returned',
  cancelled: 'Cancelled',
};

/** Each region's status lookup, by stage, sorted by id. Names differ slightly between regions. */
export const STATUS_NAMES: Record<RegionCode, Record<Stage, string>> = {
  us: { ...COMMON_STATUS_NAMES, cancelled: 'Canceled' },
  nz: COMMON_STATUS_NAMES,
  au: { ...COMMON_STATUS_NAMES, scheduled: 'Booked in', finishing: 'QC' },
  uk: { ...COMMON_STATUS_NAMES, packing: 'Ready for despatch', shipped: 'Despatched' },
  eu: { ...COMMON_STATUS_NAMES, intake: 'Received', hold: 'Waiting for customer' },
};
