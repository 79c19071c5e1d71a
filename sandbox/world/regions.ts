// The regions of the service and what differs between them: places, status names, where job numbers start.

/** The regions of the service, each with API and token host of its own. */
export const REGIONS = ['us', 'nz', 'au', 'uk', 'eu'] as const;

/** A region's code; also the name of its realm at the token endpoint. */
export type RegionCode = (typeof REGIONS)[number];

/** The region of a code, if it is one. */
export function regionOf(code: string): RegionCode | undefined {
  return REGIONS.find((region) => region === code);
}

/** In what each region asks for its money. */
export const CURRENCIES: Record<RegionCode, string> = {
  us: 'USD',
  nz: 'NZD',
  au: 'AUD',
  uk: 'GBP',
  eu: 'EUR',
};

/** Where in a job's life a status belongs. Known only inside the sandbox: the service shows nothing but id and name. */
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
  /** Every so-manieth job that comes to the stage gets this status in place of the first one; absent: none does by itself. */
  every?: number;
}

/** A place that makes jobs. */
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

/** Whose public holidays a place keeps: a country's, or those of a part of it. */
export type HolidayCalendar = 'US-CO' | 'US-NC' | 'NZ-AUK' | 'AU-QLD' | 'AU-SA' | 'GB-ENG' | 'NL';

/** A place as orders name it. Jobs are made at active ones that are not virtual. */
export interface Site extends Location {
  readonly name: string;
  readonly timezone: string;
  /** What `locationCode` and `locationCodeOverride` take. */
  readonly code: string;
  /** Closed for good when false. */
  readonly active: boolean;
  /** A place in the books only: makes nothing itself. */
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

/** Where each region makes its jobs; the first is the default. */
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

/** Places of each region that no job can be sent to: one that is closed for good, and one that is virtual. */
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

/** Each region's status lookup, by stage, in the order of the ids. Regions mostly agree on names, and differ here and there, as lists kept by different people do. */
export const STATUS_NAMES: Record<RegionCode, Record<Stage, string>> = {
  us: { ...COMMON_STATUS_NAMES, cancelled: 'Canceled' },
  nz: COMMON_STATUS_NAMES,
  au: { ...COMMON_STATUS_NAMES, scheduled: 'Booked in', finishing: 'QC' },
  uk: { ...COMMON_STATUS_NAMES, packing: 'Ready for despatch', shipped: 'Despatched' },
  eu: { ...COMMON_STATUS_NAMES, intake: 'Received', hold: 'Waiting for customer' },
};
